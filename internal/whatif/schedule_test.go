package whatif_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

// drawFleet draws a fleet whose room is short, with rules.
func drawFleet(t *rapid.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "onUnmovable: %s\n", rapid.SampledFrom([]string{"Keep", "ShutDown",
		"Restart"}).Draw(t, "on unmovable"))
	b.WriteString("groups: {g: {policy: anti-affinity}, one: {policy: affinity}}\nhosts:\n")
	hosts := rapid.IntRange(3, 4).Draw(t, "hosts")
	for i := range hosts {
		fmt.Fprintf(&b, "- {name: n%d, memory: %dGiB, cpus: 32, rack: r%d, disk: 64GiB}\n", i,
			rapid.IntRange(8, 14).Draw(t, "memory"), i%2)
	}
	b.WriteString("vms:\n")
	for i := range rapid.IntRange(1, 6).Draw(t, "VMs") {
		fmt.Fprintf(&b, "- {name: v%d, host: n%d, memory: %dGiB, class: idle%s}\n", i, i%hosts,
			rapid.IntRange(1, 4).Draw(t, "needs"), rapid.SampledFrom([]string{"", "",
				", hardware: {disks: [{name: d, size: 9GiB}]}", ", apart: x",
				", nodeSelector: {rack: r1}", ", groups: g",
				", groups: one", ", groups: one", ", strategy: None",
				", strategy: LiveMigrateIfPossible, whyNot: it has a GPU"}).Draw(t, "rule"))
	}
	return b.String()
}

// TestMovesAreWeighedAtTheSpeedOfTheirLinks: what a plan weighs against a reboot is not 10 Gbit/s everywhere.
func TestMovesAreWeighedAtTheSpeedOfTheirLinks(t *testing.T) {
	for _, tt := range []struct {
		link, more string
		want       time.Duration
	}{
		{"10Gbit/s", "", 6872*time.Millisecond + 2*time.Second},
		{"1Gbit/s", "", 68720*time.Millisecond + 2*time.Second},
		{"100Gbit/s", "", 688*time.Millisecond + 2*time.Second},
		{"100Gbit/s", "config: {bandwidthPerMigration: 128MiB/s}", 64*time.Second + 2*time.Second},
	} {
		s := parse(t, fmt.Sprintf(`
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 8, link: %s}]
vms: [{name: a, host: n1, memory: 8GiB}]
limits: {perCluster: 1}
%s
`, tt.link, tt.more))
		if got := whatif.Each(s); (got - tt.want).Abs() > 2*time.Millisecond {
			t.Errorf("%s %s: %v, want %v", tt.link, tt.more, got, tt.want)
		}
	}
}

// TestRotaPlansAreCarriedOut: whatever the fleet and the plan, the simulator carries out every
// move of every batch and of the way home with every invariant kept, in no less time than
// the bound.
func TestRotaPlansAreCarriedOut(t *testing.T) {
	testutil.Unraced(t)
	moves, home := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := parse(t, drawFleet(t))
		d := plan.Maintain(s.Fleet, s.Hosts(), s.Controller.Evacuation)
		r := &plan.Request{Fleet: d.Fleet, Hosts: s.Hosts(),
			Keep: rapid.IntRange(0, 1).Draw(t, "keep"), Service: time.Minute, Each: whatif.Each(s)}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		a := plan.Maintenance(r)
		back := plan.PlanReturn(a.After, r.Fleet)
		back.Unfold(d.Groups)
		a.Unfold(d.Groups)
		moves, home = moves+a.Moves, home+back.Moves
		var waves []plan.Wave
		for _, b := range a.Batches {
			waves = append(waves, b.Waves...)
		}
		stops := whatif.StopsOf(&d, s, waves, s.Controller.Evacuation.Terms)
		times, err := whatif.PlaySchedule(context.Background(), s, &a, &back, time.Minute, stops)
		if err != nil {
			t.Fatal(err)
		}
		if len(times.Violations) > 0 {
			t.Fatal(times.Violations)
		}
		last := 0.0
		for i, batch := range append(slices.Clone(times.Batches), *times.Back) {
			if len(batch.Stay) > 0 || *batch.BeginsSeconds != last ||
				*batch.MovedSeconds-*batch.BeginsSeconds < batch.BoundSeconds {
				t.Fatalf("batch %d: %+v", i+1, batch)
			}
			last = *batch.BackSeconds
		}
		if *times.EndsSeconds != last || last < times.BoundSeconds {
			t.Fatalf("%+v", times)
		}
	})
	t.Logf("%d moves, %d home", moves, home)
}

