package whatif_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

func TestAtLeast(t *testing.T) {
	tests := []struct {
		n, all int
		want   float64
	}{{95, 100, 0.9008}, {100, 100, 0.9737}, {0, 10, 0}, {10, 20, 0.3274}, {0, 0, 0}}
	for _, tt := range tests {
		if got := whatif.AtLeast(tt.n, tt.all); math.Abs(got-tt.want) > 0.0005 {
			t.Errorf("%d of %d: at least %.4f, want %.4f", tt.n, tt.all, got, tt.want)
		}
	}
}

// TestNeverIsTheLongestTime: what did not come about counts as longer than everything.
func TestNeverIsTheLongestTime(t *testing.T) {
	run := func(empty time.Duration, p whatif.MoveResult) *whatif.Run {
		return &whatif.Run{Empty: empty, Results: map[hypervisor.VMID]whatif.MoveResult{"v": p}}
	}
	done := whatif.MoveResult{Done: true, Attempts: 1, Took: 2 * time.Second,
		Downtime: 30 * time.Millisecond}
	twice := done
	twice.Attempts = 2
	runs := []*whatif.Run{run(-1, whatif.MoveResult{Attempts: 3}), run(9*time.Second, done),
		run(5*time.Second, twice), run(7*time.Second, done)}
	s := whatif.Summarize(runs)
	number := func(x float64) *float64 { return &x }
	want := whatif.Summary{Runs: 4, Empty: 3, Seconds: whatif.Spread{P50: number(7)},
		VMs: map[hypervisor.VMID]whatif.MoveSummary{"v": {Runs: 4, Moved: 3, Retried: 2,
			Seconds: whatif.Spread{P50: number(2)}, Downtime: whatif.Spread{P50: number(30)}}}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := whatif.InTime(runs, 7*time.Second); n != 2 {
		t.Errorf("%d in time, want 2", n)
	}
}

// patient is a rack whose limits are stricter than its links.
const patient = `
hosts:
- {name: a, memory: 256GiB, cpus: 64, link: 25Gbit/s}
- {name: "b[1-4]", memory: 64GiB, cpus: 32, link: 25Gbit/s}
vms:
- {name: "v[1-8]", host: a, memory: 8GiB, class: idle}
limits: {perCluster: 1, perSource: 1}
`

func search(t *testing.T, text string, within time.Duration) *whatif.Search {
	t.Helper()
	p := planned(parse(t, text), "a")
	solos, err := p.Solos(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Search(context.Background(),
		whatif.Goal{Within: within, Confidence: 0.9, Samples: 10, Seed: 3}, solos)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSearch(t *testing.T) {
	tests := []struct {
		name       string
		cap        string
		within     time.Duration
		perSource  int
		uncapped   bool
		unsolvable bool
	}{
		{"time enough changes nothing", "500MiB/s", time.Hour, 1, false, false},
		{"less time needs more at once", "500MiB/s", 30 * time.Second, 2, false, false},
		{"still less needs still more", "500MiB/s", 16 * time.Second, 4, false, false},
		{"hardly any time needs the cap lifted", "100MiB/s", 14 * time.Second, 1, true, false},
		{"no time at all", "500MiB/s", 4 * time.Second, 0, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := search(t, patient+"config: {bandwidthPerMigration: "+tt.cap+"}\n", tt.within)
			if tt.unsolvable {
				if s.Found != nil || len(s.Obstacles) == 0 {
					t.Errorf("%+v", s)
				}
				return
			}
			if s.Found == nil {
				t.Fatalf("%+v", s)
			}
			got := s.Found.Settings
			if got.PerSource != tt.perSource || (got.Bandwidth == 0) != tt.uncapped {
				t.Errorf("found %+v", got)
			}
			if last := s.Trials[len(s.Trials)-1]; last.Settings != got || last.InTime < 9 ||
				last.Runs != 10 || *last.EmptySeconds > tt.within.Seconds() {
				t.Errorf("the last trial is %+v", last)
			}
		})
	}
}

// TestFewerAtOnce: two guests that dirty half of what the link carries converge one
// after the other, and not side by side. godwit's own controller lets one wait; KubeVirt's does not.
func TestFewerAtOnce(t *testing.T) {
	testutil.Unraced(t)
	s := search(t, `
compatible: true
hosts:
- {name: a, memory: 256GiB, cpus: 64, link: 10Gbit/s}
- {name: "b[1-2]", memory: 128GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: "v[1-2]", host: a, memory: 16GiB, dirty: 700MiB/s, workingSet: 12GiB}
limits: {perSource: 2}
`, 4*time.Minute)
	if s.Found == nil || s.Found.Settings.PerSource != 1 {
		t.Errorf("%+v", s)
	}
}

// TestWhatChangesNothingIsNotPlayedAgain: with VMs that are alike the order does not
// matter, and it is not tried in the worlds a second time.
func TestWhatChangesNothingIsNotPlayedAgain(t *testing.T) {
	testutil.Unraced(t)
	s := search(t, patient+"vary: {link: \"uniform(0.05, 0.1)\"}\n", 20*time.Second)
	if s.Found != nil || s.Trials[0].Runs == 0 || s.Trials[0].InTime > 0 {
		t.Errorf("%+v", s)
	}
	if slices.ContainsFunc(s.Trials, func(t whatif.Trial) bool {
		return t.Settings.Order != whatif.LargestFirst
	}) {
		t.Errorf("an order that no controller knows is tried, and changes nothing: %+v", s.Trials)
	}
}

// TestALimitOfZeroIsNoVMThatDoesNotConverge: alone it would move, and limits are found with
// which it does.
func TestALimitOfZeroIsNoVMThatDoesNotConverge(t *testing.T) {
	for limit, name := range map[string]string{"perSource": "{perCluster: 1, perSource: 0}",
		"perCluster": "{perCluster: 0, perSource: 1}"} {
		zero := strings.Replace(patient, "{perCluster: 1, perSource: 1}", name, 1)
		if s := search(t, zero, time.Hour); s.Found == nil || s.Found.Settings.PerSource != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		p := planned(parse(t, zero), "a")
		run, err := p.Nominal(context.Background())
		if err != nil || run.Empty >= 0 {
			t.Fatalf("%s: %+v, %v", name, run, err)
		}
		stuck, err := p.Stuck(context.Background(), run)
		why := ": does not begin: the limit " + limit + " is 0"
		if err != nil || len(stuck) != plan.Count(p.Waves) ||
			!strings.HasSuffix(stuck[0].Text, why) {
			t.Errorf("%s: %+v, %v, want %s", name, stuck, err, why)
		}
	}
}

// Memory that does not cross the link, or only half of it, does not make a deadline impossible. By hand: 64 GiB need 55 s at
// 10 Gbit/s, and 27 s when half remains of each page.
func TestWhatDoesNotCrossTheLinkIsNoObstacle(t *testing.T) {
	const hosts = `
hosts:
- {name: a, memory: 256GiB, cpus: 64, link: 10Gbit/s}
- {name: b, memory: 256GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: big, host: a, memory: 64GiB, dirty: 1MiB/s, labels: {pack: "yes"}}
`
	const packs = "policies:\n- {name: pack, selectors: {virtualMachineInstanceSelector: {pack: \"yes\"}}, " +
		"experimental: {compression: zstd}}\n"
	for _, c := range []struct {
		name, more string
		restart    bool
		obstacle   bool
	}{
		{"all of it", "", false, true},
		{"a restart", "", true, false},
		{"compressed", packs, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planned(parse(t, hosts+c.more), "a")
			if c.restart {
				p.Stops = &whatif.Stops{Restart: map[hypervisor.VMID]bool{"default/big": true}}
			}
			if found := len(p.Links(40*time.Second)) > 0; found != c.obstacle {
				t.Errorf("%+v", p.Links(40*time.Second))
			}
		})
	}
}

// Of 100 worlds ten may be late with 90 %, although 1 - 0.9 is less than a tenth.
func TestAsManyWorldsMayBeLateAsTheConfidenceSays(t *testing.T) {
	for percent := 50; percent < 100; percent++ {
		g := whatif.Goal{Confidence: float64(percent) / 100, Samples: 100}
		if whatif.Missed(whatif.Trial{InTime: percent, Runs: 100}, g) {
			t.Errorf("%d %%: with as many in time it is given up", percent)
		}
		if !whatif.Missed(whatif.Trial{InTime: percent - 1, Runs: 100}, g) {
			t.Errorf("%d %%: with one less it is not given up", percent)
		}
	}
}

// What keeps a guest from converging is named: the cap of its policy, and not the link.
func TestTheCapOfAPolicyIsNamed(t *testing.T) {
	p := planned(parse(t, `
hosts:
- {name: a, memory: 64GiB, cpus: 16, link: 10Gbit/s}
- {name: b, memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: hot, host: a, memory: 16GiB, dirty: 400MiB/s, labels: {slow: "yes"}}
policies:
- {name: slow, selectors: {virtualMachineInstanceSelector: {slow: "yes"}}, bandwidthPerMigration: 64MiB/s}
`), "a")
	run, err := p.Nominal(context.Background())
	if err != nil || run.Empty >= 0 {
		t.Fatalf("%+v, %v", run, err)
	}
	stuck, err := p.Stuck(context.Background(), run)
	const why = ", 64MiB/s can be sent"
	if err != nil || len(stuck) != 1 || !strings.HasSuffix(stuck[0].Text, why) {
		t.Errorf("%+v, %v, want %s", stuck, err, why)
	}
}

func TestOrders(t *testing.T) {
	p := planned(parse(t, `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 32}
vms:
- {name: small, host: n1, memory: 2GiB}
- {name: large, host: n1, memory: 8GiB}
- {name: endless, host: n1, memory: 4GiB}
- {name: disks, host: n1, memory: 1GiB, hardware: {disks: [{name: d, size: 9GiB}]}}
`), "n1")
	solos := map[hypervisor.VMID]whatif.MoveResult{"default/small": {Done: true, Took: time.Hour},
		"default/large": {Done: true, Took: time.Minute}, "default/endless": {},
		"default/disks": {Done: true, Took: time.Second}}
	for order, want := range map[whatif.Order]string{
		whatif.LargestFirst: "default/disks default/large default/endless default/small",
		whatif.LongestFirst: "default/endless default/small default/large default/disks",
	} {
		settings := p.Present()
		settings.Order = order
		var got []string
		for _, m := range p.With(settings, solos).Waves[0] {
			got = append(got, string(m.VM))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", order, got, want)
		}
	}
}

func TestObstacles(t *testing.T) {
	testutil.Unraced(t)
	const hosts = `
hosts:
- {name: a, memory: 256GiB, cpus: 64, link: 10Gbit/s}
- {name: b, memory: 256GiB, cpus: 64, link: 10Gbit/s}
vms:
`
	tests := []struct{ name, text, want string }{
		{"a VM that takes too long alone",
			hosts + `- {name: large, host: a, memory: 192GiB, class: idle}`, "default/large takes"},
		{"a link that carries too much",
			hosts + `- {name: "v[1-9]", host: a, memory: 24GiB, class: idle}`,
			"the link of a takes"},
		{"a link that carries too much of disks",
			hosts + `- {name: "v[1-9]", host: a, memory: 1GiB, class: idle, ` +
				`hardware: {disks: [{name: d, size: 23GiB}]}}`, "the link of a takes"},
		{"a VM that does not converge",
			hosts + `- {name: busy, host: a, memory: 8GiB, dirty: 4GiB/s, workingSet: 6GiB}`,
			"default/busy does not converge even alone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := search(t, tt.text, time.Minute)
			if s.Found != nil || len(s.Obstacles) == 0 ||
				!strings.Contains(s.Obstacles[0].Text, tt.want) {
				t.Errorf("%+v", s)
			}
		})
	}
}
