package domxml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Build returns the XML that defines vm as a libvirt domain on the host with these
// settings and the mark m, whose VM need not be set. The same arguments give the
// same XML. The machine has what vm
// says, all its memory in one, a serial port and a SCSI controller for disks, and nothing else: no USB, no
// balloon, no graphics.
//
// It fails with a *[backend.Refused], or as [NameOf] does. Whether files exist and whether
// this libvirt knows the machine type and the CPU model, libvirt says.
func Build(vm hypervisor.VM, s Settings, m Mark) (string, error) {
	name, err := NameOf(s.Namespace, vm.ID)
	if err != nil {
		return "", err
	}
	if err := Check(vm, name, s); err != nil {
		return "", err
	}
	m.VM = vm
	metadata, err := m.element()
	if err != nil {
		return "", err
	}
	h := Hardware(vm.Hardware)
	off := &lx.DomainPMPolicy{Enabled: "no"}
	domain := lx.Domain{
		Type: s.kind(), Name: name, UUID: UUIDOf(vm.ID),
		Metadata:      &lx.DomainMetadata{XML: metadata},
		Memory:        &lx.DomainMemory{Value: kib(vm.Memory), Unit: "KiB"},
		MaximumMemory: maxMemory(vm, h),
		MemoryBacking: backing(h),
		VCPU:          vcpus(vm, h),
		CPUTune:       pinned(h.Pins),
		OS:            board(h),
		Features: &lx.DomainFeatureList{ACPI: &lx.DomainFeature{},
			APIC: &lx.DomainFeatureAPIC{}},
		CPU: withNodes(cpuElement(h.CPUModel, s), numa(vm, h)),
		Clock: &lx.DomainClock{Offset: "utc",
			Timer: []lx.DomainTimer{{Name: "hpet", Present: "no"}}},
		OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "destroy",
		// Suspended is a state that no domain has.
		PM:      &lx.DomainPM{SuspendToMem: off, SuspendToDisk: off},
		Devices: devices(vm, name, s),
	}
	return domain.Marshal()
}

func withNodes(cpu *lx.DomainCPU, nodes *lx.DomainNuma) *lx.DomainCPU {
	cpu.Numa = nodes
	return cpu
}

// kib returns b in KiB; it is a whole number of them.
func kib(b hypervisor.Bytes) uint { return uint(b / hypervisor.KiB) }

func backing(h hypervisor.Hardware) *lx.DomainMemoryBacking {
	if h.Hugepages == 0 {
		return nil
	}
	return &lx.DomainMemoryBacking{MemoryHugePages: &lx.DomainMemoryHugepages{
		Hugepages: []lx.DomainMemoryHugepage{{Size: kib(h.Hugepages), Unit: "KiB"}}}}
}

func pinned(pins [][]int) *lx.DomainCPUTune {
	if len(pins) == 0 {
		return nil
	}
	tune := &lx.DomainCPUTune{}
	for i, set := range pins {
		tune.VCPUPin = append(tune.VCPUPin,
			lx.DomainCPUTuneVCPUPin{VCPU: uint(i), CPUSet: formatSet(set)})
	}
	return tune
}

func board(h hypervisor.Hardware) *lx.DomainOS {
	machine := h.Machine
	if machine == "" {
		machine = "q35"
	}
	os := &lx.DomainOS{Type: &lx.DomainOSType{Arch: "x86_64", Machine: machine, Type: "hvm"}}
	if h.Firmware != "" {
		os.Loader = &lx.DomainLoader{Path: h.Firmware, Readonly: "yes", Type: "rom"}
	}
	return os
}

// cpuElement says the CPU exactly: libvirt does not check it, and QEMU does not
// start with less. Passed through, it has only features that can move.
func cpuElement(model string, s Settings) *lx.DomainCPU {
	p, _ := parseCPU(model) // check has read it
	p = p.or(s.kind(), s.Unfit)
	cpu := &lx.DomainCPU{Mode: p.Mode, Check: "none"}
	switch p.Mode {
	case custom:
		cpu.Match = "exact"
		cpu.Model = &lx.DomainCPUModel{Fallback: "forbid", Value: p.Model}
	case passthrough, maximum:
		cpu.Migratable = "on"
	case hostModel:
		cpu.Check = "partial" // libvirt must know what the host's model is
	}
	for _, f := range p.Features {
		cpu.Features = append(cpu.Features, lx.DomainCPUFeature{Name: f.Name,
			Policy: map[bool]string{true: "require", false: "disable"}[f.Has]})
	}
	return cpu
}

