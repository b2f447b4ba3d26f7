package hypervisor

import "slices"

// A DiskMove is a disk of a VM on its way to another image on the same host: see [MoveDisk].
type DiskMove struct {
	Disk     string
	From, To string // the paths of its images; From is empty for a local disk
	Phase    DiskPhase
	// Copied is how much of the Total the copy holds; zero where the host does not tell.
	Copied, Total Bytes
	Error         string `json:",omitempty"` // why it failed
}

// A DiskPhase is how far the move of a disk has come.
type DiskPhase string

// The phases, in order. Only the last two are final; DiskReady, too, may become DiskFailed.
const (
	DiskCopying  DiskPhase = "Copying"  // the VM has the image From, and the copy is not complete
	DiskReady    DiskPhase = "Ready"    // both images hold the same, and every write goes to both
	DiskSwitched DiskPhase = "Switched" // the VM has the image To only; From is still there
	DiskFailed   DiskPhase = "Failed"   // the VM has the image From, and nothing of the copy is left, or will be
)

// HasDisk reports whether v has a disk of this name at a path.
func (v VM) HasDisk(disk, path string) bool {
	return slices.ContainsFunc(v.Disks(), func(d Disk) bool { return d.Name == disk && d.Path == path })
}

// AtPath returns v with a disk at another path. What has no such disk stays as it is.
func (v VM) AtPath(disk, path string) VM {
	if v.Hardware == nil {
		return v
	}
	i := slices.IndexFunc(v.Hardware.Disks, func(d Disk) bool { return d.Name == disk })
	if i < 0 || v.Hardware.Disks[i].Path == path {
		return v
	}
	disks := slices.Clone(v.Hardware.Disks)
	disks[i].Path = path
	return v.WithDisks(disks)
}
