//go:build linux

package qmp_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// Between the note that a job is sent and the order to QEMU lies an instant. A process that
// dies in it leaves a job that has not begun: it must end, and the VM, whatever
// it came by, must be free for another.
func TestDyingBeforeTheTransferBegins(t *testing.T) {
	for _, row := range []struct {
		name          string
		paused, moved bool
	}{
		{"a VM that was started here", false, false},
		{"a VM that came by a migration", false, true},
		{"a paused VM that came by a migration", true, true},
	} {
		for changes := 1; changes <= 2; changes++ {
			t.Run(fmt.Sprintf("%s, change %d", row.name, changes), func(t *testing.T) {
				testutil.Sample(t, 5)
				dieBefore(t, row.paused, row.moved, changes)
			})
		}
	}
}

func dieBefore(t *testing.T, paused, moved bool, changes int) {
	s := newScene(t)
	r := s.newRound(noVictim, 0, backendtest.Moment{}, rand.New(rand.NewPCG(0, 0)))
	r.ctx = t.Context()
	var err error
	if r.pulse, err = guest.NewHeartbeatListener(); err != nil {
		t.Fatal(err)
	}
	defer r.pulse.Close()
	if err := r.boot(source); err != nil {
		t.Fatal(err)
	}
	defer r.observers[source].close()
	from, to := source, target
	if moved {
		s.send(t, "first", r.vm, from, to)
		s.await(t, to, r.vm.ID, hypervisor.Running)
		release := hypervisor.Release{Job: "first", Moved: hypervisor.Evidence{
			Proof: hypervisor.RunsAtTarget, VM: r.vm.ID, Host: to, Job: "first", By: "test"}}
		must(t, s.do(from, r.vm.ID, release))
		from, to = to, from
	}
	want := hypervisor.Running
	if paused {
		want = hypervisor.Paused
		must(t, s.do(from, r.vm.ID, hypervisor.Pause{}))
	}
	e := s.hosts[from].Agent()
	must(t, e.DieAfter(changes))
	s.send(t, "second", r.vm, from, to)
	select {
	case <-e.Ended():
	case <-time.After(testutil.Limit(testutil.DefaultLimit)):
		t.Fatal("the agent does not die")
	}
	if err := s.hosts[from].Start(); err != nil {
		t.Fatal(err)
	}
	var p hypervisor.JobStatus
	testutil.Eventually(t, "the job that never began has failed", func() error {
		p = s.status(t, from, "second")
		if p == hypervisor.JobFailed || p == hypervisor.JobNone {
			return nil
		}
		return fmt.Errorf("it is %v", p)
	})
	s.await(t, from, r.vm.ID, want)
	must(t, s.do(to, r.vm.ID, hypervisor.Discard{Job: "second"}))
	s.send(t, "third", r.vm, from, to)
	s.await(t, to, r.vm.ID, want)
	if now := s.status(t, from, "second"); now != p {
		t.Fatalf("the job that never began was %v and is %v", p, now)
	}
}

// send opens a target and begins to send, and does not mind if the agent dies.
func (s *scene) send(t *testing.T, job hypervisor.JobID, vm hypervisor.VM, from, to name) {
	t.Helper()
	address, err := s.receive(to, hypervisor.Incoming{Job: job, VM: vm})
	must(t, err)
	err = s.hosts[from].Migrate(t.Context(), hypervisor.Outgoing{Job: job, VM: vm.ID, Target: to,
		Address: address})
	if err != nil && !errors.Is(err, hypervisor.Unknown) {
		t.Fatal(err)
	}
}

// status is how a job goes, as a host says.
func (s *scene) status(t *testing.T, n name, job hypervisor.JobID) hypervisor.JobStatus {
	t.Helper()
	p, err := s.progress(n, job)
	must(t, err)
	return p.Status
}

// await waits until a VM is in a state on a host.
func (s *scene) await(t *testing.T, n name, id vmid, want hypervisor.DomainState) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("%s on %s is %v", id, n, want), func() error {
		d, err := s.domain(n, id)
		if err == nil && d.State != want {
			err = fmt.Errorf("it is %v", d.State)
		}
		return err
	})
}

// A VM that was forgotten has left its disk. A target that is asked for the same VM
// refuses, and a process that dies over that has not removed the disk.
func TestDyingOverATargetKeepsADiskThatWasThere(t *testing.T) {
	s := newScene(t)
	vm := s.vm("crash/disk", crashGuest)
	hw := *vm.Hardware
	hw.Disks = []hypervisor.Disk{{Name: "data", Size: mib}}
	vm.Hardware = &hw
	must(t, s.do(target, vm.ID, hypervisor.Start{VM: vm}))
	must(t, s.do(target, vm.ID, hypervisor.Kill{}))
	must(t, s.do(target, vm.ID, hypervisor.Forget{}))
	disks, err := filepath.Glob(filepath.Join(s.dirOf(target), "disks", "*", "*"))
	if err != nil || len(disks) != 1 {
		t.Fatalf("its disks are %v, %v", disks, err)
	}
	precious := bytes.Repeat([]byte("precious"), 1<<17)
	if err := os.WriteFile(disks[0], precious, 0o600); err != nil {
		t.Fatal(err)
	}
	for changes := 1; changes <= 3; changes++ {
		must(t, s.hosts[target].Agent().DieAfter(changes))
		job := hypervisor.JobID("job-" + string(rune('0'+changes)))
		_, err := s.hosts[target].Receive(t.Context(), hypervisor.Incoming{Job: job, VM: vm})
		if err == nil {
			t.Fatal("a target was opened over a disk")
		}
		s.hosts[target].Agent().Kill() // if it has not died by itself
		if err := s.hosts[target].Start(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(disks[0])
		if err != nil || !bytes.Equal(got, precious) {
			t.Fatalf("after %d changes of the journal: %d bytes, %v", changes, len(got), err)
		}
	}
}
