package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// What the tests in package fake_test see of the inside.

type (
	Alike[T comparable] = alike[T]
	Costs               = costs
	Delta               = deltaCosts
	EventQueue          = eventQueue
	List                = list
	News[E any]         = news[E]
	Options             = streamOptions
	Stream              = stream
	Timer               = timer
)

var (
	NeededBy = neededBy
	Possible = possible
	Resizes  = resizes
	Sensible = sensible
)

// Delete is deleteAt.
func Delete[E any](list []E, i int) []E { return deleteAt(list, i) }

// Insert is insertAt.
func Insert[E any](list []E, i int, e E) []E { return insertAt(list, i, e) }

// Passes returns how many passes were begun.
func (s *stream) Passes() int { return s.passes }

// Left returns what the present pass has not sent; before the first, everything.
func (s *stream) Left(now time.Duration) hypervisor.Bytes {
	if s.passes == 0 {
		return s.Options.Memory
	}
	p := s.pass.by(now)
	return p.left()
}

// DirtyRate returns how fast the guest dirtied memory during the last whole pass.
func (s *stream) DirtyRate() hypervisor.Bandwidth { return s.dirty }

// Throttle returns the percentage of CPU time that is taken from the guest.
func (s *stream) Throttle() int { return s.brake.throttle }
