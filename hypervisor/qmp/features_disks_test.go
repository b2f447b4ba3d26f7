package qmp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

func TestASnapshotIsInTheImage(t *testing.T) {
	for _, row := range []struct {
		name string
		runs bool
	}{{"of a VM that runs", true}, {"of a VM that is shut off", false}} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			if why := supports(l, hypervisor.CanSnapshot); why != "" {
				t.Skip(why)
			}
			vm := backendtest.WithDisks(l.vm("suite/keeper", calm),
				hypervisor.Disk{Name: "root", Format: "qcow2", Size: 8 * mib},
				hypervisor.Disk{Name: "data", Size: 8 * mib})
			contents := make([]byte, 8<<20)
			l.start("n1", vm)
			l.write("n1", vm.ID, "root", contents, 0)
			before := append([]byte{}, contents...)
			if !row.runs {
				l.Do("n1", vm.ID, hypervisor.Kill{})
			}
			keep := hypervisor.Snapshot{Disk: "root", Name: "before"}
			l.Do("n1", vm.ID, keep, keep, hypervisor.Snapshot{Disk: "root", Name: "gone"})
			gone := hypervisor.DeleteSnapshot{Disk: "root", Name: "gone"}
			l.Do("n1", vm.ID, gone, gone)
			if row.runs {
				l.Refuses("n1", vm.ID, hypervisor.RevertSnapshot{Disk: "root", Name: "before"},
					hypervisor.Conflict)
			}
			l.Refuses("n1", vm.ID, hypervisor.Snapshot{Disk: "data", Name: "before"},
				hypervisor.Unsupported, "data", "raw", "qcow2")
			if row.runs {
				l.write("n1", vm.ID, "root", contents, 1<<20)
				l.sound("n1", vm.ID)
				l.Do("n1", vm.ID, hypervisor.Kill{})
			}
			path := l.disk("n1", "root")
			if list := backendtest.Image(t, "snapshot", "-l", path); strings.Count(list, "before") != 1 ||
				strings.Contains(list, "gone") {
				t.Errorf("the image has %s", list)
			}
			l.same("n1", map[string][]byte{"root": contents})
			l.Refuses("n1", vm.ID, hypervisor.RevertSnapshot{Disk: "root", Name: "gone"},
				hypervisor.NotFound, "gone")
			l.Do("n1", vm.ID, hypervisor.RevertSnapshot{Disk: "root", Name: "before"})
			l.same("n1", map[string][]byte{"root": before})
			l.ends("n1", vm.ID)
		})
	}
}

// virtual returns the size of an image as a guest sees it.
func virtual(t testing.TB, path string) hypervisor.Bytes {
	t.Helper()
	var info struct {
		Size hypervisor.Bytes `json:"virtual-size"`
	}
	if err := json.Unmarshal([]byte(backendtest.Image(t, "info", "--output=json", path)), &info); err != nil {
		t.Fatal(err)
	}
	return info.Size
}

// enlarged returns a VM with more of everything.
func enlarged(vm hypervisor.VM, sizes ...hypervisor.Bytes) hypervisor.VM {
	disks := append([]hypervisor.Disk{}, vm.Hardware.Disks...)
	for i, size := range sizes {
		disks[i].Size = size
	}
	vm = backendtest.WithDisks(vm, disks...)
	vm.Memory, vm.CPUs = vm.Memory*2, vm.CPUs+1
	return vm
}

func TestAResizeIsAllOrNothing(t *testing.T) {
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.Memory = 64 * mib })
	vm := backendtest.WithDisks(l.vm("suite/grower", calm), hypervisor.Disk{Name: "raw", Size: 4 * mib},
		hypervisor.Disk{Name: "cow", Format: "qcow2", Size: 4 * mib},
		hypervisor.Disk{Name: "last", Size: 4 * mib})
	contents := l.furnish("n1", vm)
	unchanged := func() {
		t.Helper()
		if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
			t.Errorf("it has become %+v", d.VM)
		}
		l.same("n1", contents)
	}

	huge := enlarged(vm, 8*mib)
	huge.Memory = 65 * mib
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: huge}, hypervisor.NoRoom, "memory", "65MiB",
		"64MiB")
	unchanged()
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: enlarged(vm, 8*mib, 2*mib)}, hypervisor.Invalid,
		"cow", "shrink")
	unchanged()

	last := l.disk("n1", "last")
	if err := os.Rename(last, last+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(last, 0o700); err != nil {
		t.Fatal(err)
	}
	bigger := enlarged(vm, 8*mib, 8*mib, 8*mib)
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: bigger}, hypervisor.Transient, "qemu-img", last)
	if err := os.Remove(last); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(last+".away", last); err != nil {
		t.Fatal(err)
	}
	unchanged() // the first two had grown by then
	for _, d := range vm.Hardware.Disks {
		if size := virtual(t, l.disk("n1", d.Name)); size != d.Size {
			t.Errorf("disk %s has %v, want %v", d.Name, size, d.Size)
		}
	}

	l.Do("n1", vm.ID, hypervisor.Resize{VM: bigger})
	for _, d := range bigger.Hardware.Disks {
		if size := virtual(t, l.disk("n1", d.Name)); size != d.Size {
			t.Errorf("disk %s has %v, want %v", d.Name, size, d.Size)
		}
		contents[d.Name] = append(contents[d.Name], make([]byte, 4<<20)...)
	}
	l.same("n1", contents)
	l.start("n1", bigger)
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

