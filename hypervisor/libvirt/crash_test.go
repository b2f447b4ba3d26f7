//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// crashes returns how many rounds each victim has with each seed, in each mode: more
// in the long tier, and most when GODWIT_CRASHES asks for it.
func crashRounds(t *testing.T) int {
	t.Helper()
	if os.Getenv("GODWIT_CRASHES") != "" {
		return 20
	}
	return testutil.Rounds(t, 1, 3)
}

// A tally counts how rounds ended.
type tally struct {
	rounds   int
	ends     map[victim]map[string]int
	twice    int           // rounds in which libvirt let two copies run
	overlaps time.Duration // the longest of them
	misled   int           // how often Resolve was contradicted
}

// A VM is migrated, and meanwhile a process is killed: the libvirtd or the QEMU of its
// source or of its target, a process of ours on either side, all by SIGKILL, or the
// link. The moments are anywhere in the migration, and around its switch-over. None
// is ever lost, and every outcome is resolved without a human. In the strict mode no
// two ever run; where libvirt's own hand-over is adopted, it may let its source run
// when the target's answer is lost: that is noticed and ended. The guest, who counts
// its own heartbeats and stamps its own memory, is the witness.
//
// It takes one moment for half of the victims; in the long tier, three for each in each mode.
// GODWIT_CRASHES=3 takes 20 with each of three seeds, GODWIT_SEED=7 another one.
func TestCrash(t *testing.T) {
	each := crashRounds(t)
	for _, strict := range []bool{false, true} {
		mode := map[bool]string{false: "adopted", true: "strict"}[strict]
		t.Run(mode, func(t *testing.T) {
			testutil.Sample(t, 6)
			count := &tally{ends: map[victim]map[string]int{}}
			s := newScene(t, strict)
			if err := s.calibrate(); err != nil {
				t.Fatalf("undisturbed: %v", err)
			}
			t.Logf("undisturbed, a migration takes %v", s.window.Round(time.Millisecond))
			for _, seed := range backendtest.Seeds(t) {
				for v := sourceDaemon; v <= linkCut; v++ {
					if each == 1 && (uint64(v)+seed)%2 == 0 == strict {
						continue // the other half
					}
					if !t.Run(fmt.Sprintf("seed %d/%s", seed, v), func(t *testing.T) {
						s.crashAll(t, seed, v, each, count)
					}) {
						return // what it has left disturbs what follows
					}
				}
			}
			if err := s.clears(false); err != nil {
				t.Error(err)
			}
			t.Logf("%s: %d rounds; in %d libvirt let two copies run, for %v at most; "+
				"Resolve was contradicted %d times; how they ended:\n%s", mode, count.rounds,
				count.twice, count.overlaps, count.misled, count)
		})
	}
}

// crashAll plays n rounds of a victim, and counts how they ended.
func (s *scene) crashAll(t *testing.T, seed uint64, v victim, n int, count *tally) {
	if count.ends[v] == nil {
		count.ends[v] = map[string]int{}
	}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(v)<<32|uint64(i)))
		j := i
		if n == 1 {
			j = r.IntN(3) // not always the same sort of moment
		}
		when := draw(v, j, max(3, n), s.window, r)
		round := s.newRound(v, i, when, r)
		began := time.Now()
		result, err := round.play()
		if err != nil {
			t.Fatalf("seed %d, round %d: %s, %v, bold %t, mended after %v: %v", seed, i, v,
				round.when, round.bold, round.pause, err)
		}
		overlap := ""
		if d, twice := round.twice.length(); twice {
			overlap = fmt.Sprintf(", two ran for %v", d)
			count.twice++
			count.overlaps = max(count.overlaps, d)
		}
		t.Logf("round %d: %v, bold %t: %s in %v%s", i, round.when, round.bold, result,
			time.Since(began).Round(time.Millisecond), overlap)
		count.rounds++
		count.misled += round.misled
		count.ends[v][result]++
	}
}

// calibrate plays a round in which nothing is killed, and measures it.
func (s *scene) calibrate() error {
	s.window = 10 * time.Second
	r := s.newRound(noVictim, 0, backendtest.Moment{Event: firstBeat}, rand.New(rand.NewPCG(0, 0)))
	if s.strict { // it beats there only when the outcome is resolved
		r.when.Event = "source stopped migrated"
	}
	r.bold = false
	result, err := r.play()
	if err == nil && result != endSucceeded && (!s.strict || result != endMoved) {
		err = fmt.Errorf("it ended as %s", result)
	}
	s.window = r.struck.Sub(r.begun) * 11 / 10
	return err
}

// String puts what was counted into rows and columns.
func (c *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s", "")
	for _, column := range endings {
		fmt.Fprintf(&b, "%17s", column)
	}
	for v := sourceDaemon; v <= linkCut; v++ {
		fmt.Fprintf(&b, "\n%-18s", v)
		for _, column := range endings {
			fmt.Fprintf(&b, "%17d", c.ends[v][column])
		}
	}
	return b.String()
}
