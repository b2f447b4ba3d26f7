package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// world is a model cluster: machines with power, agents, fence devices, and two failover controllers
// that know nothing of each other. Nothing keeps the second from writing, so that
// safety rests on the conditions of each writing alone.
type world struct {
	*harness
	rt          *rapid.T
	machines    map[hostName]*machine
	names       []hostName
	controllers []*controller.FailoverController
	lines       []*sim.FlakyStore
	stale       time.Time // until when a participant's view may be stale, and its counts wrong
	outcomes    map[string]string
}

// machine is a host as it is, whatever the records say.
type machine struct {
	power  bool
	boot   int
	agent  bool // the agent runs and reaches the store
	runs   map[hypervisor.VMID]bool
	beat   time.Time // when it gave its last sign
	beaten bool
}

func newWorld(t *rapid.T) *world {
	w := &world{harness: newHarness(t, controller.FailoverConfig{FenceAtOnce: 2}), rt: t,
		machines: map[hostName]*machine{}, outcomes: map[string]string{}}
	for i := range rapid.IntRange(2, 6).Draw(t, "hosts") {
		name := hostName(fmt.Sprint("n", i+1))
		w.names = append(w.names, name)
		w.put(&store.Host{Host: hypervisor.Host{Name: name, Memory: 8 * gib, CPUs: 8}})
		w.machines[name] = &machine{power: true, agent: true, boot: 1,
			runs: map[hypervisor.VMID]bool{}}
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "VMs") {
		w.addVM(fmt.Sprint("vm", i), w.names[i%len(w.names)],
			hypervisor.Bytes(rapid.IntRange(1, 4).Draw(t, "GiB"))*gib)
	}
	for i := range 2 {
		w.controllers, w.lines = append(w.controllers, nil), append(w.lines, nil)
		w.reborn(i)
	}
	return w
}

// reborn starts a failover controller that knows nothing, with a connection of its own.
func (w *world) reborn(i int) {
	w.lines[i] = &sim.FlakyStore{Real: w.store}
	w.controllers[i] = controller.NewFailover(w.config, w.lines[i], w, w.harness)
}

// Cut implements controller.Fencer: an attempt takes a while, and then ends as it was
// drawn when it began.
func (w *world) Cut(_ context.Context, host hostName, attempt string) (string, error) {
	key := string(host) + "/" + attempt
	if _, begun := w.outcomes[key]; !begun {
		w.mayBeCut(host)
		w.outcomes[key] = rapid.SampledFrom([]string{"done", "done", "late", "fails", "none"}).
			Draw(w.rt, "cut of "+string(host))
	}
	switch w.outcomes[key] {
	case "late":
		w.outcomes[key] = "done"
		return "", nil
	case "fails":
		return "", errors.New("the device does not answer")
	case "none":
		return "", hypervisor.Unsupported
	}
	w.cutPower(host)
	return "fence_model", nil
}

// mayBeCut checks what must hold when a cut begins: the host has been silent for long,
// and few others are.
func (w *world) mayBeCut(host hostName) {
	c := w.config.Complete()
	if m := w.machines[host]; m.beaten && w.now.Sub(m.beat) < c.FenceAfter {
		w.rt.Fatalf("%s is cut %v after its last sign", host, w.now.Sub(m.beat))
	}
	silent, all := 0, 0
	for name, m := range w.machines {
		h := w.harness.host(name)
		if h.ConfirmedDownBy != "" {
			continue
		}
		// A failover controller may have seen a heartbeat up to half a Grace after it was given.
		if all++; h.Fenced || w.now.Sub(m.beat) >= c.Grace*3/2 {
			silent++
		}
	}
	if silent > c.Allowed(all) && w.now.After(w.stale) {
		w.rt.Fatalf("%s is cut while %d of %d hosts are silent", host, silent, all)
	}
}

func (w *world) cutPower(host hostName) {
	m := w.machines[host]
	m.power, m.agent, m.runs = false, false, map[hypervisor.VMID]bool{}
}

