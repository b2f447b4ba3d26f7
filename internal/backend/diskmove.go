package backend

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A DiskMove is what is kept of a disk that goes to another image of this host.
type DiskMove struct {
	Disk, From, To string // the paths; From is empty for a local disk
	Phase          MovePhase
	Error          string `json:",omitempty"`
	// Tidied: nothing of the copying is left in the hypervisor, nor, of a move that failed, the copy.
	Tidied bool `json:",omitempty"`
	// Over: nothing is to be kept of it when it is tidied.
	Over bool `json:",omitempty"`
}

// A MovePhase is how far the move of a disk has come. Which image holds the disk follows from it at any
// moment: From until MoveSwitching, and To from then on. To holds it from MoveReady on, too, as long as the
// copying is seen to go on: a copy that breaks while no process of ours is there is noted later, and not at
// all when the VM has stopped by then.
type MovePhase string

// The phases, in order. From MoveReady to the switch every write goes to both images.
const (
	MoveMaking    MovePhase = "making"    // the file To is being made
	MoveCopying   MovePhase = "copying"   // it is ours
	MoveReady     MovePhase = "ready"     // it is complete
	MoveSwitching MovePhase = "switching" // the guest may be on it
	MoveSwitched  MovePhase = "switched"  // it is
	MoveFailed    MovePhase = "failed"
)

// Active reports whether the move keeps the VM from migrating and its disks from being changed.
func (m *DiskMove) Active() bool { return m != nil && (m.Phase != MoveFailed || !m.Tidied) }

// Switched reports whether the image To holds the disk.
func (m *DiskMove) Switched() bool { return m.Phase == MoveSwitching || m.Phase == MoveSwitched }

// Image returns the path of the image that holds the disk.
func (m *DiskMove) Image() string {
	if m.Switched() {
		return m.To
	}
	return m.From
}

// Conflict refuses what cannot be done while a disk moves. When the move has failed, what is left of it is
// removed a little later.
func (m *DiskMove) Conflict() error {
	if m.Phase == MoveFailed {
		return Errorf(hypervisor.Transient, "what the move of its disk %s has left at %s is still to be removed", m.Disk, m.To)
	}
	return Errorf(hypervisor.Conflict, "its disk %s is on its way to %s", m.Disk, m.To)
}

// Asked answers a command to move a disk while one moves: the same move is under way, and another one is a
// Conflict. The move is Active.
func (m *DiskMove) Asked(c hypervisor.MoveDisk) error {
	if m.Disk == c.Disk && m.To == c.To && m.Phase != MoveFailed {
		return nil
	}
	return m.Conflict()
}

// MayMove refuses a disk that does not move, and a path that is none of a file.
func MayMove(disk hypervisor.Disk, to string) error {
	switch {
	case !filepath.IsAbs(to) || filepath.Clean(to) != to:
		return Errorf(hypervisor.Invalid, "%q is no absolute path of a file", to)
	case disk.ReadOnly:
		return Errorf(hypervisor.Invalid, "disk %s is read only: attach a copy of it instead", disk.Name)
	}
	return nil
}

// MaySwitch refuses to let a VM go on with a copy that is not complete, or is not known to be so because the VM
// rests. The move of a disk that has switched is no error. A nil move is none.
func (m *DiskMove) MaySwitch(disk string, rests bool) error {
	switch {
	case m == nil || m.Disk != disk:
		return Errorf(hypervisor.Conflict, "its disk %q does not move", disk)
	case m.Phase != MoveReady && !m.Switched():
		return Errorf(hypervisor.Conflict, "the copy of disk %s is not complete: %s %s", disk, m.Phase, m.Error)
	case rests && !m.Switched():
		return m.unsure()
	}
	return nil
}

// MayEnd refuses to end the move of another disk, and to end it on the image that the VM does not have. Of a VM
// that rests with a complete copy the caller knows which one it has: it may have run elsewhere since.
func (m *DiskMove) MayEnd(c hypervisor.EndDiskMove, rests bool) error {
	switch {
	case m.Disk != c.Disk:
		return Errorf(hypervisor.Conflict, "its disk %q does not move, but %s", c.Disk, m.Disk)
	case rests && m.Phase == MoveReady && c.On == m.To:
		return nil
	case c.On != m.Image():
		return Errorf(hypervisor.Conflict, "its disk %s does not go on with %q: its move is %s", c.Disk, c.On, m.Phase)
	}
	return nil
}

