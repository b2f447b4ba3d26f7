package domxml

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Copy is how libvirt copies a disk of a domain that runs to another image.
type Copy struct {
	Image string // that the disk has
	To    string // that it is copied to; "" is none
	// State is what libvirt says of the copy: "" until it is complete, "yes" when it is, "pivot" and
	// "abort" while the guest goes over to it, or it is given up.
	State string
}

// CopyOf reads how a disk is copied from the XML of what runs. It fails with [hypervisor.NotFound] if there
// is no such disk, and with [hypervisor.Invalid] for XML that is no domain.
// Source: libvirt 9.0 docs/formatdomain.rst (mirror).
func CopyOf(xml, disk string) (Copy, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return Copy{}, err
	}
	e, err := findDisk(domain.Root, disk)
	if err != nil {
		return Copy{}, err
	}
	c := Copy{}
	c.Image, _ = imageOf(e)
	if m := child(e, "mirror"); Attr(m, "job") == "copy" {
		c.To, _ = imageOf(m)
		c.State = Attr(m, "ready")
	}
	return c, nil
}

// AtPath returns the domain's XML with the disk d at the path that it has now, and cached as such a disk is,
// unless the XML wants a cache that godwit does not give. It fails as [Change] does.
func AtPath(xml string, d hypervisor.Disk, s Settings) (string, error) {
	domain, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	path := s.ImageOf(domainName(domain.Root), d)
	e, err := findDisk(domain.Root, d.Name)
	if err != nil {
		return "", err
	}
	if image, _ := imageOf(e); image == path {
		return xml, nil
	}
	if err := setImage(domain.Root, d.Name, path); err != nil {
		return "", err
	}
	if driver := child(e, "driver"); slices.Contains([]string{"none", "writeback"}, Attr(driver, "cache")) {
		Set(driver, "cache", diskElement(d, path, s).Driver.Cache)
	}
	return domain.String(), nil
}
