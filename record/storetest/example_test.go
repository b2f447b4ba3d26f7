package storetest_test

import (
	"testing"

	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/record/storetest"
)

// openStore is in the place of a store's own function. A [record.Memory] belongs to one caller
// at a time: what is run on it below has one.
func openStore(*testing.T) record.Store { return record.NewMemory() }

// The conformance test of a store.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			return storetest.Subject{Store: openStore(t)}
		})
	}
}

// A group by itself, as while the store is being written.
func ExampleHints() {
	_ = func(t *testing.T) { // func TestHints(t *testing.T)
		storetest.Hints(t, func(t *testing.T) storetest.Subject {
			return storetest.Subject{Store: openStore(t), Volatile: true}
		})
	}
}

// TestTheExampleOfAGroupIsRight runs it.
func TestTheExampleOfAGroupIsRight(t *testing.T) {
	storetest.Hints(t, func(t *testing.T) storetest.Subject {
		return storetest.Subject{Store: openStore(t), Volatile: true}
	})
}
