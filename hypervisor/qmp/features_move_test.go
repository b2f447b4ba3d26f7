package qmp_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// moves waits until the move of a VM's disk is in a phase.
func (l *lab) moves(id vmid, want hypervisor.DiskPhase) {
	l.T.Helper()
	l.Eventually("the move is "+string(want), func() bool {
		m := l.Domain("n1", id).Moving
		if m != nil && m.Phase == hypervisor.DiskFailed && want != m.Phase {
			l.T.Fatalf("it has failed: %s", m.Error)
		}
		return m != nil && m.Phase == want
	})
}

// holds wants an image that no QEMU uses to have contents, by the word of qemu-img.
func holds(t testing.TB, path, format string, want []byte) {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(raw, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if size := virtual(t, path); size != hypervisor.Bytes(len(want)) {
		t.Errorf("%s has %v, want %d bytes", path, size, len(want))
	}
	backendtest.Image(t, "compare", "-f", format, "-F", "raw", path, raw)
}

// A disk moves while its guest writes, to and fro, and everything that may be asked of its VM can be
// asked of it afterwards. The old image stays as it was at the switch.
func TestADiskMovesWhileItsGuestWrites(t *testing.T) {
	for _, format := range []string{"raw", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			if why := supports(l, hypervisor.CanMoveDisk|hypervisor.CanSnapshot); why != "" {
				t.Skip(why)
			}
			const size = 48 * mib
			vm := backendtest.WithDisks(l.vm("suite/mover", calm), hypervisor.Disk{Name: "data", Format: format, Size: size})
			contents := l.furnish("n1", vm)["data"]
			old, dir := l.disk("n1", "data"), t.TempDir()
			l.Do("n1", vm.ID, hypervisor.Start{VM: vm})
			first := filepath.Join(dir, "first")
			begin := hypervisor.MoveDisk{Disk: "data", To: first}
			l.Do("n1", vm.ID, begin, begin)
			for at := 0; ; at += 1 << 20 { // while it is copied
				l.write("n1", vm.ID, "data", contents, at%int(size))
				if m := l.Domain("n1", vm.ID).Moving; m.Phase == hypervisor.DiskReady {
					break
				}
			}
			l.Refuses("n1", vm.ID, hypervisor.DetachDisk{Name: "data"}, hypervisor.Conflict, "data",
				first)
			l.Refuses("n1", vm.ID, hypervisor.EndDiskMove{Disk: "data", On: first},
				hypervisor.Conflict, "data")
			l.write("n1", vm.ID, "data", contents, 333<<10)
			before := bytes.Clone(contents)
			l.Do("n1", vm.ID, hypervisor.SwitchDisk{Disk: "data"},
				hypervisor.SwitchDisk{Disk: "data"})
			moved := vm.AtPath("data", first)
			l.ended(vm.ID, hypervisor.EndDiskMove{Disk: "data", On: first, Keep: true})
			if d := l.Domain("n1", vm.ID); !d.VM.Equal(moved) || d.State != hypervisor.Running {
				t.Fatalf("it is %+v with %+v", d, d.VM.Hardware)
			}
			l.write("n1", vm.ID, "data", contents, 777<<10)
			holds(t, old, format, before)

			second := filepath.Join(dir, "second")
			l.Do("n1", vm.ID, hypervisor.MoveDisk{Disk: "data", To: second})
			l.moves(vm.ID, hypervisor.DiskReady)
			l.write("n1", vm.ID, "data", contents, 1<<20)
			l.Do("n1", vm.ID, hypervisor.SwitchDisk{Disk: "data"})
			l.ended(vm.ID, hypervisor.EndDiskMove{Disk: "data", On: second})
			l.write("n1", vm.ID, "data", contents, 2<<20)
			if _, err := os.Stat(first); err == nil {
				t.Errorf("%s is still there", first)
			}
			l.sound("n1", vm.ID)
			larger := moved.AtPath("data", second)
			larger.Hardware.Disks[0].Size += mib
			l.Do("n1", vm.ID, hypervisor.Resize{VM: larger})
			contents = append(contents, make([]byte, mib)...)
			if format == "qcow2" {
				keep := hypervisor.Snapshot{Disk: "data", Name: "a"}
				l.Do("n1", vm.ID, keep)
				l.Refuses("n1", vm.ID, begin, hypervisor.Conflict, "snapshot a")
				l.Do("n1", vm.ID, hypervisor.DeleteSnapshot{Disk: "data", Name: "a"})
			}
			l.Do("n1", vm.ID, begin, hypervisor.EndDiskMove{Disk: "data", On: second})
			l.Eventually("it has ended", func() bool { return l.Domain("n1", vm.ID).Moving == nil })
			l.Do("n1", vm.ID, hypervisor.Kill{})
			holds(t, second, format, contents)
			names, err := os.ReadDir(dir)
			if err != nil || len(names) != 1 {
				t.Errorf("there are %v, %v", names, err)
			}
			l.Do("n1", vm.ID, hypervisor.Start{VM: larger}, hypervisor.DetachDisk{Name: "data"})
		})
	}
}

