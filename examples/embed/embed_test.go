package embed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/examples/embed"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// world is a cluster of objects, with pods that start at once and agents that obey.
type world struct {
	t     *testing.T
	moves []*embed.Move
	vms   map[string]*embed.VM
	log   []string
	// rival lets another process write a Move between our reading and our writing.
	rival int
	full  bool
}

func (w *world) Move(_ context.Context, name string) (*embed.Move, error) {
	for _, m := range w.moves {
		if string(m.Spec.ID) == name {
			c := *m
			return &c, nil
		}
	}
	return nil, nil
}

func (w *world) Moves(context.Context) ([]*embed.Move, error) { return w.moves, nil }

func (w *world) VM(_ context.Context, m *embed.Move) (*embed.VM, error) {
	v := w.vms[string(m.Spec.VM)]
	if v == nil {
		return nil, nil
	}
	c := *v
	return &c, nil
}

func (w *world) UpdateMove(_ context.Context, m *embed.Move) error {
	for i, old := range w.moves {
		if old.Spec.ID != m.Spec.ID {
			continue
		}
		if w.rival > 0 {
			w.rival--
			old.Version++
		}
		if old.Version != m.Version {
			return embed.ErrConflict
		}
		if old.State.Phase != m.State.Phase {
			w.log = append(w.log, fmt.Sprintf("%s %s", m.Spec.ID, m.State.Phase))
		}
		c := *m
		c.Version++
		w.moves[i] = &c
	}
	return nil
}

func (w *world) UpdateVM(_ context.Context, vm *embed.VM) error {
	for name, old := range w.vms {
		if old.Move == "" && vm.Move != "" && strings.HasPrefix(string(vm.Move), name) {
			c := *vm
			w.vms[name] = &c
		}
	}
	return nil
}

// Do is what the agents do.
func (w *world) Do(_ context.Context, a migration.Action, m *embed.Move) error {
	for _, stored := range w.moves {
		if stored.Spec.ID != m.Spec.ID {
			continue
		}
		if stored.State != m.State {
			w.t.Errorf("%s is done for %s before it was stored", a, m.Spec.ID)
		}
		switch a {
		case migration.CreateTarget:
			stored.Target.Exists, stored.Target.Ready = true, true
		case migration.DeleteTarget:
			stored.Target = migration.Instance{}
		}
	}
	return nil
}

// agents report what has become of the moves that were handed over.
func (w *world) agents() {
	for _, m := range w.moves {
		r := &m.Report
		switch m.State.Phase {
		case migration.PreparingTarget:
			r.Address = true
		case migration.TargetReady:
			r.Began, r.Started = true, true
		case migration.Running:
			r.Completed, r.Arrived, m.Target.Told = true, true, true
		}
	}
}

func newWorld(t *testing.T, vms ...string) (*world, *embed.Reconciler) {
	w := &world{t: t, vms: map[string]*embed.VM{}}
	for _, name := range vms {
		w.vms[name] = &embed.VM{Node: "n1", Guest: migration.VMStatus{Exists: true, Running: true}}
		w.moves = append(w.moves, &embed.Move{Spec: migration.Spec{
			ID: migration.ID(name + "#1"), VM: hypervisor.VMID(name)}})
	}
	now := time.Unix(0, 0)
	return w, &embed.Reconciler{Cluster: w, Config: migration.Config{}.Complete(),
		Limits: migration.Limits{PerCluster: 1, PerSource: 1, PerTarget: 1},
		Now:    func() time.Time { now = now.Add(time.Second); return now },
		Schedule: func(context.Context, *embed.Move, *embed.VM) (hypervisor.HostName, error) {
			if w.full {
				return "", nil
			}
			return "n2", nil
		}}
}

// rounds reconciles every Move, and lets the agents act, so many times.
func (w *world) rounds(r *embed.Reconciler, n int) {
	for range n {
		for _, m := range w.moves {
			_, err := r.Reconcile(w.t.Context(), embed.Request{Name: string(m.Spec.ID)})
			if err != nil {
				w.t.Fatal(err)
			}
		}
		w.agents()
	}
}

func TestAMoveGoesThroughAllPhases(t *testing.T) {
	w, r := newWorld(t, "web")
	w.rival = 2 // two conflicts cost two looks
	w.rounds(r, 12)
	want := "web#1 Pending, web#1 Scheduling, web#1 Scheduled, web#1 PreparingTarget, " +
		"web#1 TargetReady, web#1 Running, web#1 Succeeded"
	if got := strings.Join(w.log, ", "); got != want {
		t.Errorf("the phases are\n%s, want\n%s", got, want)
	}
	if m := w.moves[0]; m.State.Source != "n1" || m.State.Target != "n2" {
		t.Errorf("it went %s→%s, want n1→n2", m.State.Source, m.State.Target)
	}
}

func TestALimitHoldsTheSecondBack(t *testing.T) {
	w, r := newWorld(t, "web", "db")
	w.rounds(r, 4)
	if p := w.moves[1].State.Phase; p != migration.Pending {
		t.Errorf("db is %s while web moves, want Pending", p)
	}
	w.rounds(r, 20)
	for _, m := range w.moves {
		if m.State.Phase != migration.Succeeded {
			t.Errorf("%s is %s in the end, want Succeeded", m.Spec.ID, m.State.Phase)
		}
	}
}

func TestNoRoomNoTarget(t *testing.T) {
	w, r := newWorld(t, "web")
	w.full = true
	w.rounds(r, 5)
	if m := w.moves[0]; m.State.Phase.Active() || m.Target.Exists {
		t.Errorf("without room it is %s, and its target exists: %v", m.State.Phase, m.Target.Exists)
	}
}

func TestACancelledMoveKeepsNothing(t *testing.T) {
	w, r := newWorld(t, "web")
	w.rounds(r, 2)
	w.moves[0].Cancel = true
	w.rounds(r, 6)
	if m := w.moves[0]; m.State.Phase != migration.Failed || m.Target.Exists {
		t.Errorf("it is %s, and its target exists: %v", m.State.Phase, m.Target.Exists)
	}
}

func TestErrorsAreTheClients(t *testing.T) {
	w, r := newWorld(t, "web")
	lost := errors.New("connection lost")
	w.rounds(r, 1)
	r.Schedule = func(context.Context, *embed.Move, *embed.VM) (hypervisor.HostName, error) {
		return "", lost
	}
	if _, err := r.Reconcile(t.Context(), embed.Request{Name: "web#1"}); !errors.Is(err, lost) {
		t.Errorf("the error is %v, want %v", err, lost)
	}
	res, err := r.Reconcile(t.Context(), embed.Request{Name: "gone"})
	if err != nil || res.RequeueAfter != 0 {
		t.Errorf("of a Move that is gone: %v, %v", res, err)
	}
}
