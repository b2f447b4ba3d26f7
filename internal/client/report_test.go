package client_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const mib, gib = hypervisor.MiB, hypervisor.GiB

// cluster stores records, and returns what is known of them.
func cluster(t *testing.T, records ...store.Record) (*store.Memory, *client.Cluster) {
	t.Helper()
	store, c := store.NewMemory(), &client.Cluster{}
	for _, r := range records {
		if _, err := store.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Pull(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return store, c
}

func host(name hypervisor.HostName, how func(*store.Host)) *store.Host {
	h := &store.Host{Host: hypervisor.Host{Name: name, Memory: 8 * gib, CPUs: 8, Link: 100 *
		hypervisor.Bandwidth(mib)}}
	if how != nil {
		how(h)
	}
	return h
}

func vm(id hypervisor.VMID, how func(*store.VM)) *store.VM {
	v := &store.VM{VM: hypervisor.VM{ID: id, Memory: gib, CPUs: 1}, Host: "n1", Boots: 1,
		Migratable: true}
	if how != nil {
		how(v)
	}
	return v
}

// under is a migration that has 600 MiB left at 60 MiB/s, ten seconds ago.
func under() *store.Migration {
	return &store.Migration{
		Spec: migration.Spec{ID: "default/a#1", VM: "default/a", Created: now.Add(-time.Minute)},
		State: migration.State{Phase: migration.Running, Source: "n1", Target: "n2",
			Entered: now.Add(-30 * time.Second)},
		Source: store.SourceReport{Began: true, Sent: 400 * mib, Looked: now.Add(-4 * time.Second),
			Monitor: &convergence.State{Bandwidth: float64(60 * mib), Iteration: 1,
				Watermark: convergence.WatermarkState{PassLow: 600 * mib}}}}
}

// TestAStoppedRunIsSaid: only one that waits for an operator.
func TestAStoppedRunIsSaid(t *testing.T) {
	_, c := cluster(t, host("n1", nil), &store.Maintenance{Name: "waits", Stopped: "n1: its hook failed"},
		&store.Maintenance{Name: "over", Stopped: "n1: its hook failed", Ended: now},
		&store.Maintenance{Name: "resumed", Stopped: "n1: its hook failed", Resumes: 1}, &store.Maintenance{Name: "goes on"})
	s := client.MakeStatus(c, defaults, now)
	var out bytes.Buffer
	if err := s.Table(&out); err != nil {
		t.Fatal(err)
	}
	if len(s.Stopped) != 1 || s.Stopped[0] != (client.StoppedRun{Name: "waits", Why: "n1: its hook failed"}) ||
		strings.Count(out.String(), "maintenance waits has stopped: n1: its hook failed; godwit maintenance resume") != 1 ||
		strings.Count(out.String(), "maintenance") != 2 {
		t.Errorf("%+v\n%s", s.Stopped, out.String())
	}
}

func TestStatus(t *testing.T) {
	_, c := cluster(t,
		&store.Leader{Name: "cluster", Holder: "controller/a", Term: 3},
		host("n1", func(h *store.Host) {
			h.Taints = []placement.Taint{{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}
		}),
		host("n2", nil), host("n3", func(h *store.Host) {
			h.NotReady, h.Fenced, h.Fencing = true, true, &store.Fencing{By: "fence_x"}
		}),
		vm("default/a", func(v *store.VM) { v.ActiveMigration = "default/a#1" }),
		vm("default/b", nil),
		vm("default/c", func(v *store.VM) { v.Stopped, v.Ended = true, true }),
		vm("default/d", func(v *store.VM) { v.Host = "n3" }),
		vm("default/e", func(v *store.VM) { v.Host = "" }), under(),
		&store.Migration{Spec: migration.Spec{ID: "old"}, State: migration.State{
			Phase: migration.Failed, Entered: now.Add(-time.Hour)}},
		&store.Migration{Spec: migration.Spec{ID: "default/b#1", Created: now}, Cancel: true,
			State: migration.State{Phase: migration.Pending}})
	var out bytes.Buffer
	if err := client.MakeStatus(c, defaults, now).Table(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"controller/a leads, term 3; 3 hosts, 5 VMs, 2 migrations",
		"",
		"HOST  STATE     VMS  MEMORY        CPUS    EMPTY IN  SOFTWARE  WHY",
		"n1    draining  3    2GiB of 8GiB  2 of 8  ~27s      ",
		"n2    ready     0    0B of 8GiB    0 of 8  -         ",
		"n3    fenced    1    1GiB of 8GiB  1 of 8  -           fenced by fence_x",
		"",
		"VM         HOST  STATE               MEMORY  CPUS  BOOTS  WHY",
		"default/a  n1    moving              1GiB    1     1",
		"default/b  n1    running             1GiB    1     1",
		"default/c  n1    stopped             1GiB    1     1",
		"default/d  n3    host fenced         1GiB    1     1",
		"default/e  -     waiting for a host  1GiB    1     1",
		"",
		"MIGRATION    PHASE    FROM  TO  SENT    LEFT    RATE     END IN  WHY",
		"default/a#1  Running  n1    n2  400MiB  600MiB  60MiB/s  ~6s",
		"default/b#1  Pending  -     -   0B      -       -        -  cancelled",
		""}, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}

// Three VMs from two hosts could not be prepared on n2, the last 10 seconds ago.
func TestStatusTellsWhichHostFailsMigrationsAndWhenItIsTriedAgain(t *testing.T) {
	failed := func(id migration.ID, source hypervisor.HostName, ago time.Duration) *store.Migration {
		return &store.Migration{Spec: migration.Spec{ID: id, VM: hypervisor.VMID(id)},
			State: migration.State{Phase: migration.Failed, Because: migration.Overdue,
				Source: source, Target: "n2", Entered: now.Add(-ago)},
			Target: store.TargetReport{Ready: true}}
	}
	_, c := cluster(t, host("n1", nil), host("n2", nil), failed("a#1", "n1", 5*time.Minute),
		failed("b#1", "n3", 3*time.Minute), failed("c#1", "n1", 10*time.Second))
	s := client.MakeStatus(c, defaults, now)
	if s.Hosts[0].Why != "" {
		t.Errorf("n1: %s", s.Hosts[0].Why)
	}
	const want = "3 migrations failed in a row (receive hangs); tried again in 1m10s"
	if got := s.Hosts[1].Why; got != want {
		t.Errorf("n2: %q, want %q", got, want)
	}
}

// Of 1 GiB of memory and 11 GiB of local disks at 100 MiB/s all has left after 122.88 s.
func TestAHostIsEmptyWhenTheDisksHaveLeft(t *testing.T) {
	_, c := cluster(t, host("n1", nil), vm("default/a", func(v *store.VM) {
		v.VM = v.VM.WithDisks([]hypervisor.Disk{{Name: "d", Size: 11 * gib},
			{Name: "root", Path: "/shared/root", Size: 90 * gib}})
	}))
	if took := c.EstimateDrain("n1", evacuation.LiveMigrate, now).Sub(now); took != 122880*time.Millisecond {
		t.Errorf("it is empty after %v", took)
	}
	if at := c.EstimateDrain("n1", evacuation.None, now); !at.IsZero() {
		t.Errorf("it is empty at %v although no VM leaves by the cluster's strategy", at)
	}
}

// TestStatesOfVMs: the most important thing is said.
func TestStatesOfVMs(t *testing.T) {
	_, c := cluster(t, host("n1", nil), host("gone", func(h *store.Host) { h.NotReady = true }))
	for want, how := range map[string]func(*store.VM){
		"running":   nil,
		"placed":    func(v *store.VM) { v.Boots = 0 },
		"stopping":  func(v *store.VM) { v.Stopped = true },
		"stopped":   func(v *store.VM) { v.Stopped, v.Ended = true, true },
		"shut down": func(v *store.VM) { v.Evicted, v.Ended = &store.Eviction{}, true },
		"rebooting": func(v *store.VM) { v.Operation = store.Rebooting },
		"moving":    func(v *store.VM) { v.ActiveMigration = "m"; v.Operation = store.Rebooting },
		"host lost": func(v *store.VM) { v.Host = "gone" },
	} {
		if got := client.OfVM(c, vm("x", how)); got.State != want {
			t.Errorf("it is %q, want %q", got.State, want)
		}
	}
}

// TestLeavingNamesWhatDoesNotRun: a drain that waits for a VM that never starts says so.
func TestLeavingNamesWhatDoesNotRun(t *testing.T) {
	_, c := cluster(t, host("n1", nil), vm("default/a", func(v *store.VM) { v.Boots = 3 }),
		vm("default/b", func(v *store.VM) { v.Boots = 0 }), vm("default/c", func(v *store.VM) { v.Trouble = "its disk is missing" }))
	l := client.ListRemaining(c, "n1", evacuation.Params{Strategy: evacuation.LiveMigrate}, now)
	if want := "; 2 do not run: default/b: it has not started yet"; l.Done ||
		!strings.HasSuffix(l.Line(), want) {
		t.Errorf("%q, want it to end with %q", l.Line(), want)
	}
	var out bytes.Buffer
	if err := l.Unfinished(&out); err != nil {
		t.Fatal(err)
	}
	want := "default/a waits on n1: its turn has not come: godwit explain default/a\ndefault/b waits on n1: it has not started yet\n" +
		"default/c waits on n1: its disk is missing\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestAMigrationThatFindsNoPlace says so when it has not found one for longer than usual, in all that shows it.
func TestAMigrationThatFindsNoPlace(t *testing.T) {
	const want = "it waits for a host or a free slot: godwit explain default/a"
	for age, why := range map[time.Duration]string{9 * time.Second: "", 10 * time.Second: want} {
		_, c := cluster(t, host("n1", nil), vm("default/a", nil), &store.Migration{
			Spec:  migration.Spec{ID: "default/a#1", VM: "default/a", Created: now.Add(-age)},
			State: migration.State{Phase: migration.Pending, Entered: now.Add(-age)}})
		s := client.MakeStatus(c, defaults, now)
		if s.Moves[0].Source != "n1" {
			t.Errorf("its source is %q before the hand-over", s.Moves[0].Source)
		}
		if s.VMs[0].Why != why || s.Moves[0].Why != why {
			t.Errorf("after %v the VM: %q, its migration: %q, want %q", age, s.VMs[0].Why, s.Moves[0].Why, why)
		}
		l := client.ListRemaining(c, "n1", evacuation.Params{Strategy: evacuation.LiveMigrate}, now)
		if has := strings.HasSuffix(l.Line(), "; 1 without a place: default/a: "+want); has != (why != "") {
			t.Errorf("after %v: %q", age, l.Line())
		}
	}
}

// TestAMigrationThatNoHostTook says at once that it waits: its record has a deadline since a host was looked for.
func TestAMigrationThatNoHostTook(t *testing.T) {
	_, c := cluster(t, host("n1", nil), vm("default/a", nil), &store.Migration{
		Spec:  migration.Spec{ID: "default/a#1", VM: "default/a", Created: now.Add(-time.Second)},
		State: migration.State{Phase: migration.Pending, Entered: now, Deadline: now.Add(time.Minute)}})
	var out bytes.Buffer
	s := client.MakeStatus(c, defaults, now)
	if err := client.Moves(&out, s.Moves, now); err != nil {
		t.Fatal(err)
	}
	const want = "default/a#1  Pending  n1    -   0B    -     -     -       it waits for a host or a free slot: godwit explain default/a\n"
	if !strings.HasSuffix(out.String(), "\n"+want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

// TestAMigrationWhoseAgentTakesNoStep says which agent it waits for, when that takes longer than usual.
func TestAMigrationWhoseAgentTakesNoStep(t *testing.T) {
	for phase, want := range map[migration.Phase]string{
		migration.Scheduling:      "waits for the agent of n2 to get ready to receive it, for 10s",
		migration.Scheduled:       "",
		migration.PreparingTarget: "waits for the agent of n2 to listen for it, for 10s",
		migration.TargetReady:     "waits for the agent of n1 to begin to send it, for 10s",
		migration.Running:         "",
		migration.Succeeded:       "",
	} {
		for age, want := range map[time.Duration]string{9 * time.Second: "", 10 * time.Second: want} {
			m := &store.Migration{Spec: migration.Spec{ID: "default/a#1", VM: "default/a"},
				State: migration.State{Phase: phase, Entered: now.Add(-age), Source: "n1", Target: "n2"}}
			if got := client.OfMove(m, now).Why; got != want {
				t.Errorf("%v for %v: %q, want %q", phase, age, got, want)
			}
		}
	}
}

func TestLeaving(t *testing.T) {
	base := []store.Record{host("n1", nil),
		vm("default/gpu", func(v *store.VM) { v.Migratable, v.NotMigratableReason = false, "a GPU" }),
		vm("default/off", func(v *store.VM) { v.Stopped, v.Ended = true, true }),
		vm("default/none", func(v *store.VM) { v.Strategy = evacuation.None }),
		vm("default/ext", func(v *store.VM) { v.Strategy = evacuation.External })}
	_, c := cluster(t, append(base, vm("default/a", func(v *store.VM) { v.ActiveMigration = "default/a#1" }),
		vm("default/b", func(v *store.VM) { v.Boots = 1 }), under(), &store.Migration{Spec: migration.Spec{ID: "b#1",
			VM: "default/b"}, State: migration.State{Phase: migration.Failed,
			Because: "target-down"}})...)
	l := client.ListRemaining(c, "n1", evacuation.Params{Strategy: evacuation.LiveMigrate}, now)
	if l.Done || len(l.Moving) != 1 || len(l.Waiting) != 1 || len(l.Stay) != 3 {
		t.Errorf("%+v", l)
	}
	want := "n1  1 moving, 1 waiting, 3 stay, empty in ~27s; " +
		"1 failed before: default/b: target-down"
	if got := l.Line(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	_, c = cluster(t, append(base, vm("default/b", nil))...)
	if l = client.ListRemaining(c, "n1", evacuation.Params{Strategy: evacuation.LiveMigrate}, now); l.Done {
		t.Errorf("one waits, and it is done: %+v", l)
	}
	_, c = cluster(t, base...)
	l = client.ListRemaining(c, "n1", evacuation.Params{Strategy: evacuation.LiveMigrate}, now)
	var out bytes.Buffer
	if err := l.Table(&out); err != nil || !l.Done {
		t.Fatalf("%+v, %v", l, err)
	}
	gpu := "default/gpu stays on n1: it cannot migrate: a GPU"
	if !strings.Contains(out.String(), gpu) {
		t.Errorf("%s", out.String())
	}
	stuck := func(v *store.VM) { v.Strategy, v.Migratable = evacuation.LiveMigrateIfPossible, false }
	_, c = cluster(t, host("n1", nil), vm("default/b", stuck))
	l = client.ListRemaining(c, "n1", evacuation.Params{}, now)
	if len(l.Waiting) != 1 || l.Done {
		t.Errorf("one that is to be restarted elsewhere does not wait: %+v", l)
	}
	_, c = cluster(t, host("n1", func(h *store.Host) { h.Drain.OnUnmovable = evacuation.Keep }),
		vm("default/b", stuck))
	if l = client.ListRemaining(c, "n1", evacuation.Params{}, now); len(l.Stay) != 1 || !l.Done {
		t.Errorf("one that is kept does not stay: %+v", l)
	}
	_, c = cluster(t, host("n1", nil), vm("default/b", func(v *store.VM) {
		stuck(v)
		v.Evicted, v.Ended = &store.Eviction{}, true
	}))
	if l = client.ListRemaining(c, "n1", evacuation.Params{}, now); len(l.Stay) > 0 || !l.Done {
		t.Errorf("one that was shut down is still there: %+v", l)
	}
	_, c = cluster(t, host("n1", nil), vm("default/b", nil))
	if l := client.ListRemaining(c, "n1", evacuation.Params{Strategy: evacuation.None}, now); !l.Done || len(l.Stay) != 1 {
		t.Errorf("the cluster's strategy moves no VM: %+v", l)
	}
}

// TestExplainWritesNothing, and says what is in the way.
func TestExplainWritesNothing(t *testing.T) {
	records, _ := cluster(t, host("n1", nil), host("n2", func(h *store.Host) { h.Cordoned = true }),
		vm("default/b", nil), &store.Migration{Spec: migration.Spec{ID: "default/b#1",
			VM: "default/b", Created: now}, State: migration.State{Phase: migration.Pending,
			Entered: now, Deadline: now.Add(time.Hour)}})
	before, _ := records.Changes(t.Context(), store.Everything, 0)
	e, err := client.Explain(t.Context(), records, controller.Config{}, "default/b", now)
	if err != nil {
		t.Fatal(err)
	}
	after, _ := records.Changes(t.Context(), store.Everything, before.Next)
	if len(after.Records) > 0 {
		t.Errorf("it was written: %+v", after.Records)
	}
	var out bytes.Buffer
	if err := e.Table(&out, now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"default/b is on n1: running\n", "default/b#1  Pending",
		"  n2: cordon: needs "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
	// A controller would give it a target now.
	if _, err := records.Put(t.Context(), host("n3", nil)); err != nil {
		t.Fatal(err)
	}
	before, _ = records.Changes(t.Context(), store.Everything, 0)
	_, err = client.Explain(t.Context(), records, controller.Config{}, "default/b", now)
	if err != nil {
		t.Fatal(err)
	}
	after, _ = records.Changes(t.Context(), store.Everything, before.Next)
	if len(after.Records) > 0 {
		t.Errorf("with room it was written: %+v", after.Records)
	}
	if _, err := client.Explain(t.Context(), records, controller.Config{}, "x", now); err == nil {
		t.Error("a VM that is none is explained")
	}
}

// TestItIsSaidWhyNoHostTakesAVM that was never placed: what each host refuses, by explain, and the first
// of it in the statuses of VMs.
func TestItIsSaidWhyNoHostTakesAVM(t *testing.T) {
	hostless := func(id hypervisor.VMID, how func(*store.VM)) *store.VM {
		return vm(id, func(v *store.VM) {
			v.Host, v.Boots = "", 0
			how(v)
		})
	}
	large := hostless("default/large", func(v *store.VM) { v.VM.Memory = 9 * gib })
	bound := hostless("default/bound", func(v *store.VM) {
		v.Placement = &placement.Constraints{Selector: placement.Labels{"zone": "b"}}
	})
	fits := hostless("default/fits", func(*store.VM) {})
	off := hostless("default/off", func(v *store.VM) { v.Stopped, v.VM.Memory = true, 9*gib })
	records, c := cluster(t, host("n1", nil), host("n2", nil), large, bound, fits, off)

	s := client.MakeStatus(c, defaults, now)
	why, err := client.WhyPlaceless(t.Context(), records, controller.Config{}, s.VMs, now)
	if err != nil {
		t.Fatal(err)
	}
	client.TellPlaceless(s.VMs, why)
	got := map[hypervisor.VMID]string{}
	for _, v := range s.VMs {
		got[v.Name] = v.Why
	}
	want := map[hypervisor.VMID]string{
		"default/large": "n1: memory: needs 9GiB, has 8GiB; n2: memory: needs 9GiB, has 8GiB",
		"default/bound": "n1: selector: needs zone=b, has no zone; n2: selector: needs zone=b, has no zone",
		"default/fits":  "", "default/off": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("why (-want +got):\n%s", diff)
	}

	for id, want := range map[hypervisor.VMID]string{
		"default/large": "default/large is on no host: waiting for a host\n\nno host takes it because of\n" +
			"  n1: memory: needs 9GiB, has 8GiB\n  n2: memory: needs 9GiB, has 8GiB\n",
		"default/fits": "default/fits is on no host: waiting for a host\n\n" +
			"a host takes it: it is placed when the controller looks next\n",
		"default/off": "default/off is on no host: stopped\n\nno request moves it elsewhere\n",
	} {
		e, err := client.Explain(t.Context(), records, controller.Config{}, id, now)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := e.Table(&out, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if after, _ := records.Changes(t.Context(), store.Everything, c.Revision()); len(after.Records) > 0 {
		t.Errorf("it was written: %+v", after.Records)
	}
}

// TestAnExplanationNamesTheTargetOfAFailure, if it had one.
func TestAnExplanationNamesTheTargetOfAFailure(t *testing.T) {
	for target, want := range map[hypervisor.HostName]string{
		"n3": "  migration: needs to succeed, has default/b#1 to n3 failed: overdue\n",
		"":   "  migration: needs to succeed, has default/b#1 failed: overdue\n",
	} {
		records, _ := cluster(t, host("n1", nil), vm("default/b", nil), &store.Migration{
			Spec: migration.Spec{ID: "default/b#1", VM: "default/b", Created: now},
			State: migration.State{Phase: migration.Failed, Because: migration.Overdue, Source: "n1", Target: target,
				Entered: now}})
		e, err := client.Explain(t.Context(), records, controller.Config{}, "default/b", now)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := e.Table(&out, now); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
}

// TestNothingReachesTheTerminalAsItIs.
func TestNothingReachesTheTerminalAsItIs(t *testing.T) {
	m := under()
	m.Spec.ID, m.State.Because, m.State.Target = "\x1b[31m", "\x07\xff", "\u009bx"
	m.Source.Error, m.State.Phase = "\x1b]0;", migration.Failed
	_, c := cluster(t, host("n\x1b1", nil), vm("v\x1b", nil), m)
	var out bytes.Buffer
	s := client.MakeStatus(c, defaults, now)
	s.Moves = append(s.Moves, client.OfMove(m, now))
	if err := s.Table(&out); err != nil {
		t.Fatal(err)
	}
	move := client.OfMove(m, now)
	if err := move.Table(&out); err != nil {
		t.Fatal(err)
	}
	out.WriteString(move.Line(now))
	if !utf8.ValidString(out.String()) || strings.ContainsAny(out.String(), "\x1b\x07\u009b") {
		t.Errorf("%q", out.String())
	}
}

func TestWatchedTellsChangesOnly(t *testing.T) {
	_, c := cluster(t, host("n1", nil))
	var w client.Watched
	var out bytes.Buffer
	for i := range 3 {
		if err := w.JSON(&out, client.MakeStatus(c, defaults, now.Add(time.Duration(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines of three that are the same", n)
	}
	out.Reset()
	for range 2 {
		if err := w.Table(&out, client.MakeStatus(c, defaults, now)); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "HOST"); n != 1 {
		t.Errorf("%d tables of two that are the same", n)
	}
}

// TestTheViewFollows: what has gone is gone, and a store that has forgotten is read anew.
func TestTheViewFollows(t *testing.T) {
	records, c := cluster(t, host("n1", nil), host("n2", nil), &store.Lease{Owner: "host/n1"})
	h := c.Host("n2")
	if err := records.Delete(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	for range 2000 { // more than the store remembers
		r, _ := records.Get(t.Context(), store.Key{Kind: store.LeaseKind, Name: "host/n1"})
		l := *r.(*store.Lease)
		l.Beats++
		if _, err := records.Put(t.Context(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Beats > 10 && l.Beats < 1900 {
			continue
		}
		if err := c.Pull(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Pull(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts()) != 1 || c.Host("n2") != nil || c.Leases()[0].Beats != 2000 {
		t.Errorf("%d hosts, %d beats", len(c.Hosts()), c.Leases()[0].Beats)
	}
}

// TestAlarms: a VM that runs twice, and a second agent, are said first, with what to do.
func TestAlarms(t *testing.T) {
	_, c := cluster(t,
		host("h3", func(h *store.Host) {
			h.Strays = []store.Stray{{VM: "default/web", Why: "its record says that it is on h9"}}
			h.Fenced = true
		}),
		host("h9", func(h *store.Host) {
			h.Identity = &store.Identity{ID: "mine", Machine: "m"}
			h.Refused = &store.Refusal{Identity: store.Identity{ID: "other"}, Why: "another machine",
				At: now}
		}),
		vm("default/web", func(v *store.VM) { v.Host = "h9" }))
	s := client.MakeStatus(c, defaults, now)
	var out bytes.Buffer
	if err := s.Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ALARM  default/web runs on h3, and its record says that it is on h9: inspect both guests",
		"ALARM  a second agent used the name h9 at 2026-01-02T03:04:05Z and was refused: it has " +
			"identity other, the host has mine on machine m: another machine: stop the wrong " +
			"one, and give it another name; once the refused agent is stopped: " +
			"godwit host adopt h9 --id mine",
		"1 VM that should not run here: default/web", "a second agent was refused its name",
		"default/web  h9    runs on h9 and h3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
	if len(s.Alarms) != 2 || s.Alarms[0].VM != "default/web" {
		t.Errorf("%+v", s.Alarms)
	}
}

// A host that is heard although an operator has said that it is off is an alarm, and is not listed as
// one that is off.
func TestAHostThatLivesAlthoughItWasSaidToBeOff(t *testing.T) {
	h := &store.Host{Host: hypervisor.Host{Name: "n1"}, ConfirmedDownBy: "eve", NotReady: true, Fenced: true,
		Fencing: &store.Fencing{By: store.OperatorBy + "eve"}}
	const wrong, lives = "it sends heartbeats", "sends heartbeats although operator eve reports it as off"
	const ended = ": no VM runs there that should not, and none is started until the machine reboots"
	stray := []store.Stray{{VM: "default/web", Why: "its record says that it is on n2"}}
	for _, row := range []struct {
		wrong, why, alarm string
		told              string // the session that has looked
		strays            []store.Stray
	}{
		{why: "confirmed down by eve"},
		{wrong: wrong, why: lives, alarm: "n1 " + lives},
		{wrong: wrong, told: "before", why: lives, alarm: "n1 " + lives},
		{wrong: wrong, told: "now", strays: stray, why: "1 VM that should not run here: default/web",
			alarm: "default/web runs on n1, and has no record"},
		{wrong: wrong, told: "now", why: lives + ended},
	} {
		next := *h
		next.Session, next.Told, next.Strays = "now", row.told, row.strays
		next.Admitted = "now"
		fencing := *h.Fencing
		fencing.Error = row.wrong
		next.Fencing = &fencing
		_, c := cluster(t, &next)
		s := client.MakeStatus(c, defaults, now)
		alarm := ""
		if len(s.Alarms) > 0 {
			alarm = s.Alarms[0].What
		}
		if s.Hosts[0].Why != row.why || alarm != row.alarm {
			t.Errorf("%+v: %q, alarm %q", row, s.Hosts[0].Why, alarm)
		}
	}
}