// ended ends a move, asked again until it has.
func (l *lab) ended(id vmid, end hypervisor.EndDiskMove) {
	l.T.Helper()
	testutil.Eventually(l.T, "the move has ended", func() error {
		return l.hosts["n1"].Do(l.T.Context(), id, end)
	})
	l.Eventually("nothing is left of the move", func() bool {
		return l.Domain("n1", id).Moving == nil
	})
}

// A disk does not move onto a file that is there, and a move that is cancelled, or whose VM stops, leaves
// the VM as it was and nothing else.
func TestADiskThatDoesNotMove(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	if why := supports(l, hypervisor.CanMoveDisk); why != "" {
		t.Skip(why)
	}
	vm := backendtest.WithDisks(l.vm("suite/stayer", calm), hypervisor.Disk{Name: "data", Size: 8 * mib})
	contents, dir := l.furnish("n1", vm), t.TempDir()
	to := filepath.Join(dir, "there")
	begin := hypervisor.MoveDisk{Disk: "data", To: to}
	l.Refuses("n1", vm.ID, begin, hypervisor.Conflict, "Shutoff")
	l.Do("n1", vm.ID, hypervisor.Start{VM: vm})
	l.Refuses("n1", vm.ID, hypervisor.MoveDisk{Disk: "data", To: filepath.Join(dir, "none", "x")},
		hypervisor.Invalid,
		"none")
	must(t, os.WriteFile(to, []byte("precious"), 0o600))
	l.Refuses("n1", vm.ID, begin, hypervisor.Conflict, to)
	if text, err := os.ReadFile(to); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
	must(t, os.Remove(to))
	empty := func() {
		t.Helper()
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 0 {
			t.Errorf("there are %v, %v", names, err)
		}
		if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
			t.Errorf("it is %+v", d.VM.Hardware)
		}
	}
	for range 2 { // in whatever phase
		l.Do("n1", vm.ID, begin, hypervisor.EndDiskMove{Disk: "data"})
		l.Eventually("it has ended", func() bool { return l.Domain("n1", vm.ID).Moving == nil })
		empty()
	}
	l.Do("n1", vm.ID, begin)
	l.moves(vm.ID, hypervisor.DiskReady)
	must(t, os.Remove(to)) // another host has moved the disk there since
	must(t, os.WriteFile(to, []byte("precious"), 0o600))
	l.Do("n1", vm.ID, hypervisor.EndDiskMove{Disk: "data"})
	l.Eventually("it has ended", func() bool { return l.Domain("n1", vm.ID).Moving == nil })
	if text, err := os.ReadFile(to); err != nil || string(text) != "precious" {
		t.Errorf("the other file has %q, %v", text, err)
	}
	must(t, os.Remove(to))
	empty()
	l.Do("n1", vm.ID, begin)
	l.moves(vm.ID, hypervisor.DiskReady)
	l.Do("n1", vm.ID, hypervisor.Kill{}, hypervisor.Start{VM: vm})
	l.moves(vm.ID, hypervisor.DiskFailed)
	empty()
	l.Do("n1", vm.ID, begin)
	l.moves(vm.ID, hypervisor.DiskReady)
	l.write("n1", vm.ID, "data", contents["data"], 1<<20)
	l.Do("n1", vm.ID, hypervisor.Kill{})
	l.Refuses("n1", vm.ID, hypervisor.SwitchDisk{Disk: "data"}, hypervisor.Conflict, "data", to)
	l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm.AtPath("data", to)}, hypervisor.Conflict, "data", to)
	l.ended(vm.ID, hypervisor.EndDiskMove{Disk: "data", On: to}) // it ran elsewhere since
	holds(t, to, "raw", contents["data"])
	if rest := l.disks("n1"); len(rest) > 0 {
		t.Errorf("there are %v", rest)
	}
}
