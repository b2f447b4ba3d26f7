package convergence

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// maxRounds is how many passes a prediction looks ahead: what takes more than
// that does not converge in practice.
const maxRounds = 1000

// An Estimate is how a transfer would go on if nothing changed.
type Estimate struct {
	// Converges says that the rest would fit into the downtime within a thousand
	// passes. When it does not, the other fields mean nothing but Left.
	Converges bool
	// Rounds is how many passes come before the last, during which the guest is
	// stopped.
	Rounds int
	// Left is the time until the end, the downtime included;
	// [hypervisor.Forever] when it does not converge.
	Left time.Duration
	// Downtime is how long the last pass takes.
	Downtime time.Duration
}

// Predict tells how long a transfer takes from here: each pass sends what was
// left, and meanwhile the guest dirties memory at dirtyRate; the pass that fits
// into downtimeLimit is the last. Set-up, switch-over and device state cost
// extra. A guest that dirties the same pages over and over does better: Predict
// is for display, and errs on the long side.
func Predict(
	remaining hypervisor.Bytes, dirtyRate, bandwidth hypervisor.Bandwidth,
	downtimeLimit time.Duration,
) Estimate {
	var left time.Duration
	for round := range maxRounds {
		pass := remaining.At(bandwidth)
		left = later(left, pass)
		if pass <= downtimeLimit || remaining <= 0 {
			return Estimate{Converges: true, Rounds: round, Left: left, Downtime: pass}
		}
		if dirtyRate >= bandwidth {
			break // each pass leaves no less than it found
		}
		remaining = dirtyRate.In(pass)
	}
	return Estimate{Left: hypervisor.Forever}
}
