package evacuation_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// oracle is the arithmetic of KubeVirt v1.8.4 evacuation.go:376-420 (sync), as
// literal as it can be: how many migrations and notices, and when to look again.
func oracle(l evacuation.Limits, load evacuation.Load, candidates, nonMigrateable int) (
	create, warn int, addAfter time.Duration) {
	if candidates == 0 && nonMigrateable == 0 {
		return 0, 0, 0
	}
	freeSpotsPerCluster := l.PerCluster - load.InCluster
	freeSpotsPerThisSourceNode := l.PerNode - load.FromHost
	freeSpots := int(math.Min(float64(freeSpotsPerCluster), float64(freeSpotsPerThisSourceNode)))
	if freeSpots <= 0 {
		return 0, 0, 5 * time.Second
	}
	diff := int(math.Min(float64(freeSpots), float64(candidates)))
	remaining := freeSpots - diff
	remainingForNonMigrateableDiff := int(math.Min(float64(remaining), float64(nonMigrateable)))
	if diff == 0 {
		if remainingForNonMigrateableDiff > 0 {
			addAfter = 1 * time.Minute
		}
		return 0, remainingForNonMigrateableDiff, addAfter
	}
	return diff, remainingForNonMigrateableDiff, 0
}

func TestFreeSpotsIsKubeVirtsArithmetic(t *testing.T) {
	type answer struct {
		Create, Warn int
		Again        time.Duration
	}
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		q.p.Compatible, q.p.Mode = true, freeSpotsMode().Draw(t, "free spots")
		if rapid.Bool().Draw(t, "huge limits") {
			q.p.Limits.PerCluster += math.MaxUint32
		}
		d := q.plan()
		candidates, nonMigrateable := len(d.Create), 0
		for _, l := range d.Stay {
			if l.Waits {
				candidates++
			}
			if l.Blocks {
				nonMigrateable++
			}
		}
		var want answer
		want.Create, want.Warn, want.Again = oracle(q.p.Limits, q.load, candidates, nonMigrateable)
		got := answer{len(d.Create), len(d.Warn), d.Again}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("%d candidates, %d blocked (-want +got):\n%s", candidates,
				nonMigrateable, diff)
		}
	})
}

// filter is KubeVirt's candidate filter as a ladder, v1.8.4 evacuation.go
// (filterRunningNonMigratingVMIs).
func filter(q question) (candidates, nonMigrateable []hypervisor.VMID) {
	for _, g := range q.guests {
		if len(q.host.Taints) == 0 && (g.EvacuateFrom != "n1" || g.Migrating) {
			continue
		}
		if g.Final || g.Deleting {
			continue
		}
		strategy := q.p.Strategy
		if g.Strategy != evacuation.Unset {
			strategy = g.Strategy
		}
		wants := strategy == evacuation.LiveMigrate
		if strategy == evacuation.LiveMigrateIfPossible {
			wants = g.Migratable && q.p.Mode != evacuation.FreeSpotsV059
		}
		if !wants {
			continue
		}
		if !g.Migratable {
			nonMigrateable = append(nonMigrateable, g.ID)
			continue
		}
		if g.Moving {
			continue
		}
		if g.Instances > 1 {
			continue
		}
		if g.Held != "" && !q.p.Compatible { // godwit's own
			continue
		}
		candidates = append(candidates, g.ID)
	}
	slices.Sort(candidates)
	slices.Sort(nonMigrateable)
	return candidates, nonMigrateable
}

func TestTheRulesAreKubeVirtsFilter(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		candidates, blocked := createdVMs(d), []hypervisor.VMID(nil)
		for _, l := range d.Stay {
			switch {
			case l.Waits:
				candidates = append(candidates, l.VM)
			case l.Blocks:
				blocked = append(blocked, l.VM)
			}
		}
		slices.Sort(candidates)
		want, wantBlocked := filter(q)
		if diff := gocmp.Diff(want, candidates); diff != "" {
			t.Fatalf("candidates (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(wantBlocked, blocked); diff != "" {
			t.Fatalf("blocked (-want +got):\n%s", diff)
		}
	})
}

// makespan is when the last VM has left if each takes as long as its memory,
// in the given order, each in the first of the slots that is free.
func makespan(order []hypervisor.VMID, memory map[hypervisor.VMID]hypervisor.Bytes,
	slots int) hypervisor.Bytes {
	busy := make([]hypervisor.Bytes, slots)
	for _, vm := range order {
		busy[slices.Index(busy, slices.Min(busy))] += memory[vm]
	}
	return slices.Max(busy)
}

// The best of all ways to share the VMs out to two slots.
func shortest(memory []hypervisor.Bytes) hypervisor.Bytes {
	best := hypervisor.Bytes(math.MaxInt64)
	for way := range 1 << len(memory) {
		var busy [2]hypervisor.Bytes
		for i, m := range memory {
			busy[way>>i&1] += m
		}
		best = min(best, max(busy[0], busy[1]))
	}
	return best
}

func TestLargestFirstIsWithinASixthOfTheShortestDrainOverTwoSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := question{host: drained("n1")}
		q.p.Strategy = evacuation.LiveMigrate
		memory := map[hypervisor.VMID]hypervisor.Bytes{}
		var all []hypervisor.Bytes
		for i := range rapid.IntRange(1, 8).Draw(t, "guests") {
			g := movable(string(rune('a' + i)))
			g.Memory = hypervisor.Bytes(rapid.IntRange(1, 64).Draw(t, "GiB")) * hypervisor.GiB
			memory[g.ID] = g.Memory
			all = append(all, g.Memory)
			q.guests = append(q.guests, g)
		}
		got, best := makespan(createdVMs(q.plan()), memory, 2), shortest(all)
		if 6*got > 7*best { // 4/3 - 1/(3*2) = 7/6
			t.Fatalf("%v instead of %v", got, best)
		}
	})
}
