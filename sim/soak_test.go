package sim_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/sim"
)

// TestSoak plays as many seeds of turmoil as GODWIT_SOAK says, from the seed
// GODWIT_SOAK_FROM on (default: 1). Those that fail it prints as transcripts,
// without the events that do not matter.
func TestSoak(t *testing.T) {
	seeds := number(t, "GODWIT_SOAK", 0)
	if seeds == 0 {
		t.Skip("set GODWIT_SOAK to a number of seeds")
	}
	from, began, failed := number(t, "GODWIT_SOAK_FROM", 1), time.Now(), 0
	for seed := from; seed < from+seeds; seed++ {
		s := maker{sim.Seeded(uint64(seed))}.turmoil()
		if wrong := soak(t, s, seed); wrong != "" {
			failed++
			s.reduce(func(s *story) bool { return soak(t, s, seed) != "" })
			t.Errorf("seed %d: %s\n%s\n%s", seed, wrong, soak(t, s, seed), s.transcript(seed))
		}
	}
	t.Logf("%d seeds in %v, %d failed", seeds, time.Since(began).Round(time.Second), failed)
}

// soak returns what goes wrong with a story. A panic is wrong, too.
func soak(t *testing.T, s *story, seed int) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprintf("panic: %v", r)
		}
	}()
	return play(t, s, sim.Seeded(uint64(seed))).wrong()
}

// reduce drops events for as long as the story still fails.
func (s *story) reduce(fails func(*story) bool) {
	for i := 0; i < len(s.events); {
		less := *s
		less.events = slices.Delete(slices.Clone(s.events), i, i+1)
		if !fails(&less) {
			i++
			continue
		}
		s.events, i = less.events, 0
	}
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
