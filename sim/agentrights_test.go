package sim_test

import (
	"context"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
	"github.com/godwit-vm/godwit/store"
)

// A judge holds each write of an agent against the rights that it has at a controller which serves
// the store.
type judge struct {
	store.Store
	host    hypervisor.HostName
	allowed map[store.Kind]int
	refused func(store.Record, string)
}

func (j *judge) hold(ctx context.Context, deletes bool, r store.Record, while []store.Record) {
	if _, why, err := boltstore.Judge(ctx, j.Store, j.host, deletes, r, while); why != "" {
		j.refused(r, why)
	} else if err == nil {
		j.allowed[r.Key().Kind]++
	}
}

// Put implements store.Store.
func (j *judge) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record, error) {
	j.hold(ctx, false, r, while)
	return j.Store.Put(ctx, r, while...)
}

// Delete implements store.Store.
func (j *judge) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	j.hold(ctx, true, r, while)
	return j.Store.Delete(ctx, r, while...)
}

// No agent writes what a controller would refuse it over a network, whatever breaks.
func TestAgentsWriteOnlyWhatIsTheirs(t *testing.T) {
	allowed := map[store.Kind]int{}
	for name, g := range map[string]simtest.Generator{"turmoil": simtest.Turmoil(), "owners": restless(),
		"set back": simtest.SetBack()} {
		for seed := range uint64(testutil.Rounds(t, 30, 1000)) {
			chance := sim.Seeded(seed)
			s := g.Make(chance)
			stageOver(t, s, chance, func(host hypervisor.HostName, records store.Store) store.Store {
				if host == "" {
					return records
				}
				return &judge{records, host, allowed, func(r store.Record, why string) {
					t.Fatalf("%s, seed %d: %s writes %v %s, which is refused: %s\n%s", name, seed, host, r.Key().Kind,
						r.Key().Name, why, s)
				}}
			}).Run(forever)
		}
	}
	for _, kind := range []store.Kind{store.VMKind, store.MigrationKind, store.HostKind, store.LeaseKind} {
		if allowed[kind] == 0 {
			t.Errorf("no agent has written a %v: %v", kind, allowed)
		}
	}
	t.Logf("writes: %v", allowed)
}
