package backend_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/durable"
)

// A lockable is a domain that may have a record.
type lockable struct {
	backend.DomainLock
	kept bool
}

func (d *lockable) Kept() bool { return d.kept }

// notes keeps jobs until it is full.
type notes struct{ full bool }

func (n *notes) PutJob(*job, bool) error {
	if n.full {
		return errors.New("no space left")
	}
	return nil
}

func (n *notes) RemoveJob(hypervisor.JobID) error { return n.PutJob(nil, false) }

func newNode(t *testing.T) (*backend.Node[*lockable, *job], *notes) {
	jobs := &notes{}
	n := &backend.Node[*lockable, *job]{Name: "n1", Kind: backend.KindOf, Jobs: jobs,
		New: func(vm hypervisor.VMID) (*lockable, error) {
			if vm == "" {
				return nil, errors.New("no name")
			}
			return &lockable{DomainLock: backend.NewDomainLock()}, nil
		}}
	n.Life = t.Context()
	n.Fill(nil, nil)
	return n, jobs
}

// TestDomainLock: a domain is locked once at a time, another domain is not, and a domain without a
// record is removed when it is unlocked.
func TestDomainLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := newNode(t)
		ctx := t.Context()
		d, release, err := n.Lock(ctx, "a")
		must(t, err)
		_, other, err := n.Lock(ctx, "b")
		must(t, err)
		other()
		if n.Find("b") != nil || n.Find("a") != d || len(n.All()) != 1 {
			t.Errorf("known: %v", n.All())
		}
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, _, err = n.Lock(brief, "a"); !errors.Is(err, hypervisor.Transient) {
			t.Errorf("got %v, want that it is locked", err)
		}
		second := make(chan *lockable)
		go func() {
			d, release, err := n.Lock(ctx, "a")
			if err == nil {
				d.kept = true
				release()
			}
			second <- d
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Fatal("locked twice")
		default:
		}
		release()
		if <-second != d || n.Find("a") != d {
			t.Error("another domain of the same VM")
		}
		if _, _, err = n.Lock(ctx, ""); !errors.Is(err, hypervisor.Invalid) {
			t.Errorf("got %v, want that there can be none", err)
		}
	})
}

// TestAChangeThatPanicsUnlocksItsDomain: the panic ends what asked, and the host can still be closed.
func TestAChangeThatPanicsUnlocksItsDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := newNode(t)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = n.Change(t.Context(), "Start", "a", func(*lockable) error { panic("no such rule") })
		}()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must(t, n.Change(brief, "Start", "a", func(*lockable) error { return nil }))
		n.Close()
	})
}

// TestClose: Close waits until every domain is unlocked, and Lock fails afterwards.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := newNode(t)
		var end context.CancelFunc
		n.Life, end = context.WithCancel(t.Context())
		d, release, err := n.Lock(t.Context(), "a")
		must(t, err)
		runs := 0
		run := func() {
			<-n.Life.Done()
			if runs++; !n.EndWorker("a", d) {
				t.Error("its worker may not end, though its host is closed")
			}
		}
		n.StartWorker("a", &lockable{DomainLock: backend.NewDomainLock()}, run) // another one: it is gone already
		n.StartWorker("a", d, run)
		n.StartWorker("a", d, run) // it runs
		d.Trigger()
		if n.EndWorker("a", d) {
			t.Error("its worker may end, though it was triggered")
		}
		end()
		var closed sync.WaitGroup
		closed.Go(n.Close)
		synctest.Wait()
		if _, _, err := n.Lock(t.Context(), "b"); !errors.Is(err, hypervisor.Transient) {
			t.Errorf("got %v, want that the host was closed", err)
		}
		n.StartWorker("a", d, run)
		release()
		closed.Wait()
		if runs != 1 {
			t.Errorf("%d ran", runs)
		}
	})
}

