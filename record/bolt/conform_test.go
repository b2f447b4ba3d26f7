package bolt_test

import (
	"testing"

	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/record/bolt"
	"github.com/godwit-vm/godwit/record/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		path := quickPath(t)
		s := open(t, path)
		return storetest.Subject{
			Store: s,
			Again: func(t *testing.T) record.Store {
				must(t, s.Close())
				s = open(t, path)
				return s
			},
			Compact: func() error { s.Compact(); return nil },
			// The kernel keeps what was written; TestAKilledWriterLosesNothing kills for real.
			Crash: func() { bolt.Abandon(s) },
		}
	})
}
