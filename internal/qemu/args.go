package qemu

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// sandbox forbids QEMU what it never does once it runs: to start programs, to
// become another user, to change its own priority, and obsolete system calls.
// Migration, post-copy and TLS work within it (QEMU 7.2).
const sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// Args returns the arguments of the QEMU that runs vm on the host with these
// settings, without the program's name. The guest does not run until it is told
// to over QMP, and QEMU stays when the guest has shut down or crashed.
//
// The same VM and settings give the same arguments. It fails with what [Check]
// finds.
func Args(vm hypervisor.VM, s Settings) ([]string, error) {
	if err := Check(vm, s); err != nil {
		return nil, err
	}
	h := hardware(vm.Hardware)
	args := slices.Concat([]string{
		"-name", "guest=" + escaped(string(vm.ID)) + ",debug-threads=on",
		"-uuid", UUID(vm.ID),
		"-nodefaults", "-no-user-config", "-display", "none",
		// The end of a guest is an event that is looked at, not the end of QEMU.
		"-S", "-action", "shutdown=pause,panic=pause",
		"-msg", "timestamp=on",
		"-pidfile", s.PIDFile(),
	}, s.confinement(), board(vm, s), memory(vm), s.monitor(), s.serial(), s.debug(h),
		disks(vm, s), nics(h))
	if s.Incoming {
		args = append(args, "-incoming", "defer")
	}
	return append(args, s.Extra...), nil
}

// UUID returns the identity that the firmware tells the guest. It follows from
// the VM's name, so that the guest has the same one on every host and after every
// start.
func UUID(id hypervisor.VMID) string {
	h := sha256.Sum256([]byte("godwit VM " + id))
	h[6] = h[6]&0x0f | 0x80 // version 8: made in a way of our own (RFC 9562)
	h[8] = h[8]&0x3f | 0x80 // its variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

func (s Settings) confinement() []string {
	if s.Unconfined {
		return nil
	}
	return []string{"-sandbox", sandbox}
}

// board is the machine with its CPUs and firmware. A guest cannot suspend to
// memory: suspended is a state that no domain has.
func board(vm hypervisor.VM, s Settings) []string {
	h := hardware(vm.Hardware)
	f, _ := familyOf(h.Machine) // Check knows it
	name := "type=" + machineType(h) + ",accel=" + s.accelerator() + ",dump-guest-core=off"
	if h.Hugepages != 0 {
		name += ",memory-backend=" + ramID
	}
	args := []string{"-machine", name, "-cpu", s.cpu(h), "-smp", smp(vm.CPUs, h.MaxCPUs),
		"-global", f.power + ".disable_s3=1", "-global", f.power + ".disable_s4=1"}
	if h.Firmware != "" {
		args = append(args, "-bios", h.Firmware)
	}
	return args
}

// ramID is what QEMU calls the memory of a PC. Memory that is asked for by this
// name migrates to and from memory that was not.
const ramID = "pc.ram"

// smp is the CPUs, with room for more. A CPU that was plugged in is like one that the machine was
// started with: a target has it from the start.
func smp(cpus, most int) string {
	if most <= cpus {
		return fmt.Sprintf("cpus=%d", cpus)
	}
	return fmt.Sprintf("cpus=%d,maxcpus=%d", cpus, most)
}

// memory is what the machine was started with, the room for modules, and those that were plugged in
// since: a target has the same ones in the same slots.
func memory(vm hypervisor.VM) []string {
	h, base := hardware(vm.Hardware), vm.BootMemory()
	size := fmt.Sprintf("size=%dK", base/hypervisor.KiB)
	if h.MaxMemory > base {
		size += fmt.Sprintf(",slots=%d,maxmem=%dK", hypervisor.MaxDIMMs, h.MaxMemory/hypervisor.KiB)
	}
	args := []string{"-m", size}
	if h.Hugepages != 0 {
		// The pages are reserved when QEMU starts, so that a lack of them is seen then.
		args = append(args, "-object", quoted(memoryBackend(ramID, base, h.Hugepages)))
	}
	for i := range h.DIMMs {
		args = append(args, "-object", quoted(dimmBackend(h, i)), "-device", quoted(dimmDevice(i)))
	}
	return args
}

// memoryBackend is memory of the host in pages of a size; 0 is the usual ones.
func memoryBackend(id string, size, page hypervisor.Bytes) map[string]any {
	if page == 0 {
		return map[string]any{"qom-type": "memory-backend-ram", "id": id, "size": size}
	}
	return map[string]any{"qom-type": "memory-backend-memfd", "id": id, "size": size,
		"hugetlb": true, "hugetlbsize": page}
}

// dimmID and dimmMemory are what QEMU calls module i and its memory.
func dimmID(i int) string     { return fmt.Sprintf("dimm%d", i) }
func dimmMemory(i int) string { return dimmID(i) + ".memory" }

// dimmBackend is the memory of module i, for object-add.
func dimmBackend(h hypervisor.Hardware, i int) map[string]any {
	return memoryBackend(dimmMemory(i), h.DIMMs[i], h.Hugepages)
}

// dimmDevice is module i, for device_add. Its slot is its number.
func dimmDevice(i int) map[string]any {
	return map[string]any{"driver": "pc-dimm", "id": dimmID(i), "memdev": dimmMemory(i), "slot": i}
}

func (s Settings) monitor() []string {
	return []string{"-chardev", listener("qmp", s.QMP()), "-mon", "chardev=qmp,mode=control"}
}

// serial is the first serial port. Every VM has it, whether or not its host makes
// a console of it: a target without it would refuse the state.
func (s Settings) serial() []string {
	backend := "null,id=console"
	if s.Console {
		backend = listener("console", s.ConsoleSocket()) +
			",logfile=" + escaped(s.ConsoleLog()) + ",logappend=on"
	}
	return []string{"-chardev", backend, "-device",
		quoted(map[string]any{"driver": "isa-serial", "id": "serial", "chardev": "console"})}
}

func (s Settings) debug(h hypervisor.Hardware) []string {
	if h.DebugPort == 0 {
		return nil
	}
	return []string{"-chardev", listener("debug", s.DebugSocket()), "-device",
		quoted(map[string]any{"driver": "isa-debugcon", "id": "debugcon",
			"iobase": h.DebugPort, "chardev": "debug"})}
}

// nics puts the cards into fixed places. They have no boot ROM: its size differs
// between versions of QEMU, and is a part of the state.
func nics(h hypervisor.Hardware) []string {
	f, _ := familyOf(h.Machine)
	var args []string
	for i, n := range h.NICs {
		device := map[string]any{"driver": "virtio-net-pci", "id": fmt.Sprintf("nic%d", i),
			"bus": f.bus, "addr": fmt.Sprintf("0x%x", firstNIC+i), "mac": n.MAC, "romfile": ""}
		if n.Tap != "" {
			device["netdev"] = fmt.Sprintf("net%d", i)
			args = append(args, "-netdev", fmt.Sprintf(
				"tap,id=net%d,ifname=%s,script=no,downscript=no", i, escaped(n.Tap)))
		}
		args = append(args, "-device", quoted(device))
	}
	return args
}

// listener describes a socket on which QEMU waits for connections.
func listener(id, path string) string {
	return "socket,id=" + id + ",path=" + escaped(path) + ",server=on,wait=off"
}

// escaped doubles commas: in QEMU's options one ends the value, two are one.
func escaped(value string) string { return strings.ReplaceAll(value, ",", ",,") }