// plugged lists the disks that a QEMU has.
func (l *lab) plugged(n name, id vmid) map[string]bool {
	l.T.Helper()
	m, err := l.hosts[n].Monitor(id)
	var blocks []struct {
		QDev string `json:"qdev"`
	}
	if err == nil {
		err = m.Execute(l.T.Context(), "query-block", nil, &blocks)
	}
	if err != nil {
		l.T.Fatal(err)
	}
	list := map[string]bool{}
	for _, b := range blocks {
		list[filepath.Base(b.QDev)] = true
	}
	return list
}

func TestADiskIsPluggedInAndOutOfARunningGuest(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	path := filepath.Join(l.dir, "shared")
	backendtest.Image(t, "create", "-q", "-f", "raw", path, "4M")
	vm := l.vm("suite/plugger", busy)
	l.start("n1", vm)
	disks := []hypervisor.Disk{{Name: "local", Format: "qcow2", Size: 4 * mib},
		{Name: "shared", Path: path, Size: 4 * mib},
		{Name: "a-name-that-is-longer-than-a-node-may-be-called", Size: 4 * mib}}
	for _, d := range disks {
		l.Do("n1", vm.ID, hypervisor.AttachDisk{Disk: d})
	}
	if on := l.plugged("n1", vm.ID); len(on) < 3 || !on["dev.local"] || !on["dev.shared"] {
		t.Errorf("QEMU has %v", on)
	}
	l.write("n1", vm.ID, "local", make([]byte, 1<<20), 0)
	for _, d := range disks {
		l.Do("n1", vm.ID, hypervisor.DetachDisk{Name: d.Name})
	}
	if on := l.plugged("n1", vm.ID); len(on) > 0 {
		t.Errorf("QEMU still has %v", on)
	}
	backendtest.Image(t, "resize", "-q", "-f", "raw", path, "5M") // it is not locked any more
	if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
		t.Errorf("the VM has become %+v", d.VM)
	}
	l.sound("n1", vm.ID)
	l.begin("job", vm.ID, options{}) // what was unplugged is not expected at the target
	l.arrives("job", vm.ID)
}

func TestADiskThatCannotBePluggedInChangesNothing(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	garbage := filepath.Join(l.dir, "garbage")
	if err := os.WriteFile(garbage, backendtest.Noise(1, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	vm := l.vm("suite/plugger", calm)
	l.start("n1", vm)
	for _, row := range []struct {
		disk  hypervisor.Disk
		words []string
	}{
		{hypervisor.Disk{Name: "none", Path: filepath.Join(l.dir, "none")},
			[]string{"none", "does not exist"}},
		{hypervisor.Disk{Name: "bad", Path: garbage, Format: "qcow2"}, []string{"bad", "qcow2"}},
		{hypervisor.Disk{Name: "odd", Size: 1000}, []string{"odd", "multiple of 512"}},
	} {
		l.Refuses("n1", vm.ID, hypervisor.AttachDisk{Disk: row.disk}, hypervisor.Invalid,
			row.words...)
	}
	if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
		t.Errorf("the VM has become %+v", d.VM)
	}
	if left := l.disks("n1"); len(left) > 0 {
		t.Errorf("images are left: %v", left)
	}
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

// A qcow2 image that is not declared as one is not given to a guest as a raw disk, neither when its VM
// starts nor when it is attached. A raw image whose guest has written the header of a qcow2 is raw
// when it is declared so: the guest has its own bytes back.
func TestAnImageIsOfItsDeclaredFormat(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	path := filepath.Join(t.TempDir(), "disk")
	backendtest.Image(t, "create", "-q", "-f", "qcow2", path, "8M")
	root := hypervisor.Disk{Name: "root", Path: path}
	vm := l.vm("suite/declared", calm)
	l.Refuses("n1", vm.ID, hypervisor.Start{VM: backendtest.WithDisks(vm, root)},
		hypervisor.Invalid, "root",
		"format=qcow2, or format=raw")
	l.start("n1", vm)
	l.Refuses("n1", vm.ID, hypervisor.AttachDisk{Disk: root}, hypervisor.Invalid, "root",
		"format=qcow2, or format=raw")
	for _, format := range []string{"qcow2", "raw"} {
		root.Format = format
		l.Do("n1", vm.ID, hypervisor.AttachDisk{Disk: root}, hypervisor.DetachDisk{Name: "root"})
	}
	l.ends("n1", vm.ID)
}
