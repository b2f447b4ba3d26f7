package sim

import (
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// limited is a world of which only the slots are looked at. The drain of n1 is late, and may move more.
type limited struct {
	InvariantWorld
	slots migration.Slots
}

func (l *limited) Slots() *migration.Slots { return &l.slots }

func (*limited) Limits() migration.Limits {
	return migration.Limits{PerCluster: 2, PerSource: 1, PerTarget: 3}
}

func (*limited) HostRecord(name hypervisor.HostName) *store.Host {
	h := &store.Host{}
	if name == "n1" {
		h.DrainPace = &evacuation.Pace{PerSource: 4, PerCluster: 4}
	}
	return h
}

// Of three migrations that hold a slot two are out of n1.
func TestOnlyWhoTakesASlotExceedsALimit(t *testing.T) {
	move := func(phase migration.Phase, source, target hypervisor.HostName) *store.Migration {
		m := &store.Migration{}
		m.State.Phase, m.State.Source, m.State.Target = phase, source, target
		return m
	}
	for _, row := range []struct {
		name          string
		before, after *store.Migration
		exceeds       bool
	}{
		{"one out of the host whose drain is late takes one", move(migration.Pending, "n1", ""),
			move(migration.Scheduling, "n1", "n9"), false},
		{"one out of another host takes one", move(migration.Pending, "n2", ""),
			move(migration.Scheduling, "n2", "n9"), true},
		{"one out of another host goes on", move(migration.TargetReady, "n2", "n9"),
			move(migration.Running, "n2", "n9"), false},
		{"one out of another host gets another target", move(migration.Scheduling, "n2", "n8"),
			move(migration.Scheduling, "n2", "n9"), false},
		{"one out of another host gets a target that is full", move(migration.Scheduling, "n2", "n9"),
			move(migration.Scheduling, "n2", "full"), true},
		{"one out of another host ends", move(migration.Running, "n2", "n9"),
			move(migration.Succeeded, "n2", "n9"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &limited{}
			for _, s := range []migration.Slot{{Source: "n1", Target: "full"}, {Source: "n1", Target: "full"},
				{Source: "n3", Target: "full"}} {
				s.Recorded = s.Source
				w.slots.Take(s)
			}
			if s, holds := slotOf(row.after); holds {
				w.slots.Take(s)
			}
			if err := withinLimits(w, row.before, row.after); (err != nil) != row.exceeds {
				t.Errorf("%v, want one: %t", err, row.exceeds)
			}
		})
	}
}
