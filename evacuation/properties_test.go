package evacuation_test

import (
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// holds checks a property of decisions over drawn questions.
func holds(t *testing.T, property func(*rapid.T, question, evacuation.Decision)) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		property(t, q, q.plan())
	})
}

func createdVMs(d evacuation.Decision) []hypervisor.VMID {
	var all []hypervisor.VMID
	for _, c := range d.Create {
		all = append(all, c.VM)
	}
	return all
}

func TestPlanNeverExceedsTheLimits(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		n, l := len(d.Create), q.p.Limits
		if n == 0 || !limited(q.p.Mode) {
			return
		}
		if q.load.InCluster+n > l.PerCluster || q.load.FromHost+n > l.PerNode {
			t.Fatalf("%d created with the load %+v and the limits %+v", n, q.load, l)
		}
	})
}

func TestEveryVMThatMustLeaveIsDecidedAboutOnce(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		checkPartition(t, d)
		var want []hypervisor.VMID
		for _, g := range q.guests {
			if len(q.host.Taints) > 0 || g.EvacuateFrom == "n1" && !g.Migrating {
				want = append(want, g.ID)
			}
		}
		got := createdVMs(d)
		for _, l := range d.Stay {
			got = append(got, l.VM)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("those decided about (-want +got):\n%s", diff)
		}
	})
}

func TestPlanDoesNotDependOnTheOrderOfTheGuests(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		q.guests = rapid.Permutation(q.guests).Draw(t, "shuffled")
		before := slices.Clone(q.guests)
		if diff := gocmp.Diff(d, q.plan()); diff != "" {
			t.Fatalf("shuffled (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(before, q.guests); diff != "" {
			t.Fatalf("Plan changed the guests (-want +got):\n%s", diff)
		}
	})
}

func TestAGuestThatIsGivenTwiceIsDecidedAboutOnce(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		if len(q.guests) == 0 {
			return
		}
		twice := rapid.SampledFrom(q.guests).Draw(t, "twice")
		q.guests = rapid.Permutation(append(slices.Clone(q.guests), twice)).Draw(t, "shuffled")
		if diff := gocmp.Diff(d, q.plan()); diff != "" {
			t.Fatalf("with %s twice (-want +got):\n%s", twice.ID, diff)
		}
	})
}

// Two descriptions of one VM that differ come from a view that is torn: it stays where any of
// them would keep it, whatever their order.
func TestAGuestWhoseCopiesDifferStaysWhereOneOfThemStays(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		if len(q.guests) == 0 {
			return
		}
		at := rapid.IntRange(0, len(q.guests)-1).Draw(t, "at")
		other := anyGuest(t, at)
		other.ID = q.guests[at].ID
		q.guests = append(slices.Clone(q.guests), other)
		both := q.plan()
		checkPartition(t, both)
		slices.Reverse(q.guests)
		if diff := gocmp.Diff(both, q.plan()); diff != "" {
			t.Fatalf("reversed (-want +got):\n%s", diff)
		}
		keeps := other.Final || other.Deleting || other.Moving || other.Instances > 1
		if keeps && slices.Contains(createdVMs(both), other.ID) {
			t.Fatalf("%+v is moved", other)
		}
	})
}

func TestMoreRoomNeverCreatesLess(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		q.p.Limits.PerCluster += rapid.IntRange(0, 3).Draw(t, "more in the cluster")
		q.load.FromHost -= rapid.IntRange(0, 3).Draw(t, "fewer from the host")
		more := createdVMs(q.plan())
		if less := createdVMs(d); len(less) > len(more) || !slices.Equal(less, more[:len(less)]) {
			t.Fatalf("with more room %v, with less %v", more, less)
		}
	})
}

func TestNoticesTakeOnlySpotsLeftOverInCompatibleMode(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.p.Compatible = true
		d := q.plan()
		free := q.p.Limits.Free(q.load.InCluster, q.load.FromHost)
		if !limited(q.p.Mode) {
			free = len(d.Create)
		}
		if len(d.Create)+len(d.Warn) > free {
			t.Fatalf("%d spots, %d created, %d warned", free, len(d.Create), len(d.Warn))
		}
	})
}

func TestByDefaultEveryVMThatBlocksIsNoticed(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.p.Compatible = false
		d := q.plan()
		var blocking []hypervisor.VMID
		for _, l := range d.Stay {
			if l.Blocks {
				blocking = append(blocking, l.VM)
			}
		}
		if diff := gocmp.Diff(blocking, d.Warn); diff != "" {
			t.Fatalf("noticed (-want +got):\n%s", diff)
		}
	})
}

