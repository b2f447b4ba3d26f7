package qmp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// furnish makes a VM at rest whose local disks have known contents, which it
// returns by the disk's name.
func (l *lab) furnish(n name, vm hypervisor.VM) map[string][]byte {
	l.T.Helper()
	l.Do(n, vm.ID, hypervisor.Start{VM: vm}, hypervisor.Kill{})
	contents := map[string][]byte{}
	for i, d := range vm.Hardware.Disks {
		contents[d.Name] = backendtest.Noise(i, d.Size)
		raw := filepath.Join(l.dir, "raw")
		if err := os.WriteFile(raw, contents[d.Name], 0o600); err != nil {
			l.T.Fatal(err)
		}
		backendtest.Image(l.T, "convert", "-n", "-f", "raw", "-O", formatOf(d), raw, l.disk(n,
			d.Name))
		if err := os.Remove(raw); err != nil {
			l.T.Fatal(err)
		}
	}
	return contents
}

func formatOf(d hypervisor.Disk) string {
	if d.Format == "" {
		return "raw"
	}
	return d.Format
}

// disk returns where the only local disk of that name on a host is.
func (l *lab) disk(n name, disk string) string {
	l.T.Helper()
	for _, path := range l.disks(n) {
		if filepath.Base(path) == disk {
			return path
		}
	}
	l.T.Fatalf("%s has no disk %q, only %v", n, disk, l.disks(n))
	return ""
}

// same wants the local disks on a host, of VMs at rest, to have these contents.
func (l *lab) same(n name, contents map[string][]byte) {
	l.T.Helper()
	raw := filepath.Join(l.dir, "raw")
	defer os.Remove(raw)
	for disk, want := range contents {
		path := l.disk(n, disk)
		var info struct{ Format string }
		must(l.T, json.Unmarshal([]byte(backendtest.Image(l.T, "info", "--output=json", path)),
			&info))
		backendtest.Image(l.T, "convert", "-f", info.Format, "-O", "raw", path, raw)
		got, err := os.ReadFile(raw)
		if err != nil || !bytes.Equal(got, want) {
			l.T.Errorf("disk %s on %s is not what it was: %d bytes, want %d: %v", disk, n,
				len(got), len(want), err)
		}
	}
}

// write writes 64 KiB of one byte on a disk of a VM that runs, and flushes it, as its
// guest would.
func (l *lab) write(n name, id vmid, disk string, contents []byte, at int) {
	l.T.Helper()
	const size = 64 << 10
	for _, command := range []string{fmt.Sprintf("write -P 0x5a %d %d", at, size), "flush"} {
		m, err := l.hosts[n].Monitor(id)
		var said string
		if err == nil {
			err = m.Execute(testutil.Context(l.T, testutil.DefaultLimit), "human-monitor-command",
				map[string]any{
					"command-line": fmt.Sprintf("qemu-io -d dev.%s %q", disk, command)}, &said)
		}
		if err != nil || strings.Contains(said, "rror") || strings.Contains(said, "failed") {
			l.T.Fatalf("%s on disk %s: %v %s", command, disk, err, said)
		}
	}
	for i := range size {
		contents[at+i] = 0x5a
	}
}

var twoDisks = []hypervisor.Disk{{Name: "root", Format: "qcow2", Size: 32 * mib},
	{Name: "data", Size: 32 * mib}}

// slow makes a link carry little at a time, while it is on.
func slow(wire *link) (on *atomic.Bool) {
	on = new(atomic.Bool)
	wire.overhear = func([]byte) {
		if on.Load() {
			time.Sleep(20 * time.Millisecond)
		}
	}
	on.Store(true)
	return on
}

// copies begins to send a VM with disks over a slow link, and waits until they are
// being copied.
func (l *lab) copies(j job, id vmid) {
	l.T.Helper()
	l.begin(j, id, options{})
	l.Eventually("disks are copied", func() bool {
		p := l.Progress("n1", j)
		if p.Status != hypervisor.JobActive {
			l.T.Fatalf("it is %v: %s", p.Status, p.Error)
		}
		return p.Sent > 0
	})
}

