package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Snapshot is the contents of a disk at a moment, kept under a name inside of its image.
type Snapshot struct {
	Disk, Name string
	Made       time.Time `json:",omitzero"`
	By         string    `json:",omitempty"` // the operator
}

// What is asked for of a snapshot.
const (
	CreateSnapshot = "create"
	DeleteSnapshot = "delete"
	RevertSnapshot = "revert" // the disk has its contents again
)

// SnapshotRequest asks once for something to be done with a snapshot. It stays for a while when it has
// ended.
type SnapshotRequest struct {
	ID         string // unique in its VM
	What       string // CreateSnapshot, DeleteSnapshot or RevertSnapshot
	Disk, Name string
	By         string `json:",omitempty"`
	At         time.Time

	// Ended is when it was done, or refused; zero: neither yet. Written by the agent, as all below.
	Ended time.Time `json:",omitzero"`
	Why   string    `json:",omitempty"` // it was refused, in words
}

// Words says what is asked for, for people.
func (r *SnapshotRequest) Words() string {
	return fmt.Sprintf("%s snapshot %s of disk %s", r.What, r.Name, r.Disk)
}

// endedRequests is how many requests that have ended are kept.
const endedRequests = 8

// AskSnapshot adds a request. The oldest that have ended are forgotten.
func (v *VM) AskSnapshot(r SnapshotRequest) {
	all := append(slices.Clone(v.SnapshotRequests), r)
	ended := 0
	for _, o := range all {
		if !o.Ended.IsZero() {
			ended++
		}
	}
	v.SnapshotRequests = slices.DeleteFunc(all, func(o SnapshotRequest) bool {
		drop := !o.Ended.IsZero() && ended > endedRequests
		if drop {
			ended--
		}
		return drop
	})
}

// Asking reports whether a request about a snapshot has not ended.
func (v *VM) Asking() bool {
	return slices.ContainsFunc(v.SnapshotRequests, func(r SnapshotRequest) bool { return r.Ended.IsZero() })
}

// EndSnapshot takes in that request i has ended; why is why it was refused, "" that it was done.
func (v *VM) EndSnapshot(i int, why string, now time.Time) {
	v.SnapshotRequests = slices.Clone(v.SnapshotRequests)
	r := &v.SnapshotRequests[i]
	r.Ended, r.Why = now, why
	if why != "" {
		return
	}
	is := func(s Snapshot) bool { return s.Disk == r.Disk && s.Name == r.Name }
	switch has := slices.ContainsFunc(v.Snapshots, is); {
	case r.What == CreateSnapshot && !has:
		v.Snapshots = append(slices.Clip(v.Snapshots), Snapshot{r.Disk, r.Name, now, r.By})
	case r.What == DeleteSnapshot && has:
		if v.Snapshots = slices.DeleteFunc(slices.Clone(v.Snapshots), is); len(v.Snapshots) == 0 {
			v.Snapshots = nil
		}
	}
}

// CanMigrate reports whether the VM can migrate live, or why not. The snapshots of a local disk are
// not copied with it: a migration would lose them.
// Source: libvirt v9.0.0 src/qemu/qemu_migration.c (qemuMigrationSrcIsAllowed, "cannot migrate domain
// with snapshots"); QEMU 7.2 block/mirror.c copies what a disk holds now.
func (v *VM) CanMigrate() (can bool, why string) {
	if !v.Migratable {
		return false, v.NotMigratableReason
	}
	for _, s := range v.Snapshots {
		if slices.ContainsFunc(v.Disks(), func(d hypervisor.Disk) bool { return d.Name == s.Disk && d.Local() }) {
			return false, fmt.Sprintf("its local disk %s has the snapshot %s, which a migration would lose: "+
				"delete it with godwit vm snapshot delete first", s.Disk, s.Name)
		}
	}
	return true, ""
}
