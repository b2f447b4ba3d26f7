//go:build linux

package qmp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// put has the guest's disk "data" written, as its guest would, and notes what is written.
func (p *observer) put(ctx context.Context, contents []byte, at, size int) error {
	for _, command := range []string{fmt.Sprintf("write -P 0x5a %d %d", at, size), "flush"} {
		var said string
		err := p.client.Execute(ctx, "human-monitor-command", map[string]any{
			"command-line": fmt.Sprintf("qemu-io -d dev.data %q", command)}, &said)
		if err != nil || strings.Contains(said, "rror") || strings.Contains(said, "failed") {
			return fmt.Errorf("%s: %w %s", command, err, said)
		}
	}
	for i := range size {
		contents[at+i] = 0x5a
	}
	return nil
}

// copying returns the status of the copy of a disk, and the nodes of disks, as QEMU has them.
func (p *observer) copying(ctx context.Context) (status qemu.JobStatus, nodes []string, err error) {
	q := qemu.QEMU{Conn: p.client}
	jobs, err := q.QueryJobs(ctx)
	for _, j := range jobs {
		status = j.Status
	}
	if err != nil {
		return status, nil, err
	}
	all, err := q.QueryNamedNodes(ctx)
	for _, n := range all {
		nodes = append(nodes, n.Name)
	}
	return status, nodes, err
}

// switched waits until QEMU has done what it was asked of a switch, if it was asked. QEMU 7.2.22 dies of a write by
// its monitor's qemu-io in that moment ("child->perm & BLK_PERM_WRITE"); of a guest's own writes it does not. It does
// not say whether it was asked: a job that is still ready after two seconds was not.
func (p *observer) switched(t *testing.T) {
	t.Helper()
	asked := time.Now().Add(testutil.Limit(2 * time.Second))
	testutil.Eventually(t, "QEMU does not switch", func() error {
		status, _, err := p.copying(t.Context())
		switch {
		case err != nil || status == "" || status == qemu.JobConcluded:
			return err
		case status == qemu.JobReady && time.Now().After(asked):
			return nil
		}
		return fmt.Errorf("its job is %s", status)
	})
}

// A process that is killed at any moment of a move leaves a VM that runs on one whole image, which the
// host knows. A move that is asked for again comes to its end.
func TestDyingWhileADiskMoves(t *testing.T) {
	testutil.Long(t)
	s := newScene(t)
	const size = 32 * mib
	// A moment is what QEMU has when the process is killed; of a switch it is about to make, or of the end.
	type moment func(status qemu.JobStatus, nodes []string) bool
	for i, row := range []struct {
		name string
		at   hypervisor.DiskPhase // what the move has come to before
		when moment
	}{
		{"perhaps before anything is done", "", func(qemu.JobStatus, []string) bool { return true }},
		{"when the new image is open", "", func(_ qemu.JobStatus, nodes []string) bool {
			return slices.Contains(nodes, "copy.data")
		}},
		{"while it is copied", "", func(status qemu.JobStatus, _ []string) bool { return status != "" }},
		{"when it is complete", "", func(status qemu.JobStatus, _ []string) bool { return status == qemu.JobReady }},
		{"perhaps before the switch", hypervisor.DiskReady, func(qemu.JobStatus, []string) bool { return true }},
		{"at the switch", hypervisor.DiskReady, func(status qemu.JobStatus, _ []string) bool {
			return status != qemu.JobReady
		}},
		{"when nothing of the old image is left", hypervisor.DiskReady, func(_ qemu.JobStatus, nodes []string) bool {
			return !slices.Contains(nodes, "disk.data")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			vm := backendtest.WithDisks(s.vm(vmid(fmt.Sprintf("crash/mover%d", i)), crashGuest),
				hypervisor.Disk{Name: "data", Format: "raw", Size: size})
			dir := t.TempDir()
			to := filepath.Join(dir, "moved")
			must(t, s.do(source, vm.ID, hypervisor.Start{VM: vm}))
			p, err := observe(t.Context(), s.secondMonitor(source), "n1", func(string) {})
			must(t, err)
			defer func() { p.close() }()
			contents := make([]byte, size)
			must(t, p.put(t.Context(), contents, 0, 4<<20))
			var c hypervisor.Command = hypervisor.MoveDisk{Disk: "data", To: to}
			if row.at != "" {
				must(t, s.do(source, vm.ID, c))
				s.awaitMove(t, vm.ID, row.at)
				c = hypervisor.SwitchDisk{Disk: "data"}
			}
			agent := s.hosts[source].Agent()
			asked := make(chan error, 1)
			go func() { asked <- s.hosts[source].Do(t.Context(), vm.ID, c) }()
			testutil.Eventually(t, row.name, func() error {
				status, nodes, err := p.copying(t.Context())
				if err == nil && !row.when(status, nodes) {
					err = fmt.Errorf("the copy is %q, the nodes %v", status, nodes)
				}
				return err
			})
			agent.Kill()
			told := <-asked
			if row.at != "" {
				p.switched(t)
			}
			must(t, p.put(t.Context(), contents, 8<<20, 1<<20)) // while no process of ours is there
			must(t, s.hosts[source].Start())
			s.await(t, source, vm.ID, hypervisor.Running)
			var left hypervisor.Domain
			testutil.Eventually(t, "the host knows how the move is", func() (err error) {
				left, err = s.domain(source, vm.ID)
				if m := left.Moving; err == nil && m != nil && m.Phase == hypervisor.DiskCopying {
					err = fmt.Errorf("it is %+v", m)
				}
				return err
			})
			if row.at != "" {
				p.switched(t)
			}
			must(t, p.put(t.Context(), contents, 16<<20, 1<<20))
			on := ""
			if m := left.Moving; m != nil && m.Phase == hypervisor.DiskSwitched {
				on = to
			}
			if !left.VM.Equal(vm.AtPath("data", on)) {
				t.Errorf("it is %+v with %+v, and its move %+v", left, left.VM.Hardware.Disks, left.Moving)
			}
			t.Logf("killed (%v), it has %+v", told, left.Moving)
			if on == "" {
				must(t, s.do(source, vm.ID, hypervisor.MoveDisk{Disk: "data", To: to}))
				s.awaitMove(t, vm.ID, hypervisor.DiskReady)
				must(t, s.do(source, vm.ID, hypervisor.SwitchDisk{Disk: "data"}))
			}
			testutil.Eventually(t, "the move has ended", func() error {
				return s.hosts[source].Do(t.Context(), vm.ID, hypervisor.EndDiskMove{Disk: "data", On: to})
			})
			must(t, p.put(t.Context(), contents, 24<<20, 1<<20))
			must(t, s.do(source, vm.ID, hypervisor.Kill{}))
			s.await(t, source, vm.ID, hypervisor.Shutoff)
			holds(t, to, "raw", contents)
			files, err := filepath.Glob(filepath.Join(s.dirOf(source), "disks", "*", "*"))
			if names, bad := os.ReadDir(dir); bad != nil || err != nil || len(names) != 1 || len(files) > 0 {
				t.Errorf("there are %v and %v, %v, %v", names, files, bad, err)
			}
			must(t, s.do(source, vm.ID, hypervisor.Forget{}))
		})
	}
}

