package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// sabotaged is a world of two hosts and two VMs on the first, in which only
// the saboteur does anything: the controller and the agents are dead.
type sabotaged struct {
	*sim.World
	t *testing.T
}

const victim, other = "default/v1-1", "default/v1-2"

func sabotage(t *testing.T) sabotaged {
	cluster := migration.DefaultCluster()
	cluster.ParallelOutboundMigrationsPerNode = 1
	c := sim.Config{Controller: controller.Config{Cluster: &cluster}}
	w := sabotaged{grid(t, c, 2, 1, 2), t}
	w.Run(time.Minute) // they have looked, and found nothing to do
	return w
}

// silence ends all processes: from now on a fault has happened.
func (w sabotaged) silence() {
	w.At(w.Now(), sim.CrashController{For: forever})
	w.At(w.Now(), sim.CrashAgent{Host: "n1", For: forever})
	w.At(w.Now(), sim.CrashAgent{Host: "n2", For: forever})
	w.notice()
}

// notice lets the invariants be checked, and no time pass.
func (w sabotaged) notice() { w.Run(w.Now()) }

func (w sabotaged) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w sabotaged) put(r store.Record) store.Record {
	w.t.Helper()
	stored, err := w.Store().Put(w.t.Context(), r)
	w.must(err)
	w.notice()
	return stored
}

// walk stores a migration of a VM that goes forward phase by phase, and is handed the VM over.
func (w sabotaged) walk(vm hypervisor.VMID, last migration.Phase) *store.Migration {
	m := &store.Migration{Spec: migration.Spec{ID: migration.ID(vm) + "#s", VM: vm},
		State: migration.State{Source: "n1", Target: "n2"}}
	for ; m.State.Phase < last; m.State.Phase++ {
		if m.State.Phase == migration.Scheduled {
			v := *w.VM(vm)
			v.ActiveMigration = m.Spec.ID
			w.put(&v)
		}
		m = w.put(m).(*store.Migration)
	}
	return w.put(m).(*store.Migration)
}

// set overwrites a migration's phase.
func (w sabotaged) set(m *store.Migration, p migration.Phase) *store.Migration {
	next := *m
	next.State.Phase = p
	return w.put(&next).(*store.Migration)
}

func (w sabotaged) do(host hypervisor.HostName, c hypervisor.Command) {
	w.must(w.Network().Host(host).Do(w.t.Context(), victim, c))
}

// moved is false evidence that the victim runs elsewhere.
func (w sabotaged) moved() hypervisor.Release {
	return hypervisor.Release{Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget,
		VM: victim, Host: "n2", By: "a saboteur"}}
}

func (w sabotaged) boot(host hypervisor.HostName) {
	w.must(w.Network().Host(host).Boot(w.VM(victim).VM, fake.Workload{}))
	w.notice()
}

// An outrage breaks one invariant, and only that one.
type outrage struct {
	name, invariant string
	commit          func(sabotaged)
}

