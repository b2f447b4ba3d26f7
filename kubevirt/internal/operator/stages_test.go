package operator_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/godwit-vm/godwit/kubevirt/internal/simnode"
)

// KubeVirt's default limits, which hold in a contest.
const perCluster, perNode = 5, 2

// speed is how many times faster than the clock transfers and starts of pods are.
const speed = 2

// phases of a migration in their order.
var phases = []virtv1.VirtualMachineInstanceMigrationPhase{virtv1.MigrationPhaseUnset, virtv1.MigrationPending,
	virtv1.MigrationScheduling, virtv1.MigrationScheduled, virtv1.MigrationPreparingTarget, virtv1.MigrationTargetReady,
	virtv1.MigrationRunning, virtv1.MigrationSucceeded}

// stages are when migrations were first seen in each phase.
type stages struct {
	mu  sync.Mutex
	all map[types.UID]map[virtv1.VirtualMachineInstanceMigrationPhase]time.Time
}

func (s *stages) watch(ctx context.Context, shown cache.Cache) error {
	s.all = map[types.UID]map[virtv1.VirtualMachineInstanceMigrationPhase]time.Time{}
	i, err := shown.GetInformer(ctx, &virtv1.VirtualMachineInstanceMigration{})
	if err != nil {
		return err
	}
	see := func(o any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		m := o.(*virtv1.VirtualMachineInstanceMigration)
		if s.all[m.UID] == nil {
			s.all[m.UID] = map[virtv1.VirtualMachineInstanceMigrationPhase]time.Time{}
		}
		if _, seen := s.all[m.UID][m.Status.Phase]; !seen {
			s.all[m.UID][m.Status.Phase] = time.Now()
		}
	}
	_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }})
	return err
}

// between returns how long migrations were between two phases, the shortest first.
func (s *stages) between(from, to virtv1.VirtualMachineInstanceMigrationPhase) (all []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all {
		began, ok := m[from]
		if ended, both := m[to]; ok && both {
			all = append(all, ended.Sub(began))
		}
	}
	slices.Sort(all)
	return all
}

// prepares is how long KubeVirt needs from a migration's place until memory is sent, the start of the pod included:
// the shortest that was seen.
func (s *stages) prepares() time.Duration {
	all := s.between(virtv1.MigrationScheduling, virtv1.MigrationRunning)
	if len(all) == 0 {
		return simnode.Starts / speed
	}
	return all[0]
}

func (s *stages) String() string {
	var b strings.Builder
	for i := 1; i < len(phases); i++ {
		if took := s.between(phases[i-1], phases[i]); len(took) > 0 {
			fmt.Fprintf(&b, "until %s: p50 %v, %v to %v (%d)\n", phases[i], took[len(took)/2].Round(time.Millisecond),
				took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took))
		}
	}
	return b.String()
}

// bound returns a time within which no controller empties the nodes, with KubeVirt's limits: the link of each node
// carries all memory once, each migration holds one of its places for as long as it is prepared and sent alone, and the
// first has to be prepared before anything is sent.
func (c *contest) bound(prepares time.Duration) time.Duration {
	c.t.Helper()
	var least, everywhere time.Duration
	for _, node := range c.drained {
		var sent, held time.Duration
		for _, v := range c.vms {
			if v.Node != node || c.excepted[v.Name] {
				continue
			}
			alone := c.alone(v)
			sent, held = sent+alone, held+prepares+alone
		}
		least = max(least, prepares+sent, held/perNode)
		everywhere += held
	}
	return max(least, everywhere/perCluster)
}

// alone returns how long a transfer takes that has the links for itself.
func (c *contest) alone(v simnode.VM) time.Duration {
	c.t.Helper()
	key := fmt.Sprint(v.GiB, v.Workload)
	if took, known := c.takes[key]; known {
		return took
	}
	took, ok, err := simnode.Alone(c.t.Context(), v)
	if err != nil || !ok {
		c.t.Fatalf("%s does not end alone: %v, %v", v.Name, took, err)
	}
	c.takes[key] = took / speed
	return c.takes[key]
}

// noisy reports whether one of two clusters was much slower than the other at what no controller decides: then their times
// cannot be compared.
func noisy(a, b score) bool {
	slow, fast := max(a.prepares, b.prepares), min(a.prepares, b.prepares)
	return slow > fast*5/4
}

// row is a line of the table in docs/kubevirt.md.
func row(name string, theirs, ours score) string {
	bound := cmp.Or(min(theirs.bound, ours.bound), theirs.bound)
	whole := func(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
	verdict := fmt.Sprintf("%.1f of at most %.1f", theirs.empty.Seconds()/ours.empty.Seconds(), theirs.empty.Seconds()/bound.Seconds())
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %d + %d | %s, %s | %s; %s |", name, whole(theirs.empty), whole(ours.empty), whole(bound), verdict,
		theirs.requests["virt-controller"], ours.requests["virt-controller"], ours.requests["godwit"], theirs.p99(), ours.p99(), theirs.leftover, ours.leftover)
}
