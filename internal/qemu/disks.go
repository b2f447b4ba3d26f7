package qemu

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Where things are on the first PCI bus. The first places belong to the board.
const (
	scsiSlot = 0x4
	firstNIC = 0x8
)

// controller is what the disks are plugged into. Every VM has one, so that disks
// can be plugged in later, on any type of machine and without help by the guest.
//
// The alternative, one virtio-blk device for each disk, has 32 places on a bus, or
// needs a PCI Express port for each disk, however few are used. Such a place must
// be chosen by the order of the disks, and when one in the middle was unplugged,
// the target puts all that follow it elsewhere than the source has them.
const controller = "scsi"

// NodeName returns what QEMU calls the contents of a disk, in blockdev commands.
func NodeName(disk string) string { return "disk." + shortened(disk) }

// FileNodeName returns what QEMU calls the file below the contents of a disk.
func FileNodeName(disk string) string { return "file." + shortened(disk) }

// otherNode and otherFile return what takes turns with [NodeName] and [FileNodeName] when a disk moves
// to another image: for a while both are there.
func otherNode(disk string) string { return "copy." + shortened(disk) }
func otherFile(disk string) string { return "cfil." + shortened(disk) }

// nodeOf returns which of some nodes holds the contents of a disk that does not move now.
func nodeOf(nodes []NamedNode, disk string) string {
	for _, n := range nodes {
		if n.Name == otherNode(disk) {
			return n.Name
		}
	}
	return NodeName(disk)
}

// DeviceID returns what QEMU calls the device that is a disk: in device_del, and
// in the event that says that it is gone.
func DeviceID(disk string) string { return "dev." + shortened(disk) }

// longest is what fits into the 31 bytes of a node's name with its prefix.
const longest = 26

// shortened returns a disk's name, or what stands for it if it is too long: a
// part of it and of its hash. The point between them is in no name.
func shortened(disk string) string {
	if len(disk) <= longest {
		return disk
	}
	h := sha256.Sum256([]byte(disk))
	return fmt.Sprintf("%s.%x", disk[:longest-17], h[:8])
}

// DiskNode returns the arguments of blockdev-add for disk i of the VM. One
// blockdev-del of [NodeName] removes all that it adds.
func DiskNode(vm hypervisor.VM, i int, s Settings) map[string]any {
	d := hardware(vm.Hardware).Disks[i]
	path, format := s.image(d), d.Format
	if format == "" {
		format = "raw" // never guessed: a guest could write another format's header
	}
	return map[string]any{
		"driver":    format,
		"node-name": NodeName(d.Name),
		"read-only": d.ReadOnly,
		"discard":   "unmap",
		"file": map[string]any{
			"driver":    fileDriver(path),
			"node-name": FileNodeName(d.Name),
			"filename":  path,
			"read-only": d.ReadOnly,
			"discard":   "unmap",
			// Two hosts with one image: what the source has left in its page cache
			// the target does not see, and what the target has read too early stays
			// in its own. A local disk has one host at a time.
			"cache": map[string]any{"direct": !d.Local() && !s.Buffered, "no-flush": false},
		},
	}
}

// fileDriver returns the driver of what is at path. QEMU does not take a block
// device for a file; the path tells, since it is not looked at here.
func fileDriver(path string) string {
	if strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/") {
		return "host_device"
	}
	return "file"
}

// DiskDevice returns the arguments of device_add for disk i of the hardware: the
// same that [Args] uses when the machine is started with the disk.
func DiskDevice(h *hypervisor.Hardware, i int) map[string]any {
	all := hardware(h).Disks
	d, at := all[i], places(all)[i]
	device := map[string]any{
		"driver":  "scsi-hd",
		"id":      DeviceID(d.Name),
		"drive":   NodeName(d.Name),
		"bus":     controller + ".0",
		"channel": 0,
		"scsi-id": at.target,
		"lun":     at.lun,
		"serial":  shortened(d.Name), // the guest finds it by its name
	}
	if i == firstWritable(all) {
		device["bootindex"] = 0
	}
	return device
}

// CheckDetach says whether disk i may be unplugged from a running machine with
// the hardware h. It refuses if another disk would then be somewhere else at the
// target of a migration. That needs two disks whose names have the same hash, of
// which the first is unplugged: one pair in 256.
func CheckDetach(h *hypervisor.Hardware, i int) error {
	all := hardware(h).Disks
	before := places(all)
	rest := append(append([]hypervisor.Disk{}, all[:i]...), all[i+1:]...)
	var c checker
	for j, after := range places(rest) {
		k := j
		if j >= i {
			k++
		}
		if before[k] != after {
			c.Need(false, "disk "+all[k].Name,
				fmt.Sprintf("to be unplugged before disk %s", all[i].Name), "plugged in after it")
		}
	}
	return c.Refused("")
}

// A place is an address on the SCSI controller.
type place struct{ target, lun int }

// places returns where each disk is. Its name alone decides, so that it stays
// there whatever happens to other disks. UEFI firmware looks only at targets below
// 32 and units below 8; a disk that finds its place there taken by another before it goes
// to the large rest.
func places(all []hypervisor.Disk) []place {
	at := make([]place, len(all))
	first := map[place]bool{}
	for i, d := range all {
		h := sha256.Sum256([]byte(d.Name))
		at[i] = place{int(h[0]) % 32, int(h[1]) % 8}
		if first[at[i]] {
			unit := binary.BigEndian.Uint32(h[4:])
			at[i] = place{32 + int(h[2])%224, 8 + int(unit%(16384-8))}
		}
		first[at[i]] = true
	}
	return at
}

// firstWritable returns which disk the firmware tries first; -1 if none.
func firstWritable(all []hypervisor.Disk) int {
	for i, d := range all {
		if !d.ReadOnly {
			return i
		}
	}
	return -1
}

func disks(vm hypervisor.VM, s Settings) []string {
	h := hardware(vm.Hardware)
	f, _ := familyOf(h.Machine)
	scsi := map[string]any{"driver": "virtio-scsi-pci", "id": controller, "bus": f.bus,
		"addr": fmt.Sprintf("0x%x", scsiSlot)}
	if h.MaxCPUs > 0 {
		// By default it has a queue for each CPU that the machine is started with, which is another
		// number at the target of a VM that has grown.
		// Source: QEMU 7.2 hw/virtio/virtio-pci.c (virtio_pci_optimal_num_queues).
		scsi["num_queues"] = max(vm.CPUs, h.MaxCPUs)
	}
	args := []string{"-device", quoted(scsi)}
	for i := range h.Disks {
		args = append(args, "-blockdev", quoted(DiskNode(vm, i, s)),
			"-device", quoted(DiskDevice(vm.Hardware, i)))
	}
	return args
}

// quoted returns v as JSON, with its keys in order. QEMU takes it for options
// wherever it begins with a brace.
func quoted(v map[string]any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("machine: only words, numbers and maps of them are quoted: " + err.Error())
	}
	return strings.TrimSuffix(text.String(), "\n")
}
