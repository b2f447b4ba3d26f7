package sim

import "math/rand/v2"

// A Chooser makes every free choice of a simulated world: how late a message
// is, which participant runs first, what fails.
type Chooser interface {
	Choose(what string, n int) int // in [0, n); n is positive
}

// Seeded returns a chooser whose choices follow from the seed alone.
func Seeded(seed uint64) Chooser { return seeded{rand.New(rand.NewPCG(seed, 0x676f64776974))} }

type seeded struct{ *rand.Rand }

// Choose implements Chooser.
func (s seeded) Choose(_ string, n int) int { return s.IntN(n) }
