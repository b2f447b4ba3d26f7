package domxml

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/beevik/etree"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// DiskXML returns the device that virDomainAttachDevice takes, to plug the disk d
// into the domain with this XML. The disk goes to the place that [Build] would give
// it, or to the next free one if the domain has no virtio-scsi controller.
//
// It fails with a *[backend.Refused] for a disk that no VM has, with [hypervisor.Conflict]
// if the name or the place is taken, and with [hypervisor.Invalid] for XML that is
// no domain.
func DiskXML(xml string, d hypervisor.Disk, s Settings) (string, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	if _, err := findDisk(domain.Root, d.Name); err == nil {
		return "", fmt.Errorf("domain %s has a disk %s: give the new one another name: %w",
			nameIn(domain.Root), backend.Quote(d.Name), hypervisor.Conflict)
	}
	return newDisk(domain.Root, d, s)
}

func newDisk(domain *etree.Element, d hypervisor.Disk, s Settings) (string, error) {
	name := domainName(domain)
	var c checker
	c.settings(s)
	c.Disk(d, s.image(name))
	if err := c.Refused(""); err != nil {
		return "", err
	}
	disk := diskElement(d, s.ImageOf(name, d), s)
	taken := takenIn(domain)
	if image := s.ImageOf(name, d); taken.images[image] && !d.ReadOnly {
		return "", fmt.Errorf("domain %s has the image %s in another disk: %w", backend.Quote(name),
			backend.Quote(image), hypervisor.Conflict)
	}
	controller, found := scsiController(domain)
	if !found {
		n := 0
		for taken.devices[deviceName("vd", n)] {
			n++
		}
		disk.Target = &lx.DomainDiskTarget{Dev: deviceName("vd", n), Bus: "virtio"}
		return disk.Marshal()
	}
	first, second := placesOf(d.Name)
	for _, at := range []Place{first, second} {
		if !taken.places[scsiPlace{controller, at}] && !taken.devices[at.device()] {
			disk = onSCSI(disk, controller, at)
			return disk.Marshal()
		}
	}
	return "", fmt.Errorf("domain %s has other disks where disk %s belongs: give it another "+
		"name: %w", backend.Quote(name), backend.Quote(d.Name), hypervisor.Conflict)
}

// A scsiPlace is a place on one of the SCSI controllers.
type scsiPlace struct {
	controller uint
	at         Place
}

// taken is what the disks of a domain occupy, removable media too.
type taken struct {
	devices map[string]bool
	places  map[scsiPlace]bool
	images  map[string]bool
}

func takenIn(domain *etree.Element) taken {
	t := taken{map[string]bool{}, map[scsiPlace]bool{}, map[string]bool{}}
	for _, e := range children(child(domain, "devices"), "disk") {
		target, address := child(e, "target"), child(e, "address")
		t.devices[Attr(target, "dev")] = true
		if image, known := imageOf(e); known {
			t.images[image] = true
		}
		if Attr(target, "bus") == "scsi" && Attr(address, "type") == "drive" {
			at := Place{Target: number(Attr(address, "target")),
				Unit: number(Attr(address, "unit"))}
			t.places[scsiPlace{uint(number(Attr(address, "controller"))), at}] = true
		}
	}
	return t
}

// scsiController returns the number of the first virtio-scsi controller.
func scsiController(domain *etree.Element) (n uint, found bool) {
	for _, e := range children(child(domain, "devices"), "controller") {
		if Attr(e, "type") == "scsi" && strings.HasPrefix(Attr(e, "model"), "virtio-") {
			return uint(number(Attr(e, "index"))), true
		}
	}
	return 0, false
}

// number returns a number of an address; 0 if it is none.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// AddDisk returns the domain's XML with the disk d, as [DiskXML] makes it. A domain
// that has it already, with the same image, stays as it is.
func AddDisk(xml string, d hypervisor.Disk, s Settings) (string, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	if e, err := findDisk(domain.Root, d.Name); err == nil {
		image, _ := imageOf(e)
		if image == s.ImageOf(domainName(domain.Root), d) {
			return xml, nil
		}
	}
	text, err := DiskXML(xml, d, s)
	if err != nil {
		return "", err
	}
	disk, err := fragment(text)
	if err != nil {
		return "", err
	}
	add(ensure(domain.Root, "devices"), disk)
	return domain.String(), nil
}

// Device returns the XML of a disk in a domain, which virDomainDetachDevice takes.
// It fails with [hypervisor.NotFound] if there is no such disk, and with
// [hypervisor.Invalid] for XML that is no domain.
func Device(xml, disk string) (string, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	e, err := findDisk(domain.Root, disk)
	if err != nil {
		return "", err
	}
	return domain.text(e), nil
}

// Target returns what libvirt calls a disk: "sda". It fails with [hypervisor.NotFound] if there is no
// such disk, and with [hypervisor.Invalid] for XML that is no domain.
func Target(xml, disk string) (string, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	e, err := findDisk(domain.Root, disk)
	return Attr(child(e, "target"), "dev"), err
}

// RemoveDisk returns the domain's XML without a disk. A domain that does not have
// it stays as it is. It fails with [hypervisor.Invalid] for XML that is no domain.
func RemoveDisk(xml, disk string) (string, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	if e, err := findDisk(domain.Root, disk); err == nil {
		remove(e)
	}
	return domain.String(), nil
}