// A copy that breaks while no process of ours is there, and whose QEMU dies then, too, lacks what was written since:
// the VM has the image that it had.
func TestACopyThatBreaksUnseen(t *testing.T) {
	testutil.Sample(t, 5)
	s := newScene(t)
	vm := backendtest.WithDisks(s.vm("crash/unseen", crashGuest), hypervisor.Disk{Name: "data", Format: "raw", Size: 32 * mib})
	to, contents := filepath.Join(t.TempDir(), "moved"), make([]byte, 32*mib)
	must(t, s.do(source, vm.ID, hypervisor.Start{VM: vm}))
	p, err := observe(t.Context(), s.secondMonitor(source), "n1", func(string) {})
	must(t, err)
	defer func() { p.close() }()
	must(t, s.do(source, vm.ID, hypervisor.MoveDisk{Disk: "data", To: to}))
	s.awaitMove(t, vm.ID, hypervisor.DiskReady)
	must(t, p.put(t.Context(), contents, 0, 1<<20))
	s.hosts[source].Agent().Kill()
	jobs, err := (qemu.QEMU{Conn: p.client}).QueryJobs(t.Context())
	must(t, err)
	for _, j := range jobs {
		must(t, p.client.Execute(t.Context(), "block-job-cancel", map[string]any{"device": j.ID, "force": true}, nil))
	}
	must(t, p.put(t.Context(), contents, 8<<20, 1<<20))
	must(t, p.client.Execute(t.Context(), "quit", nil, nil))
	must(t, s.hosts[source].Start())
	s.await(t, source, vm.ID, hypervisor.Crashed)
	for _, c := range []hypervisor.Command{hypervisor.SwitchDisk{Disk: "data"}, hypervisor.Start{VM: vm.AtPath("data", to)}} {
		if err := s.hosts[source].Do(t.Context(), vm.ID, c); !errors.Is(err, hypervisor.Conflict) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	must(t, s.do(source, vm.ID, hypervisor.Start{VM: vm}))
	s.awaitMove(t, vm.ID, hypervisor.DiskFailed)
	must(t, s.do(source, vm.ID, hypervisor.Kill{}))
	s.await(t, source, vm.ID, hypervisor.Shutoff)
	files, err := filepath.Glob(filepath.Join(s.dirOf(source), "disks", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are %v, %v", files, err)
	}
	holds(t, files[0], "raw", contents)
}

// awaitMove waits until the move of a disk is in a phase.
func (s *scene) awaitMove(t *testing.T, id vmid, want hypervisor.DiskPhase) {
	t.Helper()
	testutil.Eventually(t, "the move is "+string(want), func() error {
		d, err := s.domain(source, id)
		if err == nil && (d.Moving == nil || d.Moving.Phase != want) {
			err = fmt.Errorf("it is %+v", d.Moving)
		}
		return err
	})
}
