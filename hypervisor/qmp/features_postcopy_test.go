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
			vm := l.vm("suite/traveller", busy)
			l.start("n1", vm)
			l.postCopies("job", vm.ID, options{Bandwidth: 1 << 20})
			l.Becomes("n2", vm.ID, hypervisor.Running)
			row.breaks(l, wire)
			if row.silent {
				_ = wire.setCut(false)
			} else {
				l.Eventually("both sides know that it broke", func() bool {
					return l.Progress("n1", "job").Status == hypervisor.JobBroken &&
						l.Progress("n2", "job").Status == hypervisor.JobBroken
				})
			}
			l.set("n1", vm.ID, map[string]any{"max-postcopy-bandwidth": 0})
			address := l.receive("job", vm)
			l.Adjust("job", hypervisor.Recover{Address: address})
			l.arrives("job", vm.ID)
		})
	}
}

// The agents of both hosts bring a post-copy to its end whose connection broke, and no operator has to.
func TestAgentsRecoverABrokenPostCopy(t *testing.T) {
	l, wire := linked(t, nil)
	needPostCopy(l, hypervisor.CanRecover)
	vm := l.vm("suite/traveller", busy)
	l.start("n1", vm)
	l.postCopies("job", vm.ID, options{Bandwidth: 1 << 20})
	l.Becomes("n2", vm.ID, hypervisor.Running)
	records, m := store.NewMemory(), &store.Migration{
		Spec:   migration.Spec{ID: "job", VM: vm.ID},
		State:  migration.State{Phase: migration.Running, Source: "n1", Target: "n2"},
		Source: store.SourceReport{Began: true, Started: true, Mode: hypervisor.PostCopy},
		Target: store.TargetReport{Ready: true, Address: l.receive("job", vm)}}
	host, err := l.hosts["n2"].Host(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []store.Record{m, &store.Host{Host: host}, &store.VM{VM: vm, Host: "n1", ActiveMigration: "job"}} {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	_ = wire.reset()
	l.Eventually("the source knows that it broke", func() bool {
		return l.Progress("n1", "job").Status == hypervisor.JobBroken
	})
	l.set("n1", vm.ID, map[string]any{"max-postcopy-bandwidth": 0})
	agents := map[name]*agent.Agent{}
	for n, h := range l.hosts {
		agents[n] = agent.New(n, agent.Config{Poll: time.Millisecond, Retry: time.Millisecond}, h, records,
			store.DiscardEvents{})
	}
	l.Eventually("the VM arrives", func() bool {
		for n, a := range agents {
			if _, err := a.Reconcile(t.Context(), time.Now()); err != nil {
				t.Logf("%s: %v", n, err)
			}
		}
		r, err := records.Get(t.Context(), m.Key())
		now, _ := r.(*store.Migration)
		return err == nil && now.Target.Completed && !now.Target.Lost && !now.Source.Unresolved &&
			now.Source.HandedOver
	})
	l.arrives("job", vm.ID)
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
	l.Adjust("job", hypervisor.SetBandwidth{})
	l.arrives("job", vm.ID)
}

// While the network is silent nothing is known, and nothing is done about it: the
// source neither runs nor lets itself be resumed.
func TestABrokenPostCopyHasNoWayBack(t *testing.T) {
	l, wire := linked(t, nil)
	needPostCopy(l, 0)
	vm := l.vm("suite/traveller", busy)
	l.start("n1", vm)
	l.postCopies("job", vm.ID, options{Bandwidth: 1 << 20})
	l.Becomes("n2", vm.ID, hypervisor.Running)
	_ = wire.reset()
	l.Eventually("the source knows that it broke", func() bool {
		return l.Progress("n1", "job").Status == hypervisor.JobBroken
	})
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
// Source: internal/qemufaults; docs/known-hypervisor-faults.md.
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