// TestJobs: a job that cannot be kept is not known.
func TestJobs(t *testing.T) {
	n, notes := newNode(t)
	j := of("job")
	j.VM.ID, j.Role = "vm", backend.Source
	notes.full = true
	if err := n.PutJob(j, true); !errors.Is(err, hypervisor.Transient) || n.Job("job") != nil {
		t.Errorf("got %v, %v", err, n.Job("job"))
	}
	notes.full = false
	must(t, n.PutJob(j, true))
	if n.Job("job") != j || n.VMOf("job") != "vm" || n.VMOf("other") != "" {
		t.Errorf("got %v, %q", n.Job("job"), n.VMOf("job"))
	}
	acted := false
	act := func(*lockable) error { acted = true; return errors.New("it is not to be") }
	err := n.Adjust(t.Context(), "other", hypervisor.Cancel{}, act)
	if !errors.Is(err, hypervisor.NotFound) || acted {
		t.Errorf("got %v, and it was done: %v", err, acted)
	}
	err = n.Adjust(t.Context(), "job", hypervisor.Cancel{}, act)
	if e, ok := errors.AsType[*hypervisor.Error](err); !ok || !acted || e.Op != "Cancel" ||
		e.VM != "vm" || e.Host != "n1" || e.Kind != hypervisor.Unknown {
		t.Errorf("got %v, and it was done: %v", err, acted)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err = n.Change(over, "Do", "vm", act); !errors.Is(err, hypervisor.Transient) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that nothing is waited for", err)
	}
	must(t, n.ForgetJob("job"))
	if n.Job("job") != nil {
		t.Error("it is known still")
	}
}

