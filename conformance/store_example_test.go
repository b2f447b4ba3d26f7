package conformance_test

import (
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/store"
)

// openStore is in the place of a store's own function. A [store.Memory] belongs to one caller
// at a time: what is run on it below has one.
func openStore(*testing.T) store.Store { return store.NewMemory() }

// The conformance test of a store.
func ExampleStore() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		conformance.Store(t, func(t *testing.T) conformance.Subject {
			return conformance.Subject{Store: openStore(t)}
		})
	}
}