var outrages = []outrage{
	{"the VM is started on a second host", "runs-once", func(w sabotaged) { w.boot("n2") }},
	{"the last copy is released on false evidence", "never-lost", func(w sabotaged) {
		w.silence()
		w.do("n1", hypervisor.Kill{})
		w.do("n1", w.moved())
		w.notice()
	}},
	{"the only copy is killed while nothing is broken", "keeps-memory", func(w sabotaged) {
		w.do("n1", hypervisor.Kill{})
		w.notice()
	}},
	{"a migration goes back", "phases-forward", func(w sabotaged) {
		w.silence()
		w.set(w.walk(victim, migration.TargetReady), migration.Scheduling)
	}},
	{"a migration is handed over, and its VM does not know", "phases-forward", func(w sabotaged) {
		w.silence()
		w.set(w.walk(victim, migration.Scheduling), migration.PreparingTarget)
	}},
	{"a migration skips its target's address", "phases-forward", func(w sabotaged) {
		w.silence()
		w.set(w.walk(victim, migration.Scheduled), migration.TargetReady)
	}},
	{"an end is undone", "phases-forward", func(w sabotaged) {
		w.silence()
		m := w.walk(victim, migration.Scheduling)
		w.set(w.set(m, migration.Failed), migration.Scheduled)
	}},
	{"a migration succeeds while the VM is at its source", "success-is-arrival",
		func(w sabotaged) {
			w.silence()
			w.set(w.walk(victim, migration.Running), migration.Succeeded)
		}},
	{"a migration fails while the VM is at its target", "failure-keeps-source",
		func(w sabotaged) {
			w.silence()
			m := *w.walk(victim, migration.Running)
			w.do("n1", hypervisor.Kill{})
			w.boot("n2")
			m.Source.Began = true
			w.set(&m, migration.Failed)
		}},
	{"a source goes on although the VM has run at its target", "never-older",
		func(w sabotaged) {
			w.At(w.Now(), sim.Migrate{VM: victim})
			w.Run(w.Now() + time.Second)
			w.silence()
			w.Run(w.Now() + time.Minute) // it arrives, and no agent notices
			w.do("n2", hypervisor.Kill{})
			w.notice()
			job := w.Migrations(victim)[0].Spec.ID
			w.do("n1", hypervisor.Resume{Job: job, NeverRan: hypervisor.Evidence{
				Proof: hypervisor.OperatorWord, VM: victim, Host: "n2", Job: job,
				By: "a saboteur"}})
			w.notice()
		}},
	{"a source is given up before the VM has arrived", "released-after-arrival",
		func(w sabotaged) {
			w.silence()
			m := *w.walk(victim, migration.Running)
			m.Source.Released = true
			w.put(&m)
		}},
	{"a host was fenced and its migration does not end", "proved-ends", func(w sabotaged) {
		w.silence()
		m := *w.walk(victim, migration.Running)
		m.Source.Began = true
		m.State.Conditions = m.State.Conditions.With(migration.OutcomeUnknown)
		w.put(&m)
		w.At(w.Now(), sim.Fence{Host: "n2"})
		w.notice()
	}},
	{"two leave a host that one may leave", "limits", func(w sabotaged) {
		w.silence()
		w.walk(victim, migration.Scheduling)
		w.walk(other, migration.Scheduling)
	}},
	{"two migrations move one VM", "one-move", func(w sabotaged) {
		w.silence()
		m := w.walk(victim, migration.PreparingTarget)
		twin := &store.Migration{Spec: m.Spec}
		twin.Spec.ID += "2"
		for ; twin.State.Phase < migration.PreparingTarget; twin.State.Phase++ {
			twin = w.put(twin).(*store.Migration)
		}
		w.put(twin)
	}},
	{"a migration is left lying", "all-end", func(w sabotaged) {
		w.silence()
		w.walk(victim, migration.Running)
	}},
	{"a VM is dead and its record says nothing", "records-are-true", func(w sabotaged) {
		w.silence()
		w.do("n1", hypervisor.Kill{})
		w.notice()
	}},
	{"a host waits for a VM that does not come", "nothing-left", func(w sabotaged) {
		_, err := w.Network().Host("n2").Receive(w.t.Context(),
			hypervisor.Incoming{Job: "unknown", VM: w.VM(victim).VM})
		w.must(err)
		w.notice()
	}},
	{"a VM grows and that is not reserved", "reservations-are-true", func(w sabotaged) {
		w.silence()
		v := *w.VM(victim)
		v.Size = &store.Size{Memory: 2 * v.VM.Memory, CPUs: v.VM.CPUs}
		w.put(&v)
	}},
	{"a host shrinks under its VMs", "not-overbooked", func(w sabotaged) {
		w.silence()
		h := *w.HostRecord("n1")
		h.Host.Memory = 1
		w.put(&h)
	}},
	{"a host is drained and no controller acts", "explained", func(w sabotaged) {
		h := *w.HostRecord("n1")
		h.Taints = []placement.Taint{{Key: "kubevirt.io/drain", Effect: placement.NoSchedule}}
		w.put(&h)
	}},
}

func TestEveryInvariantCanFail(t *testing.T) {
	for _, o := range outrages {
		t.Run(o.name, func(t *testing.T) {
			w := sabotage(t)
			if w.CheckAtRest(); len(w.Violations()) > 0 {
				t.Fatalf("before: %v", w.Violations())
			}
			o.commit(w)
			if restful(o.invariant) {
				w.CheckAtRest()
			}
			var broken []string
			for _, v := range w.Violations() {
				broken = append(broken, v.Invariant)
			}
			if diff := cmp.Diff([]string{o.invariant}, slices.Compact(broken)); diff != "" {
				t.Errorf("broken (-want +got):\n%s\n%v", diff, w.Violations())
			}
		})
	}
}

// restful reports whether an invariant is about worlds at rest; in the others
// what the saboteur leaves lying is beside the point.
func restful(name string) bool {
	return slices.ContainsFunc(sim.Invariants, func(i sim.Invariant) bool {
		return i.Name == name && i.AtRest != nil
	})
}

func TestEveryInvariantIsSabotaged(t *testing.T) {
	for _, inv := range sim.Invariants {
		if !slices.ContainsFunc(outrages, func(o outrage) bool { return o.invariant == inv.Name }) {
			t.Errorf("nothing breaks %s: %s", inv.Name, inv.Says)
		}
	}
}