func TestNotOpened(t *testing.T) {
	for err, want := range map[error]hypervisor.Kind{
		errors.New("no such file"):                            hypervisor.Invalid,
		&durable.LockedError{Dir: "/d", Owner: "1"}:           hypervisor.Conflict,
		backend.Errorf(hypervisor.Unsupported, "QEMU is old"): hypervisor.Unsupported,
	} {
		if got := backend.NotOpened("n1", err, backend.KindOf); !errors.Is(got, want) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

// TestRoom: promises and what runs take room together, and each VM once.
func TestRoom(t *testing.T) {
	vm := func(id string, memory hypervisor.Bytes, cpus int) hypervisor.VM {
		return hypervisor.VM{ID: hypervisor.VMID(id), Memory: memory, CPUs: cpus}
	}
	r := &backend.Room{Memory: 10, CPUs: 4}
	must(t, r.Reserve(vm("a", 4, 1), nil))
	must(t, r.Reserve(vm("a", 6, 1), nil)) // in place of what it had
	for _, no := range []hypervisor.VM{vm("b", 5, 1), vm("b", 1, 4)} {
		if err := r.Reserve(no, nil); !errors.Is(err, hypervisor.NoRoom) {
			t.Errorf("%v: got %v", no, err)
		}
	}
	runs := map[hypervisor.VMID]hypervisor.VM{"a": vm("a", 1, 1), "c": vm("c", 3, 1)}
	if err := r.Reserve(vm("b", 2, 1), runs); !errors.Is(err, hypervisor.NoRoom) {
		t.Errorf("got %v: what is promised counts, though less runs", err)
	}
	must(t, r.Reserve(vm("b", 1, 1), runs))
	r.Keep(vm("d", 100, 100))
	if err := r.Reserve(vm("e", 1, 1), nil); !errors.Is(err, hypervisor.NoRoom) {
		t.Errorf("got %v", err)
	}
	for _, id := range []hypervisor.VMID{"a", "b", "d", "never was"} {
		r.Unreserve(id)
	}
	must(t, r.Reserve(vm("e", 10, 4), nil))
}

// TestRules: what each state lets be done, and that nothing is killed that may be the last copy.
func TestRules(t *testing.T) {
	by := time.Unix(1e9, 0)
	stopping := &backend.Domain{By: by.Add(time.Second)}
	const rnas = "RNAS"
	for _, row := range []struct {
		state                       hypervisor.DomainState
		stop, kill, reboot, unpause string
	}{
		{hypervisor.Absent, "R", "R", "R", "R"},
		{hypervisor.Starting, "A", "A", "R", "R"},
		{hypervisor.Running, "A", "A", "A", "N"},
		{hypervisor.Paused, "R", "A", "R", "A"},
		{hypervisor.Stopping, "S", "A", "R", "R"},
		{hypervisor.Rebooting, "A", "A", "N", "R"},
		{hypervisor.Shutoff, "N", "N", "R", "R"},
		{hypervisor.Crashed, "N", "N", "R", "R"},
		{hypervisor.Receiving, "R", "R", "R", "R"},
		{hypervisor.Received, "R", "R", "R", "R"},
		{hypervisor.HandingOver, "R", "R", "R", "R"},
		{hypervisor.HandedOver, "R", "R", "R", "R"},
	} {
		got := ""
		for _, a := range []backend.Answer{backend.Stop(row.state, stopping, by),
			backend.Kill(row.state), backend.Reboot(row.state), backend.Unpause(row.state)} {
			got += rnas[a : a+1]
		}
		if want := row.stop + row.kill + row.reboot + row.unpause; got != want {
			t.Errorf("%v: got %s, want %s", row.state, got, want)
		}
	}
	if backend.Stop(hypervisor.Stopping, stopping, by.Add(time.Hour)) != backend.Nothing ||
		backend.Stop(hypervisor.Stopping, nil, by) != backend.Shorten {
		t.Error("a second Stop only shortens the grace")
	}
}

func TestMeasure(t *testing.T) {
	for _, row := range []struct {
		state  hypervisor.DomainState
		d      *backend.Domain
		window time.Duration
		want   backend.Answer
		lasts  time.Duration
	}{
		{hypervisor.Running, nil, time.Millisecond, backend.Act, time.Second},
		{hypervisor.Running, &backend.Domain{}, 1500 * time.Millisecond, backend.Act,
			2 * time.Second},
		{hypervisor.Running, nil, 3 * time.Second, backend.Act, 3 * time.Second},
		{hypervisor.Running, nil, time.Hour, backend.Act, time.Minute},
		{hypervisor.Running, nil, 1<<63 - 1, backend.Act, time.Minute},
		{hypervisor.Running, &backend.Domain{Measuring: time.Unix(1, 0)}, time.Hour,
			backend.Nothing, 0},
		{hypervisor.Paused, nil, time.Hour, backend.Refuse, 0},
	} {
		got, lasts, err := backend.Measure(row.state, row.d, row.window)
		if got != row.want || lasts != row.lasts || err != nil {
			t.Errorf("%+v: got %v, %v, %v", row, got, lasts, err)
		}
	}
	if _, _, err := backend.Measure(hypervisor.Running, nil, 0); !errors.Is(err,
		hypervisor.Invalid) {
		t.Errorf("got %v", err)
	}
}

// TestEvidence: only what is about this VM, this job and the right host proves anything.
func TestEvidence(t *testing.T) {
	const source, target = "n1", "n2"
	for _, row := range []struct {
		e    hypervisor.Evidence
		want string // what it proves: the source Stopped, the VM Never ran, is Dead, has Moved
	}{
		{hypervisor.Evidence{}, ""},
		{hypervisor.Evidence{Proof: hypervisor.SourceStopped, Host: source}, "S"},
		{hypervisor.Evidence{Proof: hypervisor.SourceStopped, Host: target}, ""},
		{hypervisor.Evidence{Proof: hypervisor.SourceStopped}, ""},
		{hypervisor.Evidence{Proof: hypervisor.TargetDiscarded, Host: target}, "ND"},
		{hypervisor.Evidence{Proof: hypervisor.TargetDiscarded, Host: source}, "S"}, // it is not there
		{hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, Host: target}, "M"},
		{hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, Host: source}, ""},
		{hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: source}, "S"},
		{hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: target}, "D"},
		{hypervisor.Evidence{Proof: hypervisor.OperatorWord, Host: source}, "S"},
		{hypervisor.Evidence{Proof: hypervisor.OperatorWord, Host: target}, "ND"},
	} {
		for _, about := range []struct {
			vm    hypervisor.VMID
			job   hypervisor.JobID
			right bool
		}{{"vm", "job", true}, {"vm", "other", false}, {"other", "job", false}} {
			e, got := row.e, ""
			e.VM, e.Job = about.vm, about.job
			for letter, err := range map[string]error{
				"S": backend.Stopped(e, "vm", "job", source), "N": backend.NeverRan(e, "vm", "job",
					target),
				"D": backend.Dead(e, "vm", "job", target), "M": backend.Moved(e, "vm", "job",
					source)} {
				if err == nil {
					got += letter
				} else if !errors.Is(err, hypervisor.Conflict) {
					t.Errorf("%+v: got %v", e, err)
				}
			}
			for _, letter := range strings.Split("SNDM", "") {
				want := about.right && strings.Contains(row.want, letter)
				if strings.Contains(got, letter) != want {
					t.Errorf("%+v proves %s: %v", e, letter, !want)
				}
			}
		}
	}
	if err := backend.Given(hypervisor.Evidence{}, "of it"); !errors.Is(err, hypervisor.Invalid) {
		t.Errorf("got %v", err)
	}
	must(t, backend.Given(hypervisor.Evidence{Proof: hypervisor.HostFenced}, "of it"))
}

// A recorder records which command it was given.
type recorder struct{ got string }

func (c *recorder) note(name string) error { c.got = name; return nil }

