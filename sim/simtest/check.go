package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/sim"
)

// Check plays random worlds and fails the test in the first in which something goes wrong: an
// invariant does not hold, or a decision is none. That world is made small and written as a
// transcript, which from then on is played first.
func Check(t testing.TB, g Generator, options ...Option) {
	t.Helper()
	s := gather(t, options)
	if !replayAll(t, s) {
		return
	}
	seed := baseSeed()
	found, played := s.search(g, seed)
	if found == nil {
		t.Logf("simtest: nothing went wrong in %d worlds (-rapid.seed=%d): %v", played, seed, g)
		return
	}
	small := s.reduce(g, found)
	text := fmt.Sprintf("world %d of -rapid.seed=%d: %v", played, seed, g)
	path, err := s.write(t.Name(), small, text)
	if err != nil {
		t.Errorf("simtest: the transcript cannot be written: %v", err)
	}
	t.Errorf("simtest: %s\n%s\n%s\nthe smallest world like it, of %d commands, is in %s:\n\n%s",
		small.failure.line(), small.failure.Detail, text, small.world.Commands(), path,
		small.world)
}

// A find is a world and what goes wrong in it.
type find struct {
	world   *World
	failure *failure
}

// search plays worlds until something goes wrong, and says how many.
func (s *settings) search(g Generator, seed uint64) (found *find, played int) {
	began, stage := time.Now(), s.stage()
	now := &find{}
	hung := s.attended(stage, func() {
		for played < s.worlds() && (s.span == 0 || time.Since(began) < s.span) {
			played++
			now.world = g.Make(sim.Seeded(seed + uint64(played)))
			if now.failure = stage.judge(now.world, played%twice == 1); now.failure != nil {
				return
			}
		}
	})
	if hung != nil {
		now.failure = hung
	}
	if now.failure == nil {
		return nil, played
	}
	return now, played
}

// twice is how many worlds there are for one that is played twice, to see whether the same
// happens again.
const twice = 25

// judge returns what goes wrong in a world, or when it is played again.
func (s *stage) judge(w *World, again bool) *failure {
	if again {
		return s.again(w)
	}
	return s.once(w)
}

// once plays a world, and returns what goes wrong.
func (s *stage) once(w *World) *failure {
	f, err := s.play(w)
	if err != nil {
		return &failure{Name: unbuilt, Detail: err.Error()}
	}
	return f
}

// worlds returns how many worlds to play at most.
func (s *settings) worlds() int {
	switch {
	case s.runs > 0:
		return s.runs
	case s.span > 0:
		return int(^uint(0) >> 1)
	case testing.Short():
		return max(1, rapidFlag("rapid.checks", 100)/5)
	}
	return max(1, rapidFlag("rapid.checks", 100))
}

// baseSeed returns rapid's seed, or any.
func baseSeed() uint64 {
	if seed := rapidFlag("rapid.seed", uint64(0)); seed != 0 {
		return seed
	}
	return rand.Uint64()
}

// rapidFlag returns what one of rapid's flags says.
func rapidFlag[T any](name string, otherwise T) T {
	if f := flag.Lookup(name); f != nil {
		if g, is := f.Value.(flag.Getter); is {
			if v, is := g.Get().(T); is {
				return v
			}
		}
	}
	return otherwise
}

// stage returns a stage with a policyCheck of its own.
func (s *settings) stage() *stage { return &stage{settings: s, policyCheck: &PolicyCheck{}} }

// How long a world is made smaller, by the clock on the wall, and how many decisions may be
// left behind that do not return: each keeps a goroutine.
const (
	reducing  = 20 * time.Second
	leftovers = 16
)

// reduce makes a world smaller in which something goes wrong, and keeps what its generator
// guarantees.
func (s *settings) reduce(g Generator, large *find) *find {
	small, ends := *large, time.Now().Add(reducing)
	until := min(forever, large.failure.At*4+time.Hour) // what fails, fails soon
	if large.failure.Name == ending {
		until = 0
	}
	kept := g.Holds(large.world) == nil
	left, impatient := 0, *s
	if large.failure.hangs {
		impatient.decisionTimeout = max(s.decisionTimeout/20, 50*time.Millisecond)
	}
	fails := func(w *World) bool {
		if time.Now().After(ends) || left > leftovers || kept && g.Holds(w) != nil {
			return false
		}
		stage := impatient.stage()
		stage.until = until
		var f *failure
		hung := impatient.attended(stage, func() {
			f = stage.judge(w, large.failure.Name == another)
		})
		if hung != nil {
			f = hung
			left++
		}
		if f == nil || f.Name != large.failure.Name || f.Name == unbuilt {
			return false
		}
		small = find{w, f}
		return true
	}
	ShrinkWorld(large.world, fails)
	return &small
}