func TestLocalDisksMoveWithTheVM(t *testing.T) {
	dir, ports := newAuthority(t, "godwit test").credentials(), freePorts(t)
	for _, row := range []struct {
		name    string
		change  func(*qmp.Config)
		options options
	}{
		{"over unix sockets", nil, options{}},
		{"over TCP", overTCP(ports), options{}},
		{"over TCP, encrypted with certificates", func(c *qmp.Config) {
			overTCP(ports)(c)
			c.TLS = &qmp.TLS{Dir: dir}
		}, options{}},
		{"with memory over two channels", nil, options{Channels: 2, AutoConverge: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), row.change)
			vm := backendtest.WithDisks(l.vm("suite/traveller", busy), twoDisks...)
			contents := l.furnish("n1", vm)
			l.start("n1", vm)
			l.begin("job", vm.ID, row.options)
			l.Until("n1", "job", hypervisor.JobSucceeded)
			l.sound("n2", vm.ID)
			l.afterwards("job", vm.ID, contents)
		})
	}
}

// afterwards wants a VM that has come to n2 to have its disks there, and those of
// n1 to be gone when it is released.
func (l *lab) afterwards(j job, id vmid, contents map[string][]byte) {
	l.T.Helper()
	if before := l.disks("n1"); len(before) != len(contents) {
		l.T.Errorf("before it is released the source has %v", before)
	}
	l.release(j, id, "n1", "n2")
	if after := l.disks("n1"); len(after) > 0 {
		l.T.Errorf("after it was released the source has %v", after)
	}
	l.Do("n2", id, hypervisor.Kill{})
	l.same("n2", contents)
	l.Do("n2", id, hypervisor.Forget{})
	l.empty()
}

// The disks of a migration share the bandwidth that it may use.
func TestTheCopyOfDisksKeepsTheBandwidth(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/traveller", calm), twoDisks...)
	contents := l.furnish("n1", vm)
	l.start("n1", vm)
	began := time.Now()
	l.begin("job", vm.ID, options{Bandwidth: 16 << 20})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	if took := time.Since(began); took < 3500*time.Millisecond { // 64 MiB, and what is sent at once
		t.Errorf("64 MiB at 16 MiB/s took %s", took)
	}
	l.afterwards("job", vm.ID, contents)
}

// What the guest writes while its disks are being copied is copied, too.
func TestWhatIsWrittenDuringTheCopyArrives(t *testing.T) {
	l, wire := linked(t, nil)
	brake := slow(wire)
	vm := backendtest.WithDisks(l.vm("suite/traveller", busy), twoDisks...)
	contents := l.furnish("n1", vm)
	l.start("n1", vm)
	l.copies("job", vm.ID)
	if p := l.Progress("n1", "job"); p.Disks != 64*mib || p.Iteration != 0 || p.Sent > p.Disks ||
		p.Remaining <= vm.Memory || p.Remaining > vm.Memory+p.Disks {
		t.Errorf("while its disks are copied it is %+v", p)
	}
	for i, disk := range []string{"root", "data", "root", "data"} {
		l.write("n1", vm.ID, disk, contents[disk], (31-30*(i/2))<<20)
	}
	brake.Store(false)
	l.Until("n1", "job", hypervisor.JobSucceeded)
	if p := l.Progress("n1", "job"); p.Sent < 64*mib || p.Remaining != 0 {
		t.Errorf("when disks and memory are there it is %+v", p)
	}
	l.sound("n2", vm.ID)
	l.write("n2", vm.ID, "data", contents["data"], 7<<20) // it has become the target's own
	l.afterwards("job", vm.ID, contents)
}

// The source loses nothing by a copy that is not completed, and the target keeps
// nothing of it.
func TestACopyThatEndsEarlyLeavesTheVMAtItsSource(t *testing.T) {
	for _, row := range []struct {
		name string
		ends func(*lab, *link)
		as   hypervisor.JobStatus
	}{
		{"it is cancelled", func(l *lab, _ *link) { l.Adjust("job", hypervisor.Cancel{}) },
			hypervisor.JobCancelled},
		{"the connection is closed", func(_ *lab, w *link) { _ = w.reset() },
			hypervisor.JobFailed},
		// QEMU ends no copy before what it has sent is answered.
		{"it is cancelled while the network is silent, which then comes back",
			func(l *lab, w *link) {
				_ = w.setCut(true)
				l.Adjust("job", hypervisor.Cancel{})
				l.Adjust("job", hypervisor.Cancel{})
				_ = w.setCut(false)
			}, hypervisor.JobCancelled},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, wire := linked(t, nil)
			brake := slow(wire)
			vm := backendtest.WithDisks(l.vm("suite/traveller", busy), twoDisks...)
			contents := l.furnish("n1", vm)
			l.start("n1", vm)
			l.copies("job", vm.ID)
			l.write("n1", vm.ID, "data", contents["data"], 1<<20)
			row.ends(l, wire)
			brake.Store(false)
			l.Until("n1", "job", row.as)
			l.sound("n1", vm.ID)
			l.Do("n2", vm.ID, hypervisor.Discard{Job: "job"})
			if left := l.disks("n2"); len(left) > 0 {
				t.Errorf("the target keeps %v", left)
			}
			l.write("n1", vm.ID, "root", contents["root"], 3<<20)
			l.begin("again", vm.ID, options{})
			l.Until("n1", "again", hypervisor.JobSucceeded)
			l.sound("n2", vm.ID)
			l.afterwards("again", vm.ID, contents)
		})
	}
}

