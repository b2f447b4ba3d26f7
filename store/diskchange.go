package store

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// DiskChange asks for a disk to be attached, to be detached, or to move to another image: one of them.
type DiskChange struct {
	Attach *hypervisor.Disk `json:",omitempty"`
	Detach string           `json:",omitempty"` // its name
	Move   *DiskMove        `json:",omitempty"`
	By     string           `json:",omitempty"` // the operator
	// Why is why it was not made when it was tried last, in words. Written by the agent.
	Why string `json:",omitempty"`
}

// DiskMove asks for the image of a disk to move to another path of the VM's host, while the VM runs. It is
// replaced, never changed.
type DiskMove struct {
	Disk, To string
	Keep     bool `json:",omitempty"` // the old image
	Cancel   bool `json:",omitempty"` // it is not to move any more, unless it is Switched

	// Written by the agent.

	// Begun: it is copied, or is about to be. No migration begins until it has ended.
	Begun bool `json:",omitempty"`
	// Switched: VM says that the disk is at To. Its host goes over to it from now on, and both images
	// hold the same until it has. Then the old image, From, is removed.
	Switched bool   `json:",omitempty"`
	From     string `json:",omitempty"`
	// Boots is the VM's when Switched was written: one that has booted since has the disk at To.
	Boots int `json:",omitempty"`
	// Copied is how much of Total was copied at the last look that was worth a write.
	Copied hypervisor.Bytes `json:",omitempty"`
	Total  hypervisor.Bytes `json:",omitempty"`
}

// Asked returns what is asked for, without what the agent has written.
func (m DiskMove) Asked() DiskMove {
	return DiskMove{Disk: m.Disk, To: m.To, Keep: m.Keep, Cancel: m.Cancel}
}

// Disk returns the name of the disk.
func (c DiskChange) Disk() string {
	switch {
	case c.Attach != nil:
		return c.Attach.Name
	case c.Move != nil:
		return c.Move.Disk
	}
	return c.Detach
}

// Words says what is asked for, for people: "attach disk data".
func (c DiskChange) Words() string {
	switch {
	case c.Attach != nil:
		return "attach disk " + c.Attach.Name
	case c.Move != nil && c.Move.Cancel && !c.Move.Switched:
		return "cancel the move of disk " + c.Move.Disk
	case c.Move != nil:
		return "move disk " + c.Move.Disk + " to " + c.Move.To
	}
	return "detach disk " + c.Detach
}

// MovesDisk reports whether one of the VM's disks is on its way to another image.
func (v *VM) MovesDisk() bool {
	return slices.ContainsFunc(v.DiskChanges, func(c DiskChange) bool { return c.Move != nil && c.Move.Begun })
}

// NextMove returns which change is the move of a disk that is under way, or that is to begin next; -1 is
// none. What was asked for of the same disk before comes first.
func (v *VM) NextMove() int {
	next := -1
	for i, c := range v.DiskChanges {
		before := func(o DiskChange) bool { return o.Disk() == c.Disk() }
		switch {
		case c.Move == nil:
		case c.Move.Begun:
			return i
		case next < 0 && !slices.ContainsFunc(v.DiskChanges[:i], before):
			next = i
		}
	}
	return next
}

// ChangeMove changes what is noted of change i, which is the move of a disk.
func (v *VM) ChangeMove(i int, how func(*DiskMove)) {
	v.DiskChanges = slices.Clone(v.DiskChanges)
	m := *v.DiskChanges[i].Move
	how(&m)
	v.DiskChanges[i].Move = &m
}

// Disks returns the disks that the VM has now.
func (v *VM) Disks() []hypervisor.Disk { return v.VM.Disks() }

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
	case c.Move != nil:
		return c.Move.of(disks)
	case c.Attach == nil:
		return slices.DeleteFunc(slices.Clone(disks), is)
	case slices.ContainsFunc(disks, is):
		return disks
	}
	return append(slices.Clone(disks), *c.Attach)
}

// of returns disks after the move.
func (m *DiskMove) of(disks []hypervisor.Disk) []hypervisor.Disk {
	i := slices.IndexFunc(disks, func(d hypervisor.Disk) bool { return d.Name == m.Disk })
	if i < 0 || m.Cancel && !m.Switched {
		return disks
	}
	disks = slices.Clone(disks)
	disks[i].Path = m.To
	return disks
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