// act lets the agent of a host do one round: a heartbeat, then what the records say.
func (w *world) act(name hostName) {
	m := w.machines[name]
	if !m.power || !m.agent {
		return
	}
	w.harness.beats = map[hostName]string{name: fmt.Sprint("boot", m.boot)}
	w.harness.beat()
	m.beat, m.beaten = w.now, true
	h := w.harness.host(name)
	for _, v := range w.vms() {
		switch r := w.rebuild(string(v.VM.ID), name); {
		case v.Host == name && !m.runs[v.VM.ID] && h.Fencing == nil && !h.Fenced && v.ActiveMigration == "":
			next := *v
			next.Boots++
			if _, err := w.store.Put(ctx, &next, h); err == nil {
				m.runs[v.VM.ID] = true
			}
		case v.Host != name && r != nil && !r.Cleaned:
			delete(m.runs, v.VM.ID)
			next := *r
			next.Cleaned = true
			w.put(&next)
		}
	}
}

func (w *world) vms() []*store.VM {
	var all []*store.VM
	for i := range 8 {
		if v := w.vm(fmt.Sprint("vm", i)); v != nil {
			all = append(all, v)
		}
	}
	return all
}

// watch lets a failover controller look, and checks that every VM that changes hosts leaves one where
// it does not run.
func (w *world) watch(i int) {
	before := w.vms()
	wake, err := w.controllers[i].Reconcile(ctx, w.now)
	if wake.Before(w.now) {
		w.rt.Fatalf("it wants to look again at %v, and it is %v", wake, w.now)
	}
	if err != nil && w.lines[i].Died {
		w.reborn(i)
	}
	for _, old := range before {
		now := w.vm(string(old.VM.ID))
		if now.Host == old.Host || old.Host == "" {
			continue
		}
		h, r := w.harness.host(old.Host), w.rebuild(string(old.VM.ID), old.Host)
		switch {
		case w.machines[old.Host].runs[old.VM.ID]:
			w.rt.Fatalf("%s leaves %s, where it runs", old.VM.ID, old.Host)
		case !h.Fenced || r == nil || !r.Evidence.Dead(old.VM.ID, old.Host):
			w.rt.Fatalf("%s leaves %s without evidence: %+v", old.VM.ID, old.Host, r)
		case old.ActiveMigration != "":
			w.rt.Fatalf("%s leaves %s, and a migration claims it", old.VM.ID, old.Host)
		}
	}
}

func (w *world) anyHost() hostName { return rapid.SampledFrom(w.names).Draw(w.rt, "host") }

func (w *world) anyController() int { return rapid.IntRange(0, 1).Draw(w.rt, "controller") }

// pass lets time pass in which agents send heartbeats and failover controllers look.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(5 * time.Second)
		for _, name := range w.names {
			w.act(name)
		}
		for i := range w.controllers {
			w.watch(i)
		}
		w.check()
	}
}