func TestAVMAtRestMovesCold(t *testing.T) {
	dir := newAuthority(t, "godwit test").credentials()
	for _, row := range []struct {
		name  string
		disks []hypervisor.Disk
		tls   *qmp.TLS
	}{
		{"without disks", nil, nil},
		{"with local disks", twoDisks, nil},
		{"with local disks, encrypted", twoDisks, &qmp.TLS{Dir: dir, Hostname: hostname}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, _ := linked(t, func(c *qmp.Config) { c.TLS = row.tls })
			vm := backendtest.WithDisks(l.vm("suite/traveller", calm), row.disks...)
			contents := l.furnish("n1", vm)
			l.begin("job", vm.ID, options{})
			l.Until("n1", "job", hypervisor.JobSucceeded)
			l.Becomes("n2", vm.ID, hypervisor.Shutoff)
			l.Becomes("n1", vm.ID, hypervisor.HandedOver)
			l.release("job", vm.ID, "n1", "n2")
			if left := l.disks("n1"); len(left) > 0 {
				t.Errorf("the source has %v", left)
			}
			l.same("n2", contents)
			l.start("n2", vm)
			l.sound("n2", vm.ID)
			l.ends("n2", vm.ID)
			l.same("n2", contents) // Forget leaves them
		})
	}
}

func TestADiskThatWasPluggedInMovesToo(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/traveller", busy), twoDisks[0])
	contents := l.furnish("n1", vm)
	l.start("n1", vm)
	l.Do("n1", vm.ID, hypervisor.AttachDisk{Disk: twoDisks[1]})
	contents["data"] = make([]byte, twoDisks[1].Size)
	l.write("n1", vm.ID, "data", contents["data"], 5<<20)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.sound("n2", vm.ID)
	l.write("n2", vm.ID, "data", contents["data"], 9<<20)
	l.afterwards("job", vm.ID, contents)
}

// A shared image belongs to the QEMU that runs the VM: QEMU's lock moves with it.
func TestASharedDiskMovesWithItsLock(t *testing.T) {
	for _, format := range []string{"raw", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			path := filepath.Join(l.dir, "shared."+format)
			backendtest.Image(t, "create", "-q", "-f", format, path, "8M")
			vm := backendtest.WithDisks(l.vm("suite/traveller", busy), hypervisor.Disk{Name: "data",
				Format: format, Path: path, Size: 8 * mib})
			contents := make([]byte, 8<<20)
			l.start("n1", vm)
			l.write("n1", vm.ID, "data", contents, 1<<20)
			l.Refuses("n2", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Invalid, "lock", path)
			l.begin("job", vm.ID, options{})
			l.Until("n1", "job", hypervisor.JobSucceeded)
			l.sound("n2", vm.ID)
			l.write("n2", vm.ID, "data", contents, 2<<20)
			l.release("job", vm.ID, "n1", "n2")
			l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Invalid, "lock", path)
			if s := l.Domain("n1", vm.ID).State; s != hypervisor.Absent {
				t.Errorf("the refused VM is %v", s)
			}
			l.ends("n2", vm.ID)
			raw := filepath.Join(l.dir, "raw")
			backendtest.Image(t, "convert", "-f", format, "-O", "raw", path, raw)
			if got, err := os.ReadFile(raw); err != nil || !bytes.Equal(got, contents) {
				t.Errorf("the image has not what was written: %v", err)
			}
		})
	}
}

// What is there already is never overwritten by what arrives.
func TestATargetDoesNotOverwriteADisk(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/traveller", calm), twoDisks[1])
	contents := l.furnish("n2", vm)
	l.Do("n2", vm.ID, hypervisor.Forget{})
	_, err := l.Host("n2").Receive(context.Background(), hypervisor.Incoming{Job: "job", VM: vm})
	backendtest.Refused(t, err, hypervisor.Conflict, "data", "is here already")
	l.same("n2", contents)
	l.empty()
}
