//go:build linux

package qmp_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// crashes returns how many rounds each victim has with each seed: more in the long
// tier, or when GODWIT_CRASHES asks for it.
func crashRounds(t *testing.T) int {
	t.Helper()
	if os.Getenv("GODWIT_CRASHES") != "" {
		return 20
	}
	return testutil.Rounds(t, 1, 10)
}

// A VM is migrated, and meanwhile a process is killed: the QEMU of its source or of
// its target, a process of ours on either side, all by SIGKILL, or the link. The
// moments are anywhere in the migration, and around its switch-over. Never do two
// run, never is none left, and every outcome that was unknown is resolved, with
// evidence. The guest, who counts its own heartbeats and stamps its own memory,
// is the witness.
//
// It takes one moment for one victim in three, in the long tier 10 for each. GODWIT_CRASHES=3 takes 20
// with each of three seeds, GODWIT_SEED=7 another one.
func TestCrash(t *testing.T) {
	each := crashRounds(t)
	count := map[victim]map[string]int{}
	phases := map[victim]map[string]int{}
	rounds := 0
	for _, seed := range backendtest.Seeds(t) {
		for v := sourceQEMU; v <= linkCut; v++ {
			count[v], phases[v] = grown(count[v]), grown(phases[v])
			t.Run(fmt.Sprintf("seed %d/%s", seed, v), func(t *testing.T) {
				testutil.Sample(t, 5)
				rounds += crashAll(t, seed, v, each, count[v], phases[v])
			})
		}
	}
	t.Logf("%d rounds; how they ended:\n%s", rounds, table(results, count))
	t.Logf("how far they had come:\n%s", table(stages, phases))
}

func grown(m map[string]int) map[string]int {
	if m == nil {
		m = map[string]int{}
	}
	return m
}

var stages = []string{"set-up", "memory", "switching", "handed over", "after"}

// crashAll plays n rounds of a victim, and counts how they ended.
func crashAll(t *testing.T, seed uint64, v victim, n int, count, phases map[string]int) int {
	s := newScene(t)
	if err := s.calibrate(); err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	before := map[*backendtest.Agent]int{s.hosts[source].Agent(): s.hosts[source].Agent().OpenFiles(),
		s.hosts[target].Agent(): s.hosts[target].Agent().OpenFiles()}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(v)<<32|uint64(i)))
		window := s.window
		if v >= linkReset {
			window -= s.opening // before, nothing is on the link
		}
		when := draw(v, i, n, window, r)
		round := s.newRound(v, i, when, r)
		began := time.Now()
		result, err := round.play()
		if err != nil {
			t.Fatalf("seed %d, round %d: %s, %v (%s): %v", seed, i, v, when, round.phase, err)
		}
		if testing.Verbose() {
			t.Logf("round %d: %v (%s): %s in %v", i, when, round.phase, result,
				time.Since(began).Round(time.Millisecond))
		}
		count[result]++
		phases[round.phase]++
	}
	for e, files := range before {
		if now := e.OpenFiles(); now > files+2 && slices.Contains(
			[]*backendtest.Agent{s.hosts[source].Agent(), s.hosts[target].Agent()}, e) {
			t.Errorf("an agent had %d files open, and after %d rounds %d", files, n, now)
		}
	}
	return n
}

// calibrate plays rounds in which nothing is killed, and measures them. On a busy machine a transfer may
// be given up: its QEMU was silent for too long. Such a round is played again.
func (s *scene) calibrate() error {
	const wanted, attempts = 2, 10
	var last error
	for i, done := 0, 0; done < wanted; i++ {
		if i == attempts {
			return last
		}
		result, err := s.measure(i)
		if err != nil {
			return err
		}
		if result == succeeded {
			done++
		}
		last = fmt.Errorf("%d of %d rounds succeeded, the last ended as %s", done, i+1, result)
	}
	return nil
}

// measure plays a round in which nothing is killed, and notes how long it takes.
func (s *scene) measure(i int) (result string, err error) {
	r := s.newRound(noVictim, i, backendtest.Moment{}, rand.New(rand.NewPCG(0, uint64(i))))
	ended := make(chan time.Duration, 1)
	go func() {
		select {
		case <-r.begun:
		case <-r.judged:
		}
		began := time.Now()
		select {
		case <-r.events.On("target RESUME"):
		case <-r.judged:
		}
		ended <- time.Since(began)
	}()
	if result, err = r.play(); err != nil || result != succeeded {
		return result, err
	}
	s.window = <-ended * 11 / 10
	s.opening = r.opened
	return result, nil
}

// table puts what was counted into rows and columns.
func table(columns []string, count map[victim]map[string]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s", "")
	for _, c := range columns {
		fmt.Fprintf(&b, "%17s", c)
	}
	for v := sourceQEMU; v <= linkCut; v++ {
		fmt.Fprintf(&b, "\n%-16s", v)
		for _, c := range columns {
			fmt.Fprintf(&b, "%17d", count[v][c])
		}
	}
	return b.String()
}