// check checks that nothing runs twice.
func (w *world) check() {
	on := map[hypervisor.VMID]hostName{}
	for _, name := range w.names {
		for vm := range w.machines[name].runs {
			if on[vm] != "" {
				w.rt.Fatalf("%s runs on %s and %s", vm, on[vm], name)
			}
			on[vm] = name
		}
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	seconds := func(least, most int) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(w.rt, "seconds")) * time.Second
	}
	return map[string]func(*rapid.T){
		"time passes":         func(*rapid.T) { w.pass(seconds(1, 100)) },
		"more time passes":    func(*rapid.T) { w.pass(seconds(60, 200)) },
		"no look takes place": func(*rapid.T) { w.now = w.now.Add(seconds(1, 300)) },
		"an agent acts":       func(*rapid.T) { w.act(w.anyHost()) },
		"a controller looks":  func(*rapid.T) { w.watch(w.anyController()) },
		"an agent falls ill":  func(*rapid.T) { w.machines[w.anyHost()].agent = false },
		"an agent recovers": func(*rapid.T) {
			m := w.machines[w.anyHost()]
			m.agent = m.power
		},
		"the power goes": func(*rapid.T) { w.cutPower(w.anyHost()) },
		"the power comes": func(*rapid.T) {
			if m := w.machines[w.anyHost()]; !m.power {
				m.power, m.agent, m.boot = true, true, m.boot+1
			}
		},
		"an operator gives their word, which is good": func(*rapid.T) {
			if name := w.anyHost(); !w.machines[name].power {
				w.changeHost(name, func(h *store.Host) { h.ConfirmedDownBy = "alice" })
			}
		},
		"an operator changes their mind": func(*rapid.T) {
			w.changeHost(w.anyHost(), func(h *store.Host) { h.ConfirmedDownBy = "" })
		},
		"a migration begins, or ends": func(*rapid.T) {
			v := rapid.SampledFrom(w.vms()).Draw(w.rt, "VM")
			w.changeVM(string(v.VM.ID), func(v *store.VM) {
				v.ActiveMigration = map[bool]hypervisor.JobID{true: "m#1"}[v.ActiveMigration == ""]
			})
		},
		"a controller dies": func(*rapid.T) { w.reborn(w.anyController()) },
		"a controller will die mid-write": func(*rapid.T) {
			line := w.lines[w.anyController()]
			line.Dies, line.After = true, rapid.IntRange(0, 4).Draw(w.rt, "writes")
		},
		"writes are not answered": func(*rapid.T) {
			w.lines[w.anyController()].DropAnswers = rapid.IntRange(1, 3).Draw(w.rt, "writes")
		},
		"a view goes stale, or not": func(*rapid.T) {
			line := w.lines[w.anyController()]
			line.StaleReads = !line.StaleReads
			w.stale = w.now.Add(time.Hour)
		},
		"": func(*rapid.T) { w.check() },
	}
}

// settle ends all faults but those of machines, and lets the failover controllers finish: then every
// VM whose host is off is elsewhere, or a controller can say why not.
func (w *world) settle() {
	for i := range w.controllers {
		w.reborn(i)
	}
	for _, v := range w.vms() {
		w.changeVM(string(v.VM.ID), func(v *store.VM) { v.ActiveMigration = "" })
	}
	for key, how := range w.outcomes {
		if how == "late" {
			w.outcomes[key] = "done"
		}
	}
	w.pass(3 * time.Minute)
	for _, v := range w.vms() {
		h := w.harness.host(v.Host)
		if h.NotReady == w.machines[v.Host].agent {
			w.rt.Errorf("%s is lost: %v, and its agent runs: %v", v.Host, h.NotReady, !h.NotReady)
		}
		why := w.controllers[0].Why(v.VM.ID, w.now)
		if h.NotReady && len(why) == 0 {
			w.rt.Errorf("%s is still on %s, and no controller knows why", v.VM.ID, v.Host)
		}
		if m := w.machines[v.Host]; m.agent && !m.runs[v.VM.ID] {
			w.rt.Errorf("%s is on %s, which is well, and does not run", v.VM.ID, v.Host)
		}
	}
}

func TestNothingRunsTwiceWhateverHappens(t *testing.T) {
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.pass(10 * time.Second)
		t.Repeat(w.actions())
		w.settle()
		if checks++; testutil.InLongTier() && checks%1000 == 0 {
			fmt.Println(checks, "worlds")
		}
	})
}

// TestTheModelReachesWhatItIsAbout keeps the model from proving nothing.
func TestTheModelReachesWhatItIsAbout(t *testing.T) {
	testutil.Unraced(t)
	if testing.Short() {
		t.Skip("with -short the model takes too few steps")
	}
	said := map[string]bool{}
	want := []string{"is lost", "is fenced", "is rebuilt", "is heard again", "is back",
		"fences no host", "counts as fenced", "withdrawn", "was not fenced", "fits nowhere",
		"cannot be fenced", "stays on"}
	gen := rapid.Custom(func(t *rapid.T) []string {
		w := newWorld(t)
		w.pass(10 * time.Second)
		t.Repeat(w.actions())
		return w.notes
	})
	for seed := range 300 {
		for _, note := range gen.Example(seed) {
			for _, text := range want {
				if strings.Contains(note, text) {
					said[text] = true
				}
			}
		}
		if len(said) == len(want) {
			return
		}
	}
	t.Errorf("of %q only %v was ever said", want, said)
}
