package libvirt

import "github.com/godwit-vm/godwit/internal/backend"

// This file is the steps of a disk that moves to another image of its host.

// A diskCopy is what libvirt shows of the copy of a disk that moves.
type diskCopy uint8

// What is seen of a copy.
const (
	// copyNone: the disk has the image that it had, and is not copied to the new one.
	copyNone diskCopy = iota
	// copyRuns: it is copied.
	copyRuns
	// copyReady: both images hold the same.
	copyReady
	// copyEnds: libvirt lets the guest go over to it, or gives it up.
	copyEnds
	// copyTaken: the disk has the new image.
	copyTaken
	// copyGone: the domain has no such disk.
	copyGone
)

// dueDiskMove returns the next step of a disk that moves. libvirt shows which image a running domain has;
// which one a domain at rest has is only in the journal. The image From holds the disk until MoveSwitching, and To from then on.
func dueDiskMove(m *backend.DiskMove, l domainLook) nextStep {
	switch {
	case m.Tidied, l.Run == runGone:
		return stepNone
	case l.Run.Rests():
		return dueDiskMoveAtRest(m)
	case m.Phase == backend.MoveSwitched:
		return stepTidyMove
	case l.Copy == copyTaken: // also one that another client has let the guest go over to
		return stepNoteSwitched
	case m.Phase == backend.MoveFailed:
		return stepTidyMove
	case m.Phase == backend.MoveMaking: // we died
		return stepFailMove
	}
	return dueDiskCopy(m.Phase, l.Copy)
}

// dueDiskMoveAtRest: the copying has ended with the process, and to both images of a complete copy the same was
// written.
func dueDiskMoveAtRest(m *backend.DiskMove) nextStep {
	switch m.Phase {
	case backend.MoveMaking, backend.MoveCopying:
		return stepFailMove
	case backend.MoveSwitching:
		return stepNoteSwitched
	case backend.MoveReady: // its start chooses
		return stepNone
	}
	return stepTidyMove
}

// dueDiskCopy returns the next step while libvirt copies, or should.
func dueDiskCopy(p backend.MovePhase, c diskCopy) nextStep {
	switch {
	case c == copyGone && p == backend.MoveSwitching: // it was unplugged after the switch
		return stepNoteSwitched
	case c == copyNone, c == copyGone:
		return stepFailMove
	case c == copyReady && p == backend.MoveCopying:
		return stepNoteReady
	case c == copyReady && p == backend.MoveSwitching:
		return stepSwitchDisk
	}
	return stepNone
}
