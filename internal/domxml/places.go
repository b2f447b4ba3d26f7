package domxml

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Place is an address on the SCSI controller.
type Place struct{ Target, Unit int }

// places returns where each disk is. Its name alone decides, so that it stays
// there whatever happens to other disks, and is where the QMP backend puts it.
// UEFI firmware looks only at targets below 32 and units below 8; who finds the
// place there taken by a disk before it goes to the large rest.
func places(all []hypervisor.Disk) []Place {
	at := make([]Place, len(all))
	taken := map[Place]bool{}
	for i, d := range all {
		first, second := placesOf(d.Name)
		at[i] = first
		if taken[first] {
			at[i] = second
		}
		taken[at[i]] = true
	}
	return at
}

// placesOf returns where a disk may be: the second Place if the first is taken.
func placesOf(disk string) (first, second Place) {
	h := sha256.Sum256([]byte(disk))
	unit := binary.BigEndian.Uint32(h[4:])
	return Place{int(h[0]) % 32, int(h[1]) % 8},
		Place{32 + int(h[2])%224, 8 + int(unit%(16384-8))}
}

// device returns the name under which libvirt knows the disk in this place: "sda"
// is the first. Different places have different ones.
func (p Place) device() string {
	n := p.Target*8 + p.Unit
	if p.Target >= 32 {
		n = 32*8 + (p.Target-32)*16384 + p.Unit
	}
	return deviceName("sd", n)
}

// deviceName returns the name of the nth disk on a bus: a to z, aa, ab and so on.
func deviceName(prefix string, n int) string {
	letters := ""
	for n++; n > 0; n = (n - 1) / 26 {
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return prefix + letters
}

// longest is what fits into the QMP backend's names with a prefix, and into a
// serial number.
const longest = 26

// serialOf returns the serial number by which the guest finds a disk: its name, or
// what stands for it if it is too long.
func serialOf(disk string) string {
	if len(disk) <= longest {
		return disk
	}
	h := sha256.Sum256([]byte(disk))
	return fmt.Sprintf("%s.%x", disk[:longest-17], h[:8])
}

// block reports whether path is a block device. The path tells, since the device is not
// looked at here.
func block(path string) bool {
	return strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
}
