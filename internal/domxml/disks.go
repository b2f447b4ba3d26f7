package domxml

import (
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
)

// aliasPrefix is what libvirt wants before an alias that it did not make itself.
// The alias of a disk is its name.
const aliasPrefix = "ua-"

// diskElement returns the disk d, whose image is at path, without a place.
func diskElement(d hypervisor.Disk, path string, s Settings) lx.DomainDisk {
	disk := lx.DomainDisk{Device: "disk",
		// The format is never guessed: a guest could write another one's header.
		Driver: &lx.DomainDiskDriver{Name: "qemu", Type: formatOf(d), Discard: "unmap"},
		Source: &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: path}},
		Serial: serialOf(d.Name),
		Alias:  &lx.DomainAlias{Name: aliasPrefix + d.Name}}
	// Two hosts with one image: what the source has left in its page cache the
	// target does not see. A local disk has one host at a time.
	disk.Driver.Cache = "none"
	if d.Local() || s.Buffered {
		disk.Driver.Cache = "writeback"
	}
	if block(path) {
		disk.Source = &lx.DomainDiskSource{Block: &lx.DomainDiskSourceBlock{Dev: path}}
	}
	if d.ReadOnly {
		disk.ReadOnly = &lx.DomainDiskReadOnly{}
	}
	return disk
}

// onSCSI puts the disk into a place on a virtio-scsi controller.
func onSCSI(disk lx.DomainDisk, controller uint, at Place) lx.DomainDisk {
	bus, target, unit := uint(0), uint(at.Target), uint(at.Unit)
	disk.Target = &lx.DomainDiskTarget{Dev: at.device(), Bus: "scsi"}
	disk.Address = &lx.DomainAddress{Drive: &lx.DomainAddressDrive{Controller: &controller,
		Bus: &bus, Target: &target, Unit: &unit}}
	return disk
}

func formatOf(d hypervisor.Disk) string {
	if d.Format == "" {
		return "raw"
	}
	return d.Format
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
