package boltstore_test

import (
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

func TestConformance(t *testing.T) {
	conformance.Store(t, func(t *testing.T) conformance.Subject {
		path := quickPath(t)
		s := open(t, path)
		return conformance.Subject{
			Store: s,
			Again: func(t *testing.T) store.Store {
				must(t, s.Close())
				s = open(t, path)
				return s
			},
			Compact: func() error { s.Compact(); return nil },
			// The kernel keeps what was written; TestAKilledWriterLosesNothing kills for real.
			Crash: func() { boltstore.Abandon(s) },
		}
	})
}
