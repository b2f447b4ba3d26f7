package migration_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

var hosts = []hypervisor.HostName{"", "n1", "n2", "n3"}

var (
	anySlot = rapid.Custom(func(t *rapid.T) migration.Slot {
		return migration.Slot{Source: pick(t, hosts...), Recorded: pick(t, hosts...),
			Target: pick(t, hosts...)}
	})
	anyLimits = rapid.Custom(func(t *rapid.T) migration.Limits {
		n := rapid.IntRange(-1, 6)
		return migration.Limits{PerCluster: n.Draw(t, "cluster"), PerSource: n.Draw(t, "source"),
			PerTarget: n.Draw(t, "target")}
	})
)

// naive counts as KubeVirt does: by looking at every migration.
type naive []migration.Slot

func (n naive) count(matches func(migration.Slot) bool) int {
	count := 0
	for _, s := range n {
		if matches(s) {
			count++
		}
	}
	return count
}

func (n naive) from(host hypervisor.HostName) int {
	return n.count(func(s migration.Slot) bool {
		return host != "" && (s.Source == host || s.Recorded == host)
	})
}

func (n naive) to(host hypervisor.HostName) int {
	return n.count(func(s migration.Slot) bool { return host != "" && s.Target == host })
}

func (n naive) admit(l migration.Limits, host hypervisor.HostName) migration.Gate {
	switch {
	case len(n) >= l.PerCluster:
		return migration.ClusterFull
	case n.from(host) >= l.PerSource:
		return migration.SourceFull
	}
	return migration.Open
}

// The counts equal what a look at every migration says, after any taking and
// returning in any order, and answers are the same.
func TestSlotsCountAsANaiveLookDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var slots migration.Slots
		var held naive
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				slot := anySlot.Draw(t, "slot")
				slots.Take(slot)
				held = append(held, slot)
			},
			"return": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("none is held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				slots.Return(held[i])
				held = slices.Delete(held, i, i+1)
			},
			"": func(t *rapid.T) {
				l := anyLimits.Draw(t, "limits")
				for _, host := range hosts {
					want := [4]int{len(held), held.from(host), held.to(host),
						int(held.admit(l, host))}
					got := [4]int{slots.Running(), slots.From(host), slots.To(host),
						int(slots.Admit(l, host))}
					if want != got {
						t.Fatalf("%q: %v, want %v", host, got, want)
					}
				}
			},
		})
	})
}

// What is taken and returned leaves nothing behind.
func TestReturnUndoesTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var slots migration.Slots
		held := rapid.SliceOf(anySlot).Draw(t, "slots")
		for _, s := range held {
			slots.Take(s)
		}
		for _, i := range rapid.Permutation(indices(len(held))).Draw(t, "order") {
			slots.Return(held[i])
			for _, host := range hosts {
				if min(slots.Running(), slots.From(host), slots.To(host)) < 0 {
					t.Fatalf("%q has less than nothing", host)
				}
			}
		}
		for _, host := range hosts {
			if max(slots.Running(), slots.From(host), slots.To(host)) != 0 {
				t.Fatalf("%q still holds something", host)
			}
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// A caller that asks before each start never exceeds a limit.
func TestAQueueThatAsksKeepsTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLimits.Draw(t, "limits")
		var slots migration.Slots
		var held naive
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			if len(held) > 0 && rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
				slots.Return(held[0])
				held = held[1:]
				continue
			}
			home := pick(t, hosts[1:]...)
			s := migration.Slot{Source: home, Recorded: home, Target: pick(t, hosts[1:]...)}
			if slots.Admit(l, s.Source) == migration.Open &&
				slots.To(s.Target) < l.PerTarget {
				slots.Take(s)
				held = append(held, s)
			}
			for _, host := range hosts[1:] {
				if len(held) > max(0, l.PerCluster) || held.from(host) > max(0, l.PerSource) ||
					held.to(host) > max(0, l.PerTarget) {
					t.Fatalf("%+v do not keep %+v", held, l)
				}
			}
		}
	})
}

// A slot is held from the creation of the target until the end.
func TestHoldsSlot(t *testing.T) {
	for _, p := range migration.Phases() {
		for i := range 4 {
			c := struct{ target, vm bool }{i&1 != 0, i&2 != 0}
			active := p >= migration.Scheduling && p <= migration.Running
			early := p <= migration.Pending && c.target && c.vm
			if got := migration.HoldsSlot(p, c.target, c.vm); got != (active || early) {
				t.Errorf("%q, target %t, VM %t: %t", p, c.target, c.vm, got)
			}
		}
	}
}

var anySpec = rapid.Custom(func(t *rapid.T) migration.Spec {
	return migration.Spec{ID: migration.ID(fmt.Sprint("m", rapid.IntRange(0, 3).Draw(t, "id"))),
		Created: ago(rapid.IntRange(0, 2).Draw(t, "age")),
		Priority: pick(t, migration.Lowest, migration.SystemMaintenance, migration.UserTriggered,
			migration.SystemCritical)}
})

// Two migrations are never equal unless they are the same one, and the order has
// no circles: no migration starves among equals.
func TestByPrecedenceIsAStrictTotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anySpec.Draw(t, "a"), anySpec.Draw(t, "b"), anySpec.Draw(t, "c")
		ab, ba := migration.ByPrecedence(a, b), migration.ByPrecedence(b, a)
		if ab != -ba || ab == 0 && a != b {
			t.Fatalf("%d one way, %d the other", ab, ba)
		}
		if ab <= 0 && migration.ByPrecedence(b, c) <= 0 && migration.ByPrecedence(a, c) > 0 {
			t.Fatal("the order has a circle")
		}
		if a.Priority > b.Priority && ab >= 0 || a.Priority == b.Priority &&
			a.Created.Before(b.Created) && ab >= 0 {
			t.Fatalf("%+v does not go before %+v", a, b)
		}
	})
}

// The more urgent a migration is, the sooner it asks again.
func TestRequeue(t *testing.T) {
	var got []string
	for _, word := range []string{"", "nonsense", "system-maintenance", "user-triggered",
		"system-critical"} {
		p := migration.ParsePriority(word)
		got = append(got, fmt.Sprint(word, " ", p, " ", p.Requeue()))
	}
	want := []string{" 0 5s", "nonsense 0 5s", "system-maintenance 20 5s", "user-triggered 50 3s",
		"system-critical 100 1s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
}
