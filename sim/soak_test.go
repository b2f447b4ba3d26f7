package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// TestSoak plays seeds of turmoil, from the seed GODWIT_SOAK_FROM on (default: 1):
// as many as GODWIT_SOAK says, or as the tier has time for. Those that fail it prints
// as scenarios, as small as they can be.
func TestSoak(t *testing.T) {
	seeds := number(t, "GODWIT_SOAK", testutil.Rounds(t, 50, 3000))
	from, began, failed := number(t, "GODWIT_SOAK_FROM", 1), time.Now(), 0
	for seed := from; seed < from+seeds; seed++ {
		s := simtest.Turmoil().Make(sim.Seeded(uint64(seed)))
		if wrong := soak(t, s); wrong != "" {
			failed++
			s = simtest.ShrinkWorld(s, func(s *simtest.World) bool { return soak(t, s) != "" })
			t.Errorf("seed %d: %s\nshrunk: %s\n%s", seed, wrong, soak(t, s), s)
		}
	}
	t.Logf("%d seeds in %v, %d failed", seeds, time.Since(began).Round(time.Second), failed)
}

// soak returns what goes wrong in a world. A panic is wrong, too; a world that cannot be built,
// as when its last host was shrunk away, is not.
func soak(t *testing.T, s *simtest.World) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprintf("panic: %v", r)
		}
	}()
	if c, err := s.Scenario("world"); err != nil {
		return ""
	} else if _, err := c.Build(c.Config(1)); err != nil {
		return ""
	}
	return play(t, s, sim.Seeded(s.Seed)).wrong()
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is no number", variable, text)
	}
	return n
}
