package store

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// DiskChange asks for a disk to be attached, or to be detached: one of the two.
type DiskChange struct {
	Attach *hypervisor.Disk `json:",omitempty"`
	Detach string           `json:",omitempty"` // its name
	By     string           `json:",omitempty"` // the operator
	// Why is why it was not made when it was tried last, in words. Written by the agent.
	Why string `json:",omitempty"`
}

// Disk returns the name of the disk.
func (c DiskChange) Disk() string {
	if c.Attach != nil {
		return c.Attach.Name
	}
	return c.Detach
}

// Words says what is asked for, for people: "attach disk data".
func (c DiskChange) Words() string {
	if c.Attach != nil {
		return "attach disk " + c.Attach.Name
	}
	return "detach disk " + c.Detach
}

// Disks returns the disks that the VM has now.
func (v *VM) Disks() []hypervisor.Disk {
	if v.VM.Hardware == nil {
		return nil
	}
	return v.VM.Hardware.Disks
}

// WantedDisks returns the disks that the VM has when all changes are made.
func (v *VM) WantedDisks() []hypervisor.Disk {
	disks := v.Disks()
	for _, c := range v.DiskChanges {
		disks = c.of(disks)
	}
	return disks
}

// of returns disks after the change. It changes none of the list that it is given.
func (c DiskChange) of(disks []hypervisor.Disk) []hypervisor.Disk {
	is := func(d hypervisor.Disk) bool { return d.Name == c.Disk() }
	switch {
	case c.Attach == nil:
		return slices.DeleteFunc(slices.Clone(disks), is)
	case slices.ContainsFunc(disks, is):
		return disks
	}
	return append(slices.Clone(disks), *c.Attach)
}

// Void reports whether change i attaches a disk that a later one detaches: it need not be made.
func (v *VM) Void(i int) bool {
	c := v.DiskChanges[i]
	return c.Attach != nil && slices.ContainsFunc(v.DiskChanges[i+1:], func(later DiskChange) bool {
		return later.Detach == c.Attach.Name
	})
}

// Changed takes in that change i of the disks was made, and takes the request back. What was asked for
// of the same disk before is void.
func (v *VM) Changed(i int) {
	c := v.DiskChanges[i]
	if disks := c.of(v.Disks()); !slices.Equal(disks, v.Disks()) {
		v.VM = v.VM.WithDisks(disks)
	}
	var left []DiskChange
	for j, o := range v.DiskChanges {
		if j > i || o.Disk() != c.Disk() {
			left = append(left, o)
		}
	}
	v.DiskChanges = left
}
