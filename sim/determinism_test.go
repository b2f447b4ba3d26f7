package sim_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simtest.Turmoil().Make(simtest.Drawn(t))
		seed := rapid.Uint64().Draw(t, "seed")
		first := play(t, s, sim.Seeded(seed), keepTrace)
		again := play(t, s, sim.Seeded(seed), keepTrace)
		if diff := cmp.Diff(first.trace.String(), again.trace.String()); diff != "" {
			t.Fatalf("trace (-first +again):\n%s\n%s", diff, s)
		}
		if diff := cmp.Diff(first.result(t), again.result(t)); diff != "" {
			t.Fatalf("result (-first +again):\n%s\n%s", diff, s)
		}
	})
}

func TestObserversChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simtest.Turmoil().Make(simtest.Drawn(t))
		seed := rapid.Uint64().Draw(t, "seed")
		watched, alone := play(t, s, sim.Seeded(seed), keepTrace), play(t, s, sim.Seeded(seed))
		if diff := cmp.Diff(watched.result(t), alone.result(t)); diff != "" {
			t.Fatalf("result (-watched +alone):\n%s\n%s", diff, s)
		}
	})
}

// A world that is run piece by piece is the world that is run at once.
func TestPausesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s, seed := simtest.Turmoil().Make(chance), rapid.Uint64().Draw(t, "seed")
		whole := play(t, s, sim.Seeded(seed), keepTrace)
		pieces := stage(t, s, sim.Seeded(seed), keepTrace)
		for range 1 + chance.Choose("pauses", 5) {
			pieces.Run(pieces.Now() + time.Duration(chance.Choose("ms", 100_000))*time.Millisecond)
		}
		pieces.finish()
		if diff := cmp.Diff(whole.trace.String(), pieces.trace.String()); diff != "" {
			t.Fatalf("trace (-whole +pieces):\n%s\n%s", diff, s)
		}
	})
}

func (p *played) result(t fataler) string {
	text, err := json.Marshal(p.Result())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(text)
}
