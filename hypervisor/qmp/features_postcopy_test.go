package qmp_test

import (
	"bytes"
	"cmp"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

func needPostCopy(l *lab, a hypervisor.Abilities) {
	if why := supports(l, hypervisor.CanPostCopy|a); why != "" {
		l.T.(*testing.T).Skip(why + ": post-copy takes userfaultfd")
	}
}

// postCopies begins to send a VM on a wire so narrow that most of its memory is
// still here, and lets the target run.
func (l *lab) postCopies(j job, id vmid, o options) {
	l.T.Helper()
	o.PostCopy, o.Bandwidth = true, cmp.Or(o.Bandwidth, 4<<20)
	l.begin(j, id, o)
	l.Eventually("memory moves", func() bool {
		return l.Progress("n1", j).Status == hypervisor.JobActive
	})
	l.Adjust(j, hypervisor.StartPostCopy{})
}

func TestPostCopyArrives(t *testing.T) {
	for _, row := range []struct {
		name    string
		guest   guest.Params
		options options
	}{
		{"of a calm guest", calm, options{}},
		{"of a busy guest that would never converge", swift, options{}},
		{"with XBZRLE and auto-converge before it", busy,
			options{XBZRLE: true, AutoConverge: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			needPostCopy(l, 0)
			vm := l.vm("suite/traveller", row.guest)
			l.start("n1", vm)
			l.postCopies("job", vm.ID, row.options)
			l.Until("n1", "job", hypervisor.JobSucceeded)
			if p := l.Progress("n1", "job"); p.Mode != hypervisor.PostCopy {
				t.Errorf("the mode is %v", p.Mode)
			}
			l.Until("n2", "job", hypervisor.JobSucceeded)
			l.arrives("job", vm.ID)
		})
	}
}

// fetches starts a VM that runs at n2 and fetches most of its memory from n1, by a job of its name.
func (l *lab) fetches(id vmid) hypervisor.VM {
	l.T.Helper()
	vm := l.vm(id, busy)
	l.start("n1", vm)
	l.postCopies(job(id), vm.ID, options{Bandwidth: 1 << 20})
	l.Becomes("n2", vm.ID, hypervisor.Running)
	return vm
}

// breaks waits until both sides know that the connection of a post-copy broke.
func (l *lab) breaks(j job) {
	l.T.Helper()
	l.Eventually("both sides know that it broke", func() bool {
		return l.Progress("n1", j).Status == hypervisor.JobBroken && l.Progress("n2", j).Status == hypervisor.JobBroken
	})
}

// The connection breaks while the guest runs at the target and much of its memory
// is still at the source.
func TestABrokenPostCopyIsRecovered(t *testing.T) {
	for _, row := range []struct {
		name   string
		breaks func(*lab, *link)
		silent bool
	}{
		{"the connection is closed", func(l *lab, w *link) { _ = w.reset() }, false},
		{"the network falls silent, and comes back", func(l *lab, w *link) {
			_ = w.setCut(true)
			time.Sleep(50 * time.Millisecond) // in which nothing arrives
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, wire := linked(t, nil)
			needPostCopy(l, hypervisor.CanRecover)
			vm := l.fetches("job")
			row.breaks(l, wire)
			if row.silent {
				_ = wire.setCut(false)
			} else {
				l.breaks("job")
			}
			l.set("n1", vm.ID, map[string]any{"max-postcopy-bandwidth": 0})
			address := l.receive("job", vm)
			l.Adjust("job", hypervisor.Recover{Address: address})
			l.arrives("job", vm.ID)
		})
	}
}

// agents returns the agents of both hosts, and a store in which VMs are on their way from n1 to n2 by jobs of their
// names, and others are at home at n1.
func (l *lab) agents(moving []hypervisor.VM, home ...hypervisor.VM) (store.Store, map[name]*agent.Agent) {
	l.T.Helper()
	host, err := l.hosts["n2"].Host(l.T.Context())
	if err != nil {
		l.T.Fatal(err)
	}
	put := []store.Record{&store.Host{Host: host}}
	for _, vm := range moving {
		put = append(put, &store.VM{VM: vm, Host: "n1", ActiveMigration: migration.ID(vm.ID)}, &store.Migration{
			Spec:   migration.Spec{ID: migration.ID(vm.ID), VM: vm.ID},
			State:  migration.State{Phase: migration.Running, Source: "n1", Target: "n2"},
			Source: store.SourceReport{Began: true, Started: true, Mode: hypervisor.PostCopy},
			Target: store.TargetReport{Ready: true, Address: l.receive(job(vm.ID), vm)}})
	}
	for _, vm := range home {
		put = append(put, &store.VM{VM: vm, Host: "n1"})
	}
	records, agents := store.NewMemory(), map[name]*agent.Agent{}
	for _, r := range put {
		if _, err := records.Put(l.T.Context(), r); err != nil {
			l.T.Fatal(err)
		}
	}
	for n, h := range l.hosts {
		agents[n] = agent.New(n, agent.Config{Poll: time.Millisecond, Retry: time.Millisecond}, h, records,
			store.DiscardEvents{})
	}
	return records, agents
}

// hasArrived reports whether a VM is at its target with all its memory by the record of its migration, after each
// agent has looked once. Then the source has no more to say.
func (l *lab) hasArrived(records store.Store, agents map[name]*agent.Agent, id migration.ID) bool {
	for n, a := range agents {
		if _, err := a.Reconcile(l.T.Context(), time.Now()); err != nil {
			l.T.Logf("%s: %v", n, err)
		}
	}
	r, err := records.Get(l.T.Context(), (&store.Migration{Spec: migration.Spec{ID: id}}).Key())
	m, _ := r.(*store.Migration)
	return err == nil && m.Target.Completed && !m.Target.Lost
}

// The agents of both hosts bring a post-copy to its end whose connection broke, and no operator has to.
func TestAgentsRecoverABrokenPostCopy(t *testing.T) {
	l, wire := linked(t, nil)
	needPostCopy(l, hypervisor.CanRecover)
	vm := l.fetches("job")
	records, agents := l.agents([]hypervisor.VM{vm})
	_ = wire.reset()
	l.breaks("job")
	l.set("n1", vm.ID, map[string]any{"max-postcopy-bandwidth": 0})
	l.Eventually("the VM arrives", func() bool { return l.hasArrived(records, agents, "job") })
	l.arrives("job", vm.ID)
}

// Many post-copies break, and their target does not answer: the agent of the source looks as often as before, does
// what is asked of another VM, and says why they do not go on. They do when the target answers again.
func TestBrokenPostCopiesDelayNothingElse(t *testing.T) {
	l, wire := linked(t, func(c *qmp.Config) { c.Timeout = testutil.Limit(20 * time.Second) })
	needPostCopy(l, hypervisor.CanRecover)
	var broken []hypervisor.VM
	for _, id := range []vmid{"job", "suite/second", "suite/third"} {
		broken = append(broken, l.fetches(id))
	}
	other := l.vm("suite/other", calm)
	l.start("n1", other)
	records, agents := l.agents(broken, other)
	_ = wire.reset()
	for _, vm := range broken {
		l.breaks(job(vm.ID))
	}
	_ = wire.setCut(true)
	for i := range 5 {
		began := time.Now()
		if _, err := agents["n1"].Reconcile(t.Context(), began); err != nil {
			t.Logf("n1: %v", err)
		}
		if took := time.Since(began); took > testutil.Limit(5*time.Second) {
			t.Fatalf("look %d took %v", i, took)
		}
		if i == 0 {
			r, err := records.Get(t.Context(), (&store.VM{VM: other}).Key())
			must(t, err)
			off := *r.(*store.VM)
			off.Stopped = true
			_, err = records.Put(t.Context(), &off)
			must(t, err)
		}
	}
	l.Eventually("the other VM is stopped", func() bool {
		_, _ = agents["n1"].Reconcile(t.Context(), time.Now())
		return l.Domain("n1", other.ID).State == hypervisor.Shutoff
	})
	for _, vm := range broken {
		if p := l.Progress("n1", job(vm.ID)); p.Status != hypervisor.JobBroken {
			t.Errorf("while its target does not answer, the job of %s is %v", vm.ID, p.Status)
		}
		l.set("n1", vm.ID, map[string]any{"max-postcopy-bandwidth": 0})
	}
	_ = wire.setCut(false)
	for _, vm := range broken {
		l.Eventually("the VM arrives", func() bool { return l.hasArrived(records, agents, migration.ID(vm.ID)) })
	}
	for _, vm := range broken {
		l.Until("n1", job(vm.ID), hypervisor.JobSucceeded)
		l.sound("n2", vm.ID)
		l.release(job(vm.ID), vm.ID, "n1", "n2")
		l.Do("n2", vm.ID, hypervisor.Kill{}, hypervisor.Forget{})
	}
	l.Do("n1", other.ID, hypervisor.Forget{})
	l.empty()
}

// The cap of a job holds in post-copy, too, and can be changed there.
func TestPostCopyKeepsTheCap(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	needPostCopy(l, 0)
	vm := l.vm("suite/traveller", busy)
	l.start("n1", vm)
	l.postCopies("job", vm.ID, options{Bandwidth: 1 << 20})
	l.Becomes("n2", vm.ID, hypervisor.Running)
	for _, limit := range []int64{1 << 20, 1 << 19} {
		l.Adjust("job", hypervisor.SetBandwidth{Limit: hypervisor.Bandwidth(limit)})
		p := l.ask("n1", vm.ID, "query-migrate-parameters", nil)
		if got := number(p, "max-postcopy-bandwidth"); got != float64(limit) {
			t.Errorf("in post-copy the cap is %v, want %d", got, limit)
		}
	}
	if p := l.Progress("n1", "job"); p.Status.Final() {
		t.Errorf("with a cap of half a MiB/s it is over: %+v", p)
	}
	l.Uncap("job")
	l.arrives("job", vm.ID)
}

// While the network is silent nothing is known, and nothing is done about it: the
// source neither runs nor lets itself be resumed.
func TestABrokenPostCopyHasNoWayBack(t *testing.T) {
	l, wire := linked(t, nil)
	needPostCopy(l, 0)
	vm := l.fetches("job")
	_ = wire.reset()
	l.breaks("job")
	if err := l.hosts["n1"].Adjust(t.Context(), "job", hypervisor.Cancel{}); err == nil {
		t.Error("it was cancelled")
	}
	word := hypervisor.Evidence{Proof: hypervisor.OperatorWord, VM: vm.ID, Host: "n2", Job: "job",
		By: "test"}
	l.Refuses("n1", vm.ID, hypervisor.Resume{Job: "job", NeverRan: word}, hypervisor.Conflict,
		"post-copy")
	l.Refuses("n2", vm.ID, hypervisor.Discard{Job: "job"}, hypervisor.Conflict)
	if s := l.Domain("n1", vm.ID).State; s.Executes() {
		t.Errorf("the source is %v", s)
	}
	l.Do("n2", vm.ID, hypervisor.Kill{}, hypervisor.Forget{})
	l.Do("n1", vm.ID, hypervisor.Abandon{Job: "job", Dead: hypervisor.Evidence{
		Proof: hypervisor.ProcessReaped, VM: vm.ID, Host: "n2", Job: "job", By: "test"}})
	l.Becomes("n1", vm.ID, hypervisor.Crashed)
	l.start("n1", vm)
	l.ends("n1", vm.ID)
}

// The target has every page and says so, and the connection is closed before its source hears it.
// A newer QEMU then lets the guest of the source run again, unless it was stopped before.
// Source: internal/tools/qemufaults; docs/known-hypervisor-faults.md.
func TestAPostCopyWhoseEndIsLostDoesNotRunTwice(t *testing.T) {
	l, wire := linked(t, nil)
	needPostCopy(l, 0)
	lost := make(chan bool, 1)
	wire.overhear = func(heard []byte) {
		// Source: QEMU 7.2 migration/migration.c (migrate_send_rp_shut): 1, four bytes, no error.
		if bytes.HasSuffix(heard, []byte{0, 1, 0, 4, 0, 0, 0, 0}) && len(heard) < 1024 {
			_ = wire.reset()
			select {
			case lost <- true:
			default:
			}
		}
	}
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	l.postCopies("job", vm.ID, options{})
	select {
	case <-lost:
	case <-testutil.Context(t, testutil.DefaultLimit).Done():
		t.Fatal("the target never said that it has everything")
	}
	l.Until("n2", "job", hypervisor.JobSucceeded)
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		if s := l.Domain("n1", vm.ID).State; s.Executes() || s == hypervisor.Paused {
			t.Fatalf("the source is %v while the target runs", s)
		}
	}
	word := hypervisor.Evidence{Proof: hypervisor.OperatorWord, VM: vm.ID, Host: "n2", Job: "job",
		By: "test"}
	l.Refuses("n1", vm.ID, hypervisor.Resume{Job: "job", NeverRan: word}, hypervisor.Conflict,
		"post-copy")
	l.sound("n2", vm.ID)
	l.release("job", vm.ID, "n1", "n2")
	l.ends("n2", vm.ID)
}

