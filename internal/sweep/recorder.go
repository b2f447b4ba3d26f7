package sweep

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// recorder sees every migration of a world, and keeps what a sample needs beside
// the world's own result.
type recorder struct {
	began   map[migration.ID]time.Duration // when memory began to move
	took    []float64                      // of those that succeeded, in seconds
	ends    []float64                      // when they did, in order
	failed  map[hypervisor.VMID]bool       // its last migration
	retries int
}

func newRecorder() *recorder {
	return &recorder{began: map[migration.ID]time.Duration{}, failed: map[hypervisor.VMID]bool{}}
}

// watch is [sim.Config]'s Watch.
func (r *recorder) watch(at time.Duration, before, after *store.Migration) {
	vm, phase := after.Spec.VM, after.State.Phase
	if before.Version == 0 && r.failed[vm] {
		r.retries++
		delete(r.failed, vm)
	}
	if phase == before.State.Phase {
		return
	}
	switch {
	case phase == migration.Running:
		r.began[after.Spec.ID] = at
	case phase == migration.Succeeded:
		r.ends = append(r.ends, at.Seconds())
		if began, is := r.began[after.Spec.ID]; is {
			r.took = append(r.took, (at - began).Seconds())
		}
		delete(r.began, after.Spec.ID)
	case phase == migration.Failed:
		r.failed[vm] = !migration.Withdrawn(after.State.Because)
		delete(r.began, after.Spec.ID)
	}
}

// sample returns what came out of the world.
func (r *recorder) sample(w *sim.World, ending sim.Ending) Sample {
	slices.Sort(r.took)
	s := Sample{Ending: ending.String(), Retries: r.retries,
		Duration: SpreadOf(r.took)}
	s.Fill(w.Result())
	if len(r.ends) > 0 {
		s.Completion = completion(r.ends, len(r.ends)+s.Stayed)
	}
	return s
}
