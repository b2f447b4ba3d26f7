package mutant_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A pace is an order and limit policy, put together from its two halves.
type pace struct {
	compare func(link hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int
	open    func(link hypervisor.Bandwidth, next evacuation.EvacuatingVM, all []evacuation.EvacuatingVM) bool
}

// Compare implements [evacuation.Policy]: the largest first, unless p says otherwise.
func (p pace) Compare(link hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	if p.compare != nil {
		return p.compare(link, a, b)
	}
	return cmp.Compare(b.Memory, a.Memory)
}

// Admit implements [evacuation.Policy]: as many as the limits allow, unless p says otherwise.
func (p pace) Admit(link hypervisor.Bandwidth, next evacuation.EvacuatingVM,
	others []evacuation.EvacuatingVM) bool {
	return p.open == nil || p.open(link, next, others)
}

// smallerIsBefore answers that a is after b, whenever it is not before it.
func smallerIsBefore(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	if a.Memory < b.Memory {
		return -1
	}
	return 1
}

// takingTurns puts another first whenever it is asked.
func takingTurns() func(hypervisor.Bandwidth, evacuation.EvacuatingVM, evacuation.EvacuatingVM) int {
	turn := 0
	return func(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
		turn++
		return []int{cmp.Compare(a.Memory, b.Memory), cmp.Compare(b.Memory, a.Memory)}[turn%2]
	}
}

// atMostTwo counts those under way, and forgets the one that asks.
func atMostTwo(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
	return len(others) <= 2
}

// lessThanTwo is atMostTwo, mended.
func lessThanTwo(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
	return len(others) < 2
}

// fairShare divides the link among the others that are on their way to the same target, of
// which there may be none.
func fairShare(link hypervisor.Bandwidth, next evacuation.EvacuatingVM,
	others []evacuation.EvacuatingVM) bool {
	sharing := 0
	for _, o := range others {
		if o.Failed == next.Failed {
			sharing++
		}
	}
	return link/hypervisor.Bandwidth(sharing-1) > 10*hypervisor.Bandwidth(hypervisor.MiB)
}

// waitForTheFirst waits until the others have left.
func waitForTheFirst(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM,
	others []evacuation.EvacuatingVM) bool {
	for len(others) > 0 {
		time.Sleep(time.Millisecond)
	}
	return true
}

// largestFirst sorts what it was only shown.
func largestFirst(_ hypervisor.Bandwidth, next evacuation.EvacuatingVM,
	others []evacuation.EvacuatingVM) bool {
	slices.SortFunc(others, func(a, b evacuation.EvacuatingVM) int {
		return cmp.Compare(b.Memory, a.Memory)
	})
	return others[0].Memory >= next.Memory
}

// hasty gives a transfer up as soon as it is not done in one pass.
func hasty(c convergence.Config, s convergence.State, p hypervisor.Progress, now time.Time) (
	convergence.State, convergence.Decision) {
	if p.Iteration > 1 {
		return s, convergence.Decision{Action: convergence.Abort, Why: convergence.Stalled}
	}
	return convergence.Converge(c, s, p, now)
}

// impatient switches to post-copy after the first pass, allowed or not.
func impatient(c convergence.Config, s convergence.State, p hypervisor.Progress, now time.Time) (
	convergence.State, convergence.Decision) {
	if p.Iteration > 1 && !s.PostCopy {
		return s, convergence.Decision{Action: convergence.StartPostCopy, Why: convergence.Stalled}
	}
	return convergence.Converge(c, s, p, now)
}

// brutal stops the guest at once, whether that is allowed or not.
func brutal(_ convergence.Config, s convergence.State, _ hypervisor.Progress, _ time.Time) (
	convergence.State, convergence.Decision) {
	if s.Paused {
		return s, convergence.Decision{}
	}
	return s, convergence.Decision{Action: convergence.Pause, Why: convergence.LastMoment}
}

// doubling doubles the downtime that it allows until the transfer ends.
func doubling(_ convergence.Config, s convergence.State, p hypervisor.Progress, _ time.Time) (
	convergence.State, convergence.Decision) {
	limit := 100 * time.Millisecond << min(p.Iteration, 10)
	if limit == s.Limit.Now {
		return s, convergence.Decision{}
	}
	s.Limit.Now = limit
	return s, convergence.Decision{Action: convergence.SetDowntime, Limit: limit,
		Why: convergence.Tuning}
}

// memory is a filter in the place of godwit's.
func memory(refuses func(*placement.VM, *placement.Host, placement.Options) bool,
) placement.Filter {
	return placement.Filter{Name: "memory", Class: placement.Capacity, Refuses: refuses,
		Explain: func(vm *placement.VM, h *placement.Host, _ placement.Options) (string, string) {
			return vm.Demand().String(), h.FreeMemory().String()
		}}
}

// swapped refuses the hosts that have room.
func swapped(vm *placement.VM, h *placement.Host, _ placement.Options) bool {
	return vm.Demand() < h.FreeMemory()
}

// everyHost refuses all of them.
func everyHost(*placement.VM, *placement.Host, placement.Options) bool { return true }

// notFull refuses the hosts that have nothing left, and forgets how much is needed.
func notFull(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
	return h.FreeMemory() <= 0
}

// anyModel approves of every host that says something about its processor.
func anyModel() placement.Filter {
	return placement.Filter{Name: "cpu-model", Class: placement.Physics,
		Refuses: func(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
			return h.Facts == nil || h.Facts.CPU == nil
		},
		Explain: func(vm *placement.VM, _ *placement.Host, _ placement.Options) (string, string) {
			return vm.Constraints.Platform.CPUModel, "unknown"
		}}
}

// perVM weighs by the memory that each VM there has, where there may be none.
func perVM() placement.Weigher {
	return placement.Weigher{Name: "per-vm", Multiplier: 1,
		Of: func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
			return float64(h.UsedMemory) / float64(h.UsedCPUs)
		}}
}

// roundRobin prefers another host whenever it is asked.
func roundRobin() placement.Weigher {
	asked := 0
	return placement.Weigher{Name: "round-robin", Multiplier: 1,
		Of: func(*placement.VM, *placement.Host, placement.Options) float64 {
			asked++
			return float64(asked % 3)
		}}
}

// reserving takes what it needs from the host that it weighs.
func reserving() placement.Weigher {
	return placement.Weigher{Name: "reserving", Multiplier: 1,
		Of: func(vm *placement.VM, h *placement.Host, _ placement.Options) float64 {
			h.UsedMemory += vm.Demand()
			return float64(h.FreeMemory())
		}}
}

// never tries nothing again that has failed.
func never(self migration.ID, attempts []migration.Attempt) time.Time {
	for _, a := range attempts {
		if a.ID != self && a.Phase == migration.Failed {
			return a.FailedAt.AddDate(1, 0, 0)
		}
	}
	return time.Time{}
}

// atOnce tries everything again at once.
func atOnce(migration.ID, []migration.Attempt) time.Time { return time.Time{} }