// GoesOver says that a move ends a little later.
func (m *DiskMove) GoesOver() error {
	return Errorf(hypervisor.Transient, "its guest is going over to %s", m.To)
}

// MayStart refuses to start a VM from the image that it had before, or that may lack what was written last.
func (m *DiskMove) MayStart(path string) error {
	switch {
	case m.Phase == MoveSwitched && path == m.From:
		return Errorf(hypervisor.Conflict, "its disk %s was moved to %s, and %q is older", m.Disk, m.To, m.From)
	case m.Phase == MoveReady && path == m.To:
		return m.unsure()
	}
	return nil
}

// unsure refuses a copy that the VM did not go over to before it stopped.
func (m *DiskMove) unsure() error {
	return Errorf(hypervisor.Conflict, "its disk %s is %q: the VM stopped before it went over to %s, which may lack "+
		"what was written last: start it from the former", m.Disk, m.From, m.To)
}

// Progress returns what a host says of a move of which so much is copied; nil is no move.
func (m *DiskMove) Progress(copied, total hypervisor.Bytes) *hypervisor.DiskMove {
	if m == nil {
		return nil
	}
	told := &hypervisor.DiskMove{Disk: m.Disk, From: m.From, To: m.To, Phase: hypervisor.DiskCopying,
		Copied: copied, Total: total, Error: m.Error}
	switch m.Phase {
	case MoveReady:
		told.Phase = hypervisor.DiskReady
	case MoveSwitching, MoveSwitched:
		told.Phase = hypervisor.DiskSwitched
	case MoveFailed:
		told.Phase = hypervisor.DiskFailed
	}
	return told
}

// ChangesDisks reports whether a command is not for a VM one of whose disks moves.
func ChangesDisks(c hypervisor.Command) bool {
	switch c.(type) {
	case hypervisor.Resize, hypervisor.AttachDisk, hypervisor.DetachDisk, hypervisor.Snapshot,
		hypervisor.DeleteSnapshot, hypervisor.RevertSnapshot:
		return true
	}
	return false
}

// claimed ends the name of an image that is being copied to. No disk has such a name.
const claimed = ".new"

// Claim is the name under which a copy is made, and which it keeps besides its path until the move has
// ended. Only this host makes a file of that name: what is at the path is ours as long as it is the same
// file. Storage may be shared, and another host may have moved the disk there since.
func (m *DiskMove) Claim(host hypervisor.HostName, vm hypervisor.VMID) string {
	h := sha256.Sum256([]byte(string(host) + "\x00" + string(vm) + "\x00" + m.Disk))
	return fmt.Sprintf("%s.%x%s", m.To, h[:6], claimed)
}

// Publish gives a copy that is made its path, where nothing is overwritten.
func (m *DiskMove) Publish(claim string) error {
	switch err := os.Link(claim, m.To); {
	case errors.Is(err, fs.ErrExist):
		return m.Taken()
	case err != nil:
		return Errorf(hypervisor.Unsupported, "disk %s: %w", m.Disk, err)
	}
	return nil
}

// Taken refuses a path at which there is something.
func (m *DiskMove) Taken() error {
	return Errorf(hypervisor.Conflict, "%s is there already: move it away, or choose another path", m.To)
}

// Unmake removes the file of a copy that is not to be, if it is the one that was claimed.
func (m *DiskMove) Unmake(claim string) error {
	made, none := os.Lstat(claim)
	there, missing := os.Lstat(m.To)
	if none == nil && missing == nil && os.SameFile(made, there) {
		if err := RemoveFile(m.To); err != nil {
			return err
		}
	}
	return RemoveFile(claim)
}

// Drop removes what a move has left of files, when its VM is forgotten. A copy that may be the VM's disk stays.
func (m *DiskMove) Drop(claim string) error {
	switch m.Phase {
	case MoveMaking, MoveCopying, MoveFailed:
		return m.Unmake(claim)
	}
	return RemoveFile(claim)
}

// RemoveFile removes a file that may have been removed before.
func RemoveFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Errorf(hypervisor.Transient, "%w", err)
	}
	return nil
}