// The connection breaks when post-copy was asked for and has not begun: the guest runs on here,
// whether or not it was stopped for that.
func TestAGuestRunsOnWherePostCopyDidNotBegin(t *testing.T) {
	for _, row := range []struct {
		name   string
		breaks func(*link) error
	}{
		{"the connection is closed", (*link).reset},
		{"the link takes nothing any more", func(w *link) error { return w.setCut(true) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, wire := linked(t, func(c *qmp.Config) { c.Timeout = 2 * time.Second })
			needPostCopy(l, 0)
			if f, _ := features(); f.Require(qemu.ResumesPostCopied) != nil {
				t.Skip("this QEMU needs no guest to be stopped before post-copy")
			}
			vm := l.vm("suite/traveller", swift)
			l.start("n1", vm)
			l.begin("job", vm.ID, options{PostCopy: true})
			l.Eventually("memory moves", func() bool {
				return l.Progress("n1", "job").Sent > 0
			})
			_ = wire.setCut(true)
			time.Sleep(200 * time.Millisecond) // QEMU's buffers are full: it waits
			l.Adjust("job", hypervisor.StartPostCopy{})
			must(t, row.breaks(wire))
			l.Until("n1", "job", hypervisor.JobFailed)
			l.sound("n1", vm.ID)
			_ = wire.setCut(false)
			l.Do("n2", vm.ID, hypervisor.Discard{Job: "job"})
			l.ends("n1", vm.ID)
		})
	}
}

