package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The sum is of the file that hbal was given when the plans in the folder hbal were recorded.
func TestTheClusterIsTheOneThatHbalWasGiven(t *testing.T) {
	sum := sha256.Sum256([]byte(Ganeti(40)))
	if got := hex.EncodeToString(sum[:]); got != "7809986262d1c58c52e84a03557a5ef8fc6acbb4f150eccbccb543d84ac00e18" {
		t.Errorf("the cluster of 40 hosts has the sum %s", got)
	}
}

// What hbal's plans cost was worked out by a program of its own, from hbal's output.
func TestHbalsPlansCostWhatWasWorkedOut(t *testing.T) {
	for _, want := range []struct {
		hosts, drained, moves int
		gib, fullest          float64
	}{{40, 1, 17, 174, 0.857}, {40, 4, 75, 660, 0.77}, {100, 1, 17, 174, 0.841}, {100, 4, 75, 660, 0.881}} {
		rows, err := ganetiRows(context.Background(), want.hosts, want.drained)
		if err != nil {
			t.Fatal(err)
		}
		r := rows[len(rows)-1]
		if r.Candidate != Hbal || r.Moves != want.moves || *r.MovedGiB != want.gib || *r.Fullest != want.fullest ||
			r.Solved != 1 {
			t.Errorf("%+v: %d moves, %v GiB, fullest %v; want %+v", r, r.Moves, *r.MovedGiB, *r.Fullest, want)
		}
	}
}

// No plan is better than the bound, and none solves more, or with fewer moves, than every
// arrangement.
func TestNoCandidateIsBetterThanTheBounds(t *testing.T) {
	rows := tightRows()
	best := rows[0]
	for _, r := range rows[1:] {
		if r.Solved > best.Solved || r.Moves < best.Moves {
			t.Errorf("%s is better than %s: %+v, %+v", r.Candidate, best.Candidate, r, best)
		}
	}
	if g := rows[2]; g.Candidate != godwit || g.Solved != best.Solved {
		t.Errorf("godwit solves %d clusters, %d can be", g.Solved, best.Solved)
	}
	rows, err := ganetiRows(context.Background(), 40, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		if r.Moves < rows[0].Moves || *r.Seconds < *rows[0].Seconds || *r.MovedGiB < *rows[0].MovedGiB {
			t.Errorf("%s is better than the bound: %+v", r.Candidate, r)
		}
	}
}

// In a cluster that a person can look through: v0 of 4 GiB leaves n0, and fits only where n1's VM of
// 2 GiB has made room.
func TestEveryArrangementIsLookedAt(t *testing.T) {
	f := tight(1)
	f.VMs = f.VMs[:0]
	for i := range f.Hosts {
		f.Hosts[i].UsedMemory, f.Hosts[i].UsedCPUs = 0, 0
		f.Hosts[i].Load.VMs = 0
	}
	add := func(host string, gib int) {
		v := plan.VM{Home: hypervisor.HostName(host)}
		v.ID, v.Memory, v.CPUs = hypervisor.VMID(fmt.Sprintf("v%d", len(f.VMs))), hypervisor.Bytes(gib)*hypervisor.GiB, 1
		f.VMs = append(f.VMs, v)
	}
	add("n0", 4)
	add("n1", 5)
	add("n1", 2) // 3 are free
	add("n2", 8) // 2 are free
	add("n3", 7) // 3 are free
	if n := fewest(f); n != 2 {
		t.Errorf("it takes %d moves, want 2", n)
	}
	add("n3", 3)
	if n := fewest(f); n != 2 {
		t.Errorf("it takes %d moves, want 2", n)
	}
	add("n2", 2)
	if n := fewest(f); n != -1 {
		t.Errorf("it takes %d moves, want none: there is no room", n)
	}
}

// The rows of the small clusters in the documentation are what the command prints today.
func TestTheDocumentationHasTheTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/benchmark.md")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "    ") && len(f) > 0 {
			said = append(said, strings.Join(f, " "))
		}
	}
	rows, err := ComparePlans(context.Background(), 40)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		words := []string{r.Set, r.Candidate}
		if r.Recorded != "" {
			words = append(words, "(recorded plan)")
		}
		words = append(words, fmt.Sprintf("%d of %d %d", r.Solved, r.Questions, r.Moves))
		for _, x := range []struct {
			value  *float64
			format string
			factor float64
		}{{r.MovedGiB, "%.1f", 1}, {r.Fullest, "%.1f %%", 100}, {r.Seconds, "%.1f s", 1}} {
			if x.value == nil {
				words = append(words, "–")
			} else {
				words = append(words, fmt.Sprintf(x.format, *x.value*x.factor))
			}
		}
		if line := strings.Join(words, " "); !slices.Contains(said, line) {
			t.Errorf("docs/benchmark.md has no row %q", line)
		}
	}
}

// BenchmarkFailover asks whether 1,000 hosts survive any two failures.
func BenchmarkFailover(b *testing.B) {
	f, err := fleet(1000)
	if err != nil {
		b.Fatal(err)
	}
	p := plan.FromInventory(f)
	for b.Loop() {
		if a := plan.Failover(plan.FailoverQuestion{Fleet: p, Failures: 2}); a.Verdict != plan.Yes {
			b.Fatal(a.Verdict)
		}
	}
	b.ReportMetric(float64(len(p.VMs)), "VMs")
}

// BenchmarkDrain plans the drain of two hosts of 10,000, and plays it in ten worlds, as godwit plan
// drain does.
func BenchmarkDrain(b *testing.B) { forecasts(b, 10_000, 2, 10) }

// BenchmarkWorlds plays the drain of one host of 200 in 1,000 worlds.
func BenchmarkWorlds(b *testing.B) { forecasts(b, 200, 1, 1000) }

func forecasts(b *testing.B, hosts, drained, worlds int) {
	f, err := fleet(hosts)
	if err != nil {
		b.Fatal(err)
	}
	s, err := config.Of("benchmark", f, config.VarySpec{Dirty: "lognormal(0.3)", Link: "triangular(0.7, 1, 1)"})
	if err != nil {
		b.Fatal(err)
	}
	s.Until = 240 * time.Hour
	q := whatif.Question{Samples: worlds}
	for i := range drained {
		q.Hosts = append(q.Hosts, f.Hosts[i+1].Name)
	}
	for b.Loop() {
		if a, err := whatif.Ask(context.Background(), s, q); err != nil || len(a.Left) > 0 {
			b.Fatal(err, a.Left)
		}
	}
}
