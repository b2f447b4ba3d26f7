package sim

import (
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// aged is a world of one VM, whose copies and past are looked at.
type aged struct {
	InvariantWorld
	Pasts
	copies []fake.Copy
}

func (a *aged) Copies(hypervisor.VMID) []fake.Copy { return a.copies }

func (a *aged) Past(vm hypervisor.VMID) Past { return a.Pasts.Past(vm) }

func TestNeverOlder(t *testing.T) {
	states := func(n1, n2 hypervisor.DomainState) []fake.Copy {
		return []fake.Copy{{Host: "n1", State: n1}, {Host: "n2", State: n2}}
	}
	const (
		runs, waits, stopped = hypervisor.Running, hypervisor.Receiving, hypervisor.HandedOver
		dead, paused         = hypervisor.Crashed, hypervisor.Paused
	)
	moved := [][]fake.Copy{states(runs, waits), states(hypervisor.HandingOver, waits),
		states(stopped, runs)}
	for _, row := range []struct {
		name string
		then [][]fake.Copy
		old  bool
	}{
		{"it is released", [][]fake.Copy{states(hypervisor.Absent, runs)}, false},
		{"the target dies and it goes on", [][]fake.Copy{states(stopped, dead),
			states(runs, dead)}, true},
		{"it rests, and then goes on", [][]fake.Copy{states(stopped, dead), states(paused, dead),
			states(runs, dead)}, true},
		{"it goes on at once", [][]fake.Copy{states(runs, dead)}, true},
		{"its memory is given up, and it starts anew", [][]fake.Copy{states(dead, dead),
			states(hypervisor.Starting, dead), states(runs, dead)}, false},
		{"it starts anew at once", [][]fake.Copy{states(hypervisor.Starting, dead),
			states(runs, dead)}, false},
		{"it comes back by another move", [][]fake.Copy{states(hypervisor.Absent, runs),
			states(waits, runs), states(waits, stopped), states(runs, stopped)}, false},
		{"it goes on after another move", [][]fake.Copy{states(hypervisor.Absent, runs),
			states(waits, runs), states(runs, stopped), states(dead, stopped),
			states(dead, runs)}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, old := &aged{}, false
			for _, w.copies = range slices.Concat(moved, row.then) {
				old = old || neverOlder(w, "web") != nil
				w.Became("web", w.copies)
			}
			if old != row.old {
				t.Errorf("goes on with its old memory: %t, want %t", old, row.old)
			}
		})
	}
	w := &aged{}
	for _, w.copies = range [][]fake.Copy{states(stopped, waits), states(paused, waits),
		states(stopped, hypervisor.Absent), states(runs, hypervisor.Absent)} {
		if err := neverOlder(w, "web"); err != nil {
			t.Errorf("it ran nowhere else: %v", err)
		}
		w.Became("web", w.copies)
	}
	if w.of != nil {
		t.Errorf("%v is kept of a VM that has run nowhere else", w.of)
	}
}