// dies closes n1 as if its process had died when it had noted something, and before it
// told QEMU, while it sends a VM that does not converge.
func (l *lab) dies(j job, vm hypervisor.VM, o options, noting func(*qmp.Job)) {
	l.T.Helper()
	l.start("n1", vm)
	o.Bandwidth = 4 << 20
	l.begin(j, vm.ID, o)
	l.Eventually("memory moves", func() bool {
		return l.Progress("n1", j).Status == hypervisor.JobActive
	})
	must(l.T, l.hosts["n1"].Close())
	delete(l.hosts, "n1")
	path := filepath.Join(l.dir, "n1", "jobs", durable.Name(string(j)))
	var noted qmp.Job
	must(l.T, durable.Read(path, &noted))
	noting(&noted)
	must(l.T, durable.Write(path, &noted, true))
	l.reopen("n1")
}

// Post-copy that was noted is begun. Else the VM stayed where it is for ever, and could not
// be cancelled either.
func TestPostCopyThatWasOnlyNotedIsBegun(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	needPostCopy(l, 0)
	vm := l.vm("suite/traveller", swift)
	l.dies("job", vm, options{PostCopy: true}, func(j *qmp.Job) { j.PostCopied = true })
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.arrives("job", vm.ID)
}

// A guest of which only is noted that it is to be paused is not said to be, and is paused
// when that is asked for again.
func TestAPauseThatWasOnlyNotedIsAskedForAgain(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/traveller", swift)
	l.dies("job", vm, options{}, func(j *qmp.Job) { j.GuestPaused = true })
	if p := l.Progress("n1", "job"); p.Mode != hypervisor.PreCopy {
		t.Errorf("while its guest runs it goes by %v", p.Mode)
	}
	l.Adjust("job", hypervisor.PauseGuest{})
	if p := l.Progress("n1", "job"); p.Mode != hypervisor.PausedCopy {
		t.Errorf("with its guest paused it goes by %v", p.Mode)
	}
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.arrives("job", vm.ID)
}
