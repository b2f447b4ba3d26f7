//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// has checks what a QEMU says that its guest has: the memory that was plugged in, and the CPUs.
func (w *trial) has(n name, id vmid, dimms, cpus int) {
	w.T.Helper()
	count := func(command string) int {
		text := w.virsh(n, "qemu-monitor-command", domainOf(id), fmt.Sprintf(`{"execute":"%s"}`, command))
		return strings.Count(text, `"qom-path"`) + strings.Count(text, `"memdev"`)
	}
	if d, c := count("query-memory-devices"), count("query-cpus-fast"); d != dimms || c != cpus {
		w.T.Errorf("QEMU of %s on %s has %d modules and %d CPUs, want %d and %d", id, n, d, c,
			dimms, cpus)
	}
}

// A VM that had no room gets it at its next start, grows, takes what it has along, and keeps it in its
// definition. A resize that was cut in the middle, as is what another client plugs in, is seen, and its
// repetition does the rest.
func TestAVMGrowsWithItsDefinition(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	bigger := vm
	bigger.Memory += hypervisor.DIMMUnit
	w.Refuses(hosta, vm.ID, hypervisor.Resize{VM: bigger}, hypervisor.Conflict,
		"it was started without room for more memory")
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.Becomes(hosta, vm.ID, hypervisor.Shutoff)
	hardware := *vm.Hardware
	hardware.MaxMemory, hardware.MaxCPUs, hardware.Pins = hypervisor.GiB, 3, [][]int{{0}}
	vm.Hardware = &hardware
	w.start(hosta, vm)
	if d := w.Domain(hosta, vm.ID); !d.VM.Equal(vm) {
		t.Fatalf("it has started as %+v, want %+v", d.VM, vm)
	}
	w.keeps(hosta, vm.ID, []string{`"MaxMemory":1073741824`})
	module := filepath.Join(w.dir, "module.xml")
	err := os.WriteFile(module, []byte("<memory model='dimm'><target><size unit='MiB'>128</size><node>0</node>"+
		"</target></memory>"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w.virsh(hosta, "attach-device", domainOf(vm.ID), module, "--live", "--config")
	bigger.CPUs++
	pinned := hardware
	pinned.Pins = [][]int{{0}, {0}}
	bigger.Hardware = &pinned
	half := bigger
	half.CPUs, half.Hardware = vm.CPUs, &hardware
	half, err = vm.Grow(half)
	if err != nil {
		t.Fatal(err)
	}
	if d := w.Domain(hosta, vm.ID); !d.VM.Equal(half) {
		t.Errorf("it is %+v, want %+v", d.VM, half)
	}
	w.Do(hosta, vm.ID, hypervisor.Resize{VM: bigger})
	bigger, err = vm.Grow(bigger)
	if d := w.Domain(hosta, vm.ID); err != nil || !d.VM.Equal(bigger) {
		t.Errorf("it is %+v, want %+v", d.VM, bigger)
	}
	w.has(hosta, vm.ID, 1, 2)
	w.move("there", bigger, hosta, hostb)
	w.has(hostb, vm.ID, 1, 2)
	w.sound(hostb, vm.ID)
	w.keeps(hostb, vm.ID, []string{"<memory model='dimm'>", "current='2'>3</vcpu>",
		"<vcpupin vcpu='1' cpuset='0'/>"}, "--inactive")
	w.Do(hostb, vm.ID, hypervisor.Kill{})
	w.Becomes(hostb, vm.ID, hypervisor.Shutoff)
	w.start(hostb, bigger)
	if d := w.Domain(hostb, vm.ID); !d.VM.Equal(bigger.Started()) {
		t.Errorf("it has started as %+v, want %+v", d.VM, bigger.Started())
	}
	w.has(hostb, vm.ID, 0, 2)
}

// The disks of a VM that runs grow, local ones and shared ones: libvirt, the images and the target have
// the size that was asked for. What QEMU refuses stays as it is, and nothing is made smaller that is
// larger than was known.
func TestTheDisksOfAVMThatRunsGrow(t *testing.T) {
	w := newTrial(t, nil)
	shared := filepath.Join(w.SharedDir(), "growing.raw")
	backendtest.Image(t, "create", "-f", "raw", shared, "4M")
	vm := backendtest.WithDisks(w.vm(traveller, calm), hypervisor.Disk{Name: "data", Format: "qcow2", Size: 4 * mib},
		hypervisor.Disk{Name: "shared", Path: shared, Format: "raw", Size: 2 * mib})
	w.start(hosta, vm)
	sized := func(data, shared hypervisor.Bytes) hypervisor.VM {
		disks := slices.Clone(vm.Hardware.Disks)
		disks[0].Size, disks[1].Size = data, shared
		return vm.WithDisks(disks)
	}
	w.Refuses(hosta, vm.ID, hypervisor.Resize{VM: sized(4*mib, 3*mib)}, hypervisor.Invalid,
		"disk shared: it has 4MiB already, and never shrinks")
	w.Refuses(hosta, vm.ID, hypervisor.Resize{VM: sized(4<<50, 2*mib)}, hypervisor.Conflict,
		"disk data of 4MiB to 4096TiB")
	if d := w.Domain(hosta, vm.ID); !d.VM.Equal(vm) {
		t.Errorf("it has become %+v", d.VM.Hardware)
	}
	bigger := sized(16*mib, 8*mib)
	w.Do(hosta, vm.ID, hypervisor.Resize{VM: bigger})
	for path, want := range map[string]hypervisor.Bytes{w.disk(hosta, vm.ID, "data"): 16 * mib, shared: 8 * mib} {
		if got := w.info(path).Size; got != want {
			t.Errorf("%s has %v, want %v", path, got, want)
		}
	}
	// These hosts share no file system.
	w.Do(hosta, vm.ID, hypervisor.Kill{}, hypervisor.DetachDisk{Name: "shared"})
	w.start(hosta, w.Domain(hosta, vm.ID).VM)
	bigger = bigger.WithDisks([]hypervisor.Disk{{Name: "data", Format: "qcow2", Size: 32 * mib}})
	w.Do(hosta, vm.ID, hypervisor.Resize{VM: bigger})
	w.move("there", bigger, hosta, hostb)
	w.sound(hostb, vm.ID)
	if d := w.Domain(hostb, vm.ID); !d.VM.Equal(bigger) {
		t.Errorf("it is %+v, want %+v", d.VM.Hardware, bigger.Hardware)
	}
	if got := w.info(w.disk(hostb, vm.ID, "data")).Size; got != 32*mib {
		t.Errorf("the image at the target has %v", got)
	}
}
