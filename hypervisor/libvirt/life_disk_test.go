package libvirt

import (
	"testing"
	"time"
)

// The image of a copy is removed only when no guest can have written to it alone, and libvirt is asked to
// switch only when both images hold the same: whatever is seen in whatever phase.
func TestWhatIsDueOfADiskThatMoves(t *testing.T) {
	worked := map[[2]any]nextStep{ // by hand, of a guest that runs
		{moveMaking, copyNone}: stepFailMove, {moveCopying, copyRuns}: stepRest, {moveCopying, copyReady}: stepNoteReady,
		{moveCopying, copyNone}: stepFailMove, {moveReady, copyReady}: stepRest, {moveReady, copyNone}: stepFailMove,
		{moveSwitching, copyReady}: stepSwitchDisk, {moveSwitching, copyEnds}: stepRest, {moveSwitching, copyNone}: stepFailMove,
		{moveSwitching, copyTaken}: stepNoteSwitched, {moveSwitched, copyTaken}: stepTidyMove, {moveFailed, copyReady}: stepTidyMove,
	}
	phases := []movePhase{moveMaking, moveCopying, moveReady, moveSwitching, moveSwitched, moveFailed}
	for _, p := range phases {
		for c := copyNone; c <= copyGone; c++ {
			for _, r := range []run{runGone, runShutoffClean, runsNormally, runPausedUser} {
				rec := &domainRecord{Move: &diskMove{Phase: p}}
				step := due(rec, nil, domainLook{Run: r, Copy: c}, time.Time{})
				mayHold := c == copyTaken && r.Alive() || p == moveSwitching && (!r.Alive() || c == copyGone)
				if (step == stepFailMove || p == moveFailed && step == stepTidyMove) && mayHold {
					t.Errorf("%v in %s with copy %d: %v removes the image that the guest has", r, p, c, step)
				}
				if step == stepSwitchDisk && (p != moveSwitching || c != copyReady || !r.Alive()) {
					t.Errorf("%v in %s with copy %d: it is switched", r, p, c)
				}
				if want, known := worked[[2]any{p, c}]; known && r == runsNormally && step != want {
					t.Errorf("in %s with copy %d %v is due, want %v", p, c, step, want)
				}
			}
		}
	}
}
