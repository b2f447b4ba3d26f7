package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// looks counts how often a process reads what has changed.
type looks struct {
	store.Store
	n *int
}

// Changes implements store.Store.
func (l looks) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	*l.n++
	return l.Store.Changes(ctx, f, since)
}

// An operator asks for a migration that has nowhere to go: the controller looks, and writes that
// it waits. It looks once more only when it does not know all that has happened.
func TestNoParticipantIsToldOfItsOwnWrites(t *testing.T) {
	const then = 10 * time.Second
	for _, r := range []struct {
		name  string
		event sim.Event // besides, at the same moment
		want  int
	}{
		{"alone", nil, 1},
		{"its answer is lost", sim.DropAnswers{Times: 1}, 2},
		{"another process writes, too", sim.When{VM: "default/v1-1", Phase: migration.Pending,
			Do: sim.Conflict{VM: "default/v1-1"}}, 2},
	} {
		t.Run(r.name, func(t *testing.T) {
			n := 0
			w := sim.New(sim.Config{Store: func(host hypervisor.HostName,
				records store.Store) store.Store {
				if host != "" {
					return records
				}
				return looks{records, &n}
			}})
			fill(t, w, [3]int{1, 1, 1}, func(hypervisor.Bytes) fake.Workload {
				return fake.Workload{}
			})
			w.Run(then - time.Second)
			n = 0
			if r.event != nil {
				w.At(then, r.event)
			}
			w.At(then, sim.Migrate{VM: "default/v1-1"})
			w.Run(then + 500*time.Millisecond)
			if n != r.want {
				t.Errorf("the controller looks %d times, want %d", n, r.want)
			}
		})
	}
}