func (c *recorder) Start(context.Context, int, hypervisor.Start) error { return c.note("Start") }
func (c *recorder) Stop(context.Context, int, time.Duration) error     { return c.note("Stop") }
func (c *recorder) Kill(context.Context, int) error                    { return c.note("Kill") }
func (c *recorder) Reboot(context.Context,
	int) error {
	return c.note("Reboot")
}
func (c *recorder) Pause(context.Context, int) error { return c.note("Pause") }
func (c *recorder) Unpause(context.Context,
	int) error {
	return c.note("Unpause")
}
func (c *recorder) Resize(context.Context, int,
	hypervisor.VM) error {
	return c.note("Resize")
}
func (c *recorder) AttachDisk(context.Context, int,
	hypervisor.Disk) error {
	return c.note("AttachDisk")
}
func (c *recorder) DetachDisk(context.Context, int,
	string) error {
	return c.note("DetachDisk")
}
func (c *recorder) MoveDisk(context.Context, int, hypervisor.MoveDisk) error {
	return c.note("MoveDisk")
}
func (c *recorder) SwitchDisk(context.Context, int, string) error { return c.note("SwitchDisk") }
func (c *recorder) EndDiskMove(context.Context, int, hypervisor.EndDiskMove) error {
	return c.note("EndDiskMove")
}
func (c *recorder) Measure(context.Context, int,
	time.Duration) error {
	return c.note("MeasureDirtyRate")
}
func (c *recorder) Forget(context.Context, int,
	hypervisor.Forget) error {
	return c.note("Forget")
}
func (c *recorder) Snapshot(context.Context, int,
	hypervisor.Snapshot) error {
	return c.note("Snapshot")
}
func (c *recorder) DeleteSnapshot(context.Context, int, hypervisor.DeleteSnapshot) error {
	return c.note("DeleteSnapshot")
}
func (c *recorder) RevertSnapshot(context.Context, int, hypervisor.RevertSnapshot) error {
	return c.note("RevertSnapshot")
}
func (c *recorder) Discard(context.Context, int,
	hypervisor.Discard) error {
	return c.note("Discard")
}
func (c *recorder) Release(context.Context, int,
	hypervisor.Release) error {
	return c.note("Release")
}
func (c *recorder) Activate(context.Context, int,
	hypervisor.Activate) error {
	return c.note("Activate")
}
func (c *recorder) Resume(context.Context, int,
	hypervisor.Resume) error {
	return c.note("Resume")
}
func (c *recorder) Abandon(context.Context, int,
	hypervisor.Abandon) error {
	return c.note("Abandon")
}

// TestDo: every command comes to its method, and a VM that is not there has few.
func TestDo(t *testing.T) {
	for _, c := range []hypervisor.Command{hypervisor.Start{}, hypervisor.Stop{}, hypervisor.Kill{},
		hypervisor.Reboot{}, hypervisor.Pause{}, hypervisor.Unpause{}, hypervisor.Resize{},
		hypervisor.AttachDisk{}, hypervisor.DetachDisk{}, hypervisor.MeasureDirtyRate{},
		hypervisor.MoveDisk{}, hypervisor.SwitchDisk{}, hypervisor.EndDiskMove{},
		hypervisor.Forget{}, hypervisor.Snapshot{}, hypervisor.DeleteSnapshot{},
		hypervisor.RevertSnapshot{}, hypervisor.Discard{}, hypervisor.Release{},
		hypervisor.Activate{}, hypervisor.Resume{}, hypervisor.Abandon{}} {
		name := reflect.TypeOf(c).Name()
		to := &recorder{}
		if err := backend.Do(t.Context(), to, 0, true, c); err != nil || to.got != name {
			t.Errorf("%s: got %s, %v", name, to.got, err)
		}
		to.got = ""
		err := backend.Do(t.Context(), to, 0, false, c)
		switch name {
		case "Start", "Discard", "Release":
			if err != nil || to.got != name {
				t.Errorf("%s of no VM: got %s, %v", name, to.got, err)
			}
		case "Forget":
			if err != nil || to.got != "" {
				t.Errorf("%s of no VM: got %s, %v", name, to.got, err)
			}
		default:
			if !errors.Is(err, hypervisor.NotFound) || to.got != "" {
				t.Errorf("%s of no VM: got %s, %v", name, to.got, err)
			}
		}
	}
	if err := backend.Do(t.Context(), &recorder{}, 0, true, nil); !errors.Is(err, hypervisor.Invalid) {
		t.Errorf("no command: got %v", err)
	}
}
