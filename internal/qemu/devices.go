package qemu

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// maxName is how long a disk's name may be.
const maxName = 63

func (c *checker) disks(all []hypervisor.Disk, s Settings) {
	c.need(len(all) <= maxDisks, "disks", fmt.Sprintf("at most %d", maxDisks), len(all))
	names, taken, images := map[string]bool{}, map[place]string{}, map[string]hypervisor.Disk{}
	for i, at := range places(all) {
		d := all[i]
		c.disk(d, s)
		what := "disk " + quote(d.Name)
		c.need(!names[d.Name], what+": name", "unique in the VM", "that of another disk, too")
		other, collides := taken[at]
		c.need(!collides || names[d.Name], what+": name",
			fmt.Sprintf("one whose hash differs from that of %q", other), "one with the same")
		image := s.image(d)
		if twin, shared := images[image]; shared && image != "" {
			c.need(d.ReadOnly && twin.ReadOnly, what+": image", "its own, since it is written to",
				fmt.Sprintf("that of disk %q, too", twin.Name))
		}
		names[d.Name], taken[at], images[image] = true, d.Name, d
	}
}

func (c *checker) disk(d hypervisor.Disk, s Settings) {
	what := "disk " + quote(d.Name)
	lower := d.Name == strings.ToLower(d.Name) && word(d.Name, "-")
	c.need(lower && d.Name != "" && len(d.Name) <= maxName, what+": name",
		fmt.Sprintf(`1 to %d lower-case letters, digits and "-"`, maxName), quote(d.Name))
	c.need(d.Format == "" || d.Format == "raw" || d.Format == "qcow2", what+": format",
		`"raw" or "qcow2"`, quote(d.Format))
	c.need(d.Size >= 0 && d.Size%sector == 0, what+": size",
		fmt.Sprintf("a multiple of %d bytes", sector), fmt.Sprintf("%d bytes", d.Size))
	if d.Local() && s.LocalDisk == nil {
		c.need(false, what+": image", "shared", "local, and this host has no place for local disks")
		return
	}
	c.path(what+": image", s.image(d))
}

func (c *checker) nics(all []hypervisor.NIC) {
	c.need(len(all) <= maxNICs, "network cards", fmt.Sprintf("at most %d", maxNICs), len(all))
	macs, taps := map[string]bool{}, map[string]bool{}
	for i, n := range all {
		what := fmt.Sprintf("network card %d", i)
		mac := strings.ToLower(n.MAC)
		c.need(unicast(mac), what+": MAC", `the address of one card, like "52:54:00:12:34:56"`,
			quote(n.MAC))
		c.need(!macs[mac], what+": MAC", "unique in the VM", quote(n.MAC))
		macs[mac] = true
		if n.Tap == "" {
			continue
		}
		c.need(text(n.Tap) && len(n.Tap) <= maxInterface && !strings.ContainsAny(n.Tap, "/: %") &&
			n.Tap != "." && n.Tap != "..", what+": tap", "the name of a network device",
			quote(n.Tap))
		c.need(!taps[n.Tap], what+": tap", "its own", "that of another card, too")
		taps[n.Tap] = true
	}
}

// unicast reports whether mac is the lower-case address of a single card.
func unicast(mac string) bool {
	parts := strings.Split(mac, ":")
	if len(parts) != 6 || mac == "00:00:00:00:00:00" {
		return false
	}
	for _, p := range parts {
		if len(p) != 2 || strings.Trim(p, "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.ContainsRune("02468ace", rune(parts[0][1]))
}