func TestOnlyAVMThatWantsToAndCanGetsAMigration(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		for _, c := range d.Create {
			i := slices.IndexFunc(q.guests, func(g evacuation.VM) bool { return g.ID == c.VM })
			g := q.guests[i]
			switch s := g.Strategy.Or(q.p.Strategy); s {
			case evacuation.Unset, evacuation.None, evacuation.External:
				t.Fatalf("%s is moved with the strategy %q", g.ID, s)
			}
			if g.Final || g.Deleting || g.Moving || !g.Migratable || g.Instances > 1 {
				t.Fatalf("%+v is moved", g)
			}
		}
	})
}

func TestNothingIsDecidedAboutAMissingHostOrOnAStaleView(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.host.Missing = rapid.Bool().Draw(t, "missing")
		if !q.host.Missing {
			q.load.Unseen = rapid.IntRange(1, 3).Draw(t, "unseen")
		}
		if diff := gocmp.Diff(evacuation.Decision{}, q.plan()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestAFreeSpotIsNeverWasted(t *testing.T) {
	holds(t, func(t *rapid.T, q question, d evacuation.Decision) {
		waits := slices.ContainsFunc(d.Stay, func(l evacuation.RemainingVM) bool { return l.Waits })
		free := q.p.Limits.Free(q.load.InCluster, q.load.FromHost)
		if waits && (!limited(q.p.Mode) || len(d.Create) < free) {
			t.Fatalf("a VM waits although only %d of %d spots are used", len(d.Create), free)
		}
	})
}

func TestByDefaultAVMThatWaitsIsLookedAtAgain(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.p.Compatible = false
		d := q.plan()
		unsettled := slices.ContainsFunc(d.Stay, func(l evacuation.RemainingVM) bool {
			return l.Waits || l.Blocks
		})
		if unsettled != (d.Again > 0) {
			t.Fatalf("again after %v with %+v", d.Again, d.Stay)
		}
	})
}

func TestWithoutLimitsFreeSpotsIsQueueAll(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.p.Compatible = false
		q.p.Limits = evacuation.Limits{PerCluster: 1000, PerNode: 1000}
		q.p.Mode = evacuation.QueueAll
		want := q.plan()
		q.p.Mode = evacuation.FreeSpots
		if diff := gocmp.Diff(want, q.plan()); diff != "" {
			t.Fatalf("(-QueueAll +FreeSpots):\n%s", diff)
		}
	})
}

func TestUrgentThenLargeVMsGoFirst(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.p.Compatible, q.p.Order = false, evacuation.LargestFirst
		memory := map[hypervisor.VMID]hypervisor.Bytes{}
		for _, g := range q.guests {
			memory[g.ID] = g.Memory
		}
		d := q.plan()
		for i := 1; i < len(d.Create); i++ {
			a, b := d.Create[i-1], d.Create[i]
			if a.Priority < b.Priority ||
				a.Priority == b.Priority && memory[a.VM] < memory[b.VM] {
				t.Fatalf("%+v before %+v", a, b)
			}
		}
	})
}

// What was created is under way in the next view, and is not created again;
// and when every creation finishes, the host is empty of candidates in the end.
func TestADrainComesToAnEnd(t *testing.T) {
	holds(t, func(t *rapid.T, q question, _ evacuation.Decision) {
		q.load = evacuation.Load{}
		q.p.Limits = evacuation.Limits{PerCluster: 2, PerNode: 1}
		for range len(q.guests) + 1 {
			gone := createdVMs(q.plan())
			for i := range q.guests {
				if slices.Contains(gone, q.guests[i].ID) {
					q.guests[i].Moving = true
				}
			}
			if again := createdVMs(q.plan()); containsAny(again, gone) {
				t.Fatalf("created twice: %v, then %v", gone, again)
			}
			q.guests = slices.DeleteFunc(q.guests, func(g evacuation.VM) bool {
				return slices.Contains(gone, g.ID)
			})
		}
		if d := q.plan(); len(d.Create) > 0 {
			t.Fatalf("still to move: %v", createdVMs(d))
		}
	})
}

func containsAny(all, some []hypervisor.VMID) bool {
	return slices.ContainsFunc(all, func(vm hypervisor.VMID) bool {
		return slices.Contains(some, vm)
	})
}