// TestAPlanDoesNotEndWithItsScenario: until is how long the scenario's own events are played.
func TestAPlanDoesNotEndWithItsScenario(t *testing.T) {
	s := parse(t, `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}
vms:
- {name: calm, host: n1, memory: 2GiB, class: idle}
until: 1s
`)
	a := plan.Maintenance(&plan.Request{Fleet: plan.FromInventory(s.Fleet),
		Hosts: []hypervisor.HostName{"n1"}})
	times, err := whatif.PlaySchedule(context.Background(), s, &a, nil, 0, nil)
	if err != nil || times.EndsSeconds == nil || *times.EndsSeconds < 5 {
		t.Errorf("%+v, %v", times, err)
	}
	f, err := whatif.Ask(context.Background(), s, whatif.Question{Hosts: a.Batches[0].Hosts})
	if err != nil || f.EmptySeconds == nil || !f.Waves[0][0].Converges {
		t.Errorf("%+v, %v", f, err)
	}
}

const stuck = `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}
vms:
- {name: calm, host: n1, memory: 2GiB, class: idle}
- {name: hot, host: n1, memory: 16GiB, dirty: 900MiB/s}
`

// TestWhoDoesNotConvergeStays: a VM that the simulator cannot move is named, its host is never
// empty, and nothing that comes later ever begins; who else stands in the way is told, too.
func TestWhoDoesNotConvergeStays(t *testing.T) {
	s := parse(t, stuck)
	r := &plan.Request{Fleet: plan.FromInventory(s.Fleet), Hosts: []hypervisor.HostName{"n1"}}
	a := plan.Maintenance(r)
	back := plan.PlanReturn(a.After, r.Fleet)
	times, err := whatif.PlaySchedule(context.Background(), s, &a, &back, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := []hypervisor.VMID{"default/hot"}
	out, home := times.Batches[0], times.Back
	if len(times.Batches) != 1 || !slices.Equal(out.Stay, stay) || !slices.Equal(home.Stay, stay) {
		t.Errorf("%+v", times)
	}
	if *out.BeginsSeconds != 0 || out.MovedSeconds != nil || out.BackSeconds != nil ||
		home.BeginsSeconds != nil || home.MovedSeconds != nil || times.EndsSeconds != nil {
		t.Errorf("a time that never comes is told: %+v", times)
	}
	why := "default/hot: will not converge: it dirties "
	if len(out.Obstacles) != 1 || !strings.HasPrefix(out.Obstacles[0].Text, why) {
		t.Errorf("in the way: %+v, want %s", out.Obstacles, why)
	}
}

func TestPlayEndsWhenItIsTold(t *testing.T) {
	s := parse(t, stuck)
	a := plan.Maintenance(&plan.Request{Fleet: plan.FromInventory(s.Fleet),
		Hosts: []hypervisor.HostName{"n1"}})
	ctx, cancel := context.WithCancelCause(context.Background())
	told := errors.New("told")
	cancel(told)
	if _, err := whatif.PlaySchedule(ctx, s, &a, nil, 0, nil); !errors.Is(err, told) {
		t.Errorf("%v, want %v", err, told)
	}
}

func TestTheBoundOfMovesWhoseMemoryIsCompressedIsLower(t *testing.T) {
	const fleet = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}]
vms: [{name: a, host: n1, memory: 8GiB, cpus: 2, class: idle, labels: {x: y}}]
`
	moves := []plan.Wave{{{VM: "default/a", Source: "n1", Target: "n2"}}}
	plain := whatif.Bound(parse(t, fleet), moves, nil)
	packed := whatif.Bound(parse(t, fleet+"policies: [{name: p, selectors: {}, experimental: {compression: zstd}}]\n"),
		moves, nil)
	if plain <= 0 || packed < plain/2-time.Millisecond || packed > plain/2+time.Millisecond {
		t.Errorf("at least %v, and %v if half remains", plain, packed)
	}
}
