package libvirt

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// The image of a copy is removed only when no guest can have written to it alone, and libvirt is asked to
// switch only when both images hold the same: whatever is seen in whatever phase.
func TestWhatIsDueOfADiskThatMoves(t *testing.T) {
	worked := map[[2]any]nextStep{ // by hand, of a guest that runs
		{backend.MoveMaking, copyNone}: stepFailMove, {backend.MoveCopying, copyRuns}: stepNone, {backend.MoveCopying, copyReady}: stepNoteReady,
		{backend.MoveCopying, copyNone}: stepFailMove, {backend.MoveReady, copyReady}: stepNone, {backend.MoveReady, copyNone}: stepFailMove,
		{backend.MoveSwitching, copyReady}: stepSwitchDisk, {backend.MoveSwitching, copyEnds}: stepNone, {backend.MoveSwitching, copyNone}: stepFailMove,
		{backend.MoveSwitching, copyTaken}: stepNoteSwitched, {backend.MoveSwitched, copyTaken}: stepTidyMove, {backend.MoveFailed, copyReady}: stepTidyMove,
	}
	phases := []backend.MovePhase{backend.MoveMaking, backend.MoveCopying, backend.MoveReady, backend.MoveSwitching, backend.MoveSwitched, backend.MoveFailed}
	for _, p := range phases {
		for c := copyNone; c <= copyGone; c++ {
			for _, r := range []run{runGone, runShutoffClean, runsNormally, runPausedUser} {
				rec := &domainRecord{Move: &backend.DiskMove{Phase: p}}
				step := due(rec, nil, domainLook{Run: r, Copy: c}, time.Time{})
				mayHold := c == copyTaken && r.Alive() || p == backend.MoveSwitching && (!r.Alive() || c == copyGone)
				if (step == stepFailMove || p == backend.MoveFailed && step == stepTidyMove) && mayHold {
					t.Errorf("%v in %s with copy %d: %v removes the image that the guest has", r, p, c, step)
				}
				if step == stepSwitchDisk && (p != backend.MoveSwitching || c != copyReady || !r.Alive()) {
					t.Errorf("%v in %s with copy %d: it is switched", r, p, c)
				}
				if want, known := worked[[2]any{p, c}]; known && r == runsNormally && step != want {
					t.Errorf("in %s with copy %d %v is due, want %v", p, c, step, want)
				}
			}
		}
	}
}

// A domain that libvirt gives up while it comes is "in shutdown" for a moment. That is no arrival, whatever comes after.
func TestAnIncomingDomainThatIsEndedHasNotArrived(t *testing.T) {
	comes := &jobRecord{}
	comes.ID, comes.Role, comes.Stage, comes.Seen = "job", backend.Target, stageListening, true
	here := *comes
	here.Stage = stageArrived
	for _, row := range []struct {
		job  *jobRecord
		sees run
		want run
	}{
		{comes, runShuttingDown, runPausedMigration}, {&here, runShuttingDown, runShuttingDown},
		{nil, runShuttingDown, runShuttingDown}, {comes, runsMigrated, runsMigrated}, {comes, runGone, runGone},
	} {
		got := receivedAs(row.job, row.sees)
		if got != row.want {
			t.Errorf("%v is %v, want %v", row.sees, got, row.want)
		}
		if l := (domainLook{Run: got, Job: "job"}); row.sees == runShuttingDown && row.job == comes &&
			(came(comes, l) || arriving(comes, l) != hypervisor.JobActive) {
			t.Errorf("in shutdown: has it come? %v, %v", came(comes, l), arriving(comes, l))
		}
	}
}
