package qmp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// between closes a host, changes what it has noted of a VM and of a job, as if its process had
// died between two notes, and opens it again.
func (l *lab) between(n name, id vmid, j job, change func(*qmp.DomainRecord, *qmp.Job)) {
	l.T.Helper()
	must(l.T, l.hosts[n].Close())
	delete(l.hosts, n)
	dir := filepath.Join(l.dir, string(n))
	domain := filepath.Join(dir, "vms", durable.Name(string(id)), "domain")
	var d qmp.DomainRecord
	must(l.T, durable.Read(domain, &d))
	var noted qmp.Job
	if j != "" {
		must(l.T, durable.Read(filepath.Join(dir, "jobs", durable.Name(string(j))), &noted))
	}
	change(&d, &noted)
	must(l.T, durable.Write(domain, &d, true))
	if j != "" {
		must(l.T, durable.Write(filepath.Join(dir, "jobs", durable.Name(string(j))), &noted, true))
	}
	l.reopen(n)
}

// A pause that was noted and not done is not done to the VM when it has moved.
func TestAPauseThatWasNotDoneDoesNotMoveAlong(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/paused", calm)
	l.start("n1", vm)
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) { d.Paused = true })
	l.Becomes("n1", vm.ID, hypervisor.Running)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.arrives("job", vm.ID)
}

// A VM whose target died while it let it run, and that is started again there, takes no part in
// that job any more.
func TestAJobWhoseVMHasDiedDoesNotWakeUp(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/again", calm)
	l.start("n1", vm)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.Becomes("n2", vm.ID, hypervisor.Running)
	must(t, testutil.KillBelow(filepath.Join(l.dir, "n2")))
	l.Becomes("n2", vm.ID, hypervisor.Crashed)
	l.between("n2", vm.ID, "job", func(d *qmp.DomainRecord, j *qmp.Job) {
		d.Own, d.Ran, j.Stage = false, false, qmp.Activating
	})
	l.start("n2", vm)
	l.Becomes("n2", vm.ID, hypervisor.Running)
	time.Sleep(200 * time.Millisecond)
	if p := l.Progress("n2", "job"); p.Status != hypervisor.JobSucceeded || p.Mode != 0 {
		t.Errorf("the job is %v, by %v", p.Status, p.Mode)
	}
	l.sound("n2", vm.ID)
}

// A VM at rest whose migration was ended, and not the QEMU that copied its disks, is at rest.
func TestWhatCopiedTheDisksOfAVMAtRestIsEnded(t *testing.T) {
	for _, stage := range []qmp.Stage{qmp.Resumed, qmp.Abandoned} {
		t.Run(string(stage), func(t *testing.T) {
			l, wire := linked(t, nil)
			on := slow(wire)
			defer on.Store(false)
			vm := backendtest.WithDisks(l.vm("suite/cold", calm), hypervisor.Disk{Name: "data", Size: 32 * mib})
			l.furnish("n1", vm)
			l.copies("job", vm.ID)
			l.between("n1", vm.ID, "job", func(_ *qmp.DomainRecord, j *qmp.Job) {
				j.Stage, j.Last.Status = stage, hypervisor.JobFailed
			})
			l.Becomes("n1", vm.ID, hypervisor.Shutoff)
			l.start("n1", vm)
			l.Becomes("n1", vm.ID, hypervisor.Running)
		})
	}
}

// The end of a VM that moves begins with the VM, not with its migration: what is left of it
// would move on otherwise, and stand where it was.
func TestAKillThatWasOnlyBegunIsDone(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/killed", calm)
	l.start("n1", vm)
	l.begin("job", vm.ID, options{Bandwidth: 1 << 20})
	l.Eventually("memory moves", func() bool { return l.Progress("n1", "job").Sent > 0 })
	note := filepath.Join(l.dir, "n1", "jobs", durable.Name("job")) + durable.Unfinished
	must(t, os.Mkdir(note, 0o700)) // nothing is noted of the job
	backendtest.Refused(t, l.hosts["n1"].Do(t.Context(), vm.ID, hypervisor.Kill{}),
		hypervisor.Transient)
	must(t, os.Remove(note))
	l.Becomes("n1", vm.ID, hypervisor.Shutoff)
}