func devices(vm hypervisor.VM, name string, s Settings) *lx.DomainDeviceList {
	h := Hardware(vm.Hardware)
	zero := uint(0)
	list := &lx.DomainDeviceList{Emulator: s.Emulator,
		Controllers: []lx.DomainController{
			{Type: "usb", Index: &zero, Model: "none"},
			{Type: "scsi", Index: &zero, Model: "virtio-scsi"}},
		Serials:    []lx.DomainSerial{console(s)},
		MemBalloon: &lx.DomainMemBalloon{Model: "none"}}
	if h.DebugPort != 0 {
		list.Serials = append(list.Serials, debug(h.DebugPort, s))
	}
	boot := firstWritable(h.Disks)
	for i, at := range places(h.Disks) {
		d := h.Disks[i]
		disk := onSCSI(diskElement(d, s.ImageOf(name, d), s), 0, at)
		if i == boot {
			disk.Boot = &lx.DomainDeviceBoot{Order: 1}
		}
		list.Disks = append(list.Disks, disk)
	}
	for _, n := range h.NICs {
		list.Interfaces = append(list.Interfaces, card(n))
	}
	return list
}

// console is the first serial port. Every VM has it, whether or not its host keeps
// what the guest writes there: a target without it would refuse the state. A pseudo-terminal can be
// opened, and what is not read from it is thrown away.
func console(s Settings) lx.DomainSerial {
	source := &lx.DomainChardevSource{Pty: &lx.DomainChardevSourcePty{}}
	if s.ConsoleLog != "" {
		source = &lx.DomainChardevSource{
			File: &lx.DomainChardevSourceFile{Path: s.ConsoleLog, Append: "on"}}
	}
	port := uint(0)
	return lx.DomainSerial{Source: source, Target: &lx.DomainSerialTarget{Type: "isa-serial",
		Port: &port, Model: &lx.DomainSerialTargetModel{Name: "isa-serial"}}}
}

func debug(iobase uint16, s Settings) lx.DomainSerial {
	source := &lx.DomainChardevSource{Null: &lx.DomainChardevSourceNull{}}
	if s.DebugSocket != "" {
		source = &lx.DomainChardevSource{
			UNIX: &lx.DomainChardevSourceUNIX{Mode: "bind", Path: s.DebugSocket}}
	}
	port, base := uint(1), uint(iobase)
	return lx.DomainSerial{Source: source,
		Target: &lx.DomainSerialTarget{Type: "isa-debug", Port: &port,
			Model: &lx.DomainSerialTargetModel{Name: "isa-debugcon"}},
		Address: &lx.DomainAddress{ISA: &lx.DomainAddressISA{IOBase: &base}}}
}

// card is a network card. It has no boot ROM: its size differs between versions of
// QEMU, and is a part of the state. A card without a cable has a device of the host
// that nothing is plugged into, and its link is down: QEMU's driver knows no card
// with nothing behind it, and user networking would be a way out.
// Source: libvirt qemu_command.c (qemuBuildInterfaceCommandLine).
func card(n hypervisor.NIC) lx.DomainInterface {
	nic := lx.DomainInterface{
		MAC:    &lx.DomainInterfaceMAC{Address: strings.ToLower(n.MAC)},
		Source: &lx.DomainInterfaceSource{Ethernet: &lx.DomainInterfaceSourceEthernet{}},
		Model:  &lx.DomainInterfaceModel{Type: "virtio"},
		ROM:    &lx.DomainROM{Enabled: "no"}}
	if n.Tap == "" {
		nic.Link = &lx.DomainInterfaceLink{State: "down"}
	} else {
		nic.Target = &lx.DomainInterfaceTarget{Dev: n.Tap, Managed: "no"}
	}
	return nic
}

// formatSet writes a set of numbers as libvirt does: "0-3,8".
func formatSet(set []int) string {
	set = slices.Compact(slices.Sorted(slices.Values(set)))
	var ranges []string
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		if ranges = append(ranges, strconv.Itoa(set[i])); j > i {
			ranges[len(ranges)-1] += "-" + strconv.Itoa(set[j])
		}
		i = j + 1
	}
	return strings.Join(ranges, ",")
}

// parseSet reads a set of numbers as libvirt does: "0-3,^2,8".
// Source: libvirt virbitmap.c (virBitmapParse).
func parseSet(text string) ([]int, error) {
	in, named := map[int]bool{}, 0
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		number, without := strings.CutPrefix(part, "^")
		low, high, isRange := strings.Cut(number, "-")
		first, err := strconv.ParseUint(low, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(high, 10, 16)
		}
		if named += int(last-first) + 1; err != nil || last < first || last > maxMask ||
			named > maxNamed {
			return nil, fmt.Errorf("%s is no set of CPUs 0 to %d: %w", backend.Quote(text), maxMask,
				hypervisor.Invalid)
		}
		for n := first; n <= last; n++ {
			in[int(n)] = !without
		}
	}
	var set []int
	for n, has := range in {
		if has {
			set = append(set, n)
		}
	}
	slices.Sort(set)
	return set, nil
}

const (
	// maxMask is the highest CPU that libvirt knows.
	// Source: libvirt domain_conf.h (VIR_DOMAIN_CPUMASK_LEN).
	maxMask = 16383
	// maxNamed is how many CPUs one set may name, the same ones repeatedly.
	maxNamed = 4 * maxMask
)