// What was done to a disk and not noted is not in the way of doing it again.
func TestADiskThatWasHalfPluggedIsPlugged(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	if why := supports(l, hypervisor.CanAttachDisk); why != "" {
		t.Skip(why)
	}
	vm := backendtest.WithDisks(l.vm("suite/plugs", calm), hypervisor.Disk{Name: "data", Size: 8 * mib})
	l.start("n1", vm)
	path := filepath.Join(filepath.Dir(l.disk("n1", "data")), "more")
	must(t, os.WriteFile(path, make([]byte, 8<<20), 0o600))
	l.ask("n1", vm.ID, "blockdev-add", map[string]any{"node-name": "disk.more", "driver": "raw",
		"file": map[string]any{"driver": "file", "filename": path}})
	l.Do("n1", vm.ID, hypervisor.AttachDisk{Disk: hypervisor.Disk{Name: "more", Size: 8 * mib}})
	if !l.plugged("n1", vm.ID)["dev.more"] {
		t.Error("the guest has no disk more")
	}
	full := l.Domain("n1", vm.ID).VM
	detach := func() {
		t.Helper()
		l.Eventually("the guest lets go of it", func() bool {
			return l.hosts["n1"].Do(t.Context(), vm.ID, hypervisor.DetachDisk{Name: "more"}) == nil
		})
	}
	detach()
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) { d.VM = full })
	detach()
}

// A downtime that was allowed is waited for, however long its source does not answer.
func TestALongDowntimeThatIsAllowedIsNotGivenUp(t *testing.T) {
	var wire *link
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		if wire == nil {
			wire = newLink(t, filepath.Join(filepath.Dir(c.Dir), "l"))
		}
		c.Advertise, c.Timeout = wire.advertise, time.Second
	})
	var narrow atomic.Bool
	wire.overhear = func(b []byte) {
		if narrow.Load() { // 4 MB/s
			time.Sleep(time.Duration(len(b)) * 250 * time.Nanosecond)
		}
	}
	large := calm
	large.Fill = 32 << 20
	vm := l.vm("suite/traveller", large)
	l.start("n1", vm)
	narrow.Store(true)
	l.begin("job", vm.ID, options{Downtime: 100 * time.Second, Bandwidth: 4 << 20})
	l.Eventually("it has moved", func() bool {
		p, err := l.hosts["n1"].Progress(t.Context(), "job")
		return err == nil && p.Status.Final()
	})
	narrow.Store(false)
	p := l.Progress("n1", "job")
	if p.Status != hypervisor.JobSucceeded || p.Downtime < 3*time.Second {
		t.Errorf("it is %v (%s) after a downtime of %v", p.Status, p.Error, p.Downtime)
	}
	l.arrives("job", vm.ID)
}

// A release that was noted and not done is done: whatever else was noted, the VM runs elsewhere,
// and no call can start what is left here.
func TestAReleaseThatWasCutIsDone(t *testing.T) {
	for _, stage := range []qmp.Stage{qmp.Sending, qmp.Left} {
		t.Run(fmt.Sprint(stage), func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := l.vm("suite/left", calm)
			l.start("n1", vm)
			l.begin("job", vm.ID, options{})
			l.Until("n1", "job", hypervisor.JobSucceeded)
			l.between("n1", vm.ID, "job", func(d *qmp.DomainRecord, j *qmp.Job) {
				d.Leaving, d.Ending, j.Stage = true, true, stage
			})
			l.Becomes("n1", vm.ID, hypervisor.Absent)
			l.arrives("job", vm.ID)
		})
	}
}
