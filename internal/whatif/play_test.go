package whatif_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse reads a scenario.
func parse(t interface{ Fatal(...any) }, text string) *config.Scenario {
	s, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// planned plans how hosts are emptied.
func planned(s *config.Scenario, hosts ...hypervisor.HostName) *whatif.Play {
	a := plan.Drain(plan.FromInventory(s.Fleet), hosts)
	return &whatif.Play{Scenario: s, Hosts: hosts, Waves: a.Waves}
}

// TestPlansAreCarriedOut: whatever fleet and whatever plan, the simulator carries it out
// move by move, with every invariant kept, and the hosts are empty at the end.
func TestPlansAreCarriedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := parse(t, fleet(t))
		hosts := []hypervisor.HostName{"n0"}
		a := plan.Drain(plan.FromInventory(s.Fleet), hosts)
		p := whatif.Play{Scenario: s, Hosts: hosts, Waves: a.Waves}
		r, err := p.Nominal(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) > 0 {
			t.Fatalf("%+v", r.Violations)
		}
		moved := map[hypervisor.VMID]int{}
		for _, wave := range a.Waves {
			for _, m := range wave {
				moved[m.VM]++
			}
		}
		if r.Empty < 0 || len(r.Results) != len(moved) {
			t.Fatalf("%+v of %+v", r, a)
		}
		for vm, p := range r.Results {
			if !p.Done || p.Attempts != moved[vm] {
				t.Errorf("%s: %+v, planned %d times", vm, p, moved[vm])
			}
		}
	})
}

// fleet draws a fleet whose room is short.
func fleet(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("hosts:\n")
	hosts := rapid.IntRange(2, 4).Draw(t, "hosts")
	for i := range hosts {
		fmt.Fprintf(&b, "- {name: n%d, memory: %dGiB, cpus: 32, labels: {rack: r%d}}\n", i,
			rapid.IntRange(6, 12).Draw(t, "memory"), i%2)
	}
	fmt.Fprintf(&b, "groups: {db: {policy: anti-affinity}}\nlimits: {perCluster: %d, "+
		"perSource: %d, perTarget: %d}\nvms:\n", rapid.IntRange(1, 5).Draw(t, "per cluster"),
		rapid.IntRange(1, 3).Draw(t, "per source"), rapid.IntRange(0, 2).Draw(t, "per target"))
	for i := range rapid.IntRange(1, 7).Draw(t, "VMs") {
		fmt.Fprintf(&b, "- {name: v%d, host: n%d, memory: %dGiB, class: idle%s}\n", i,
			rapid.IntRange(0, hosts-1).Draw(t, "on"), rapid.IntRange(1, 5).Draw(t, "needs"),
			rapid.SampledFrom([]string{"", "", "", ", apart: x", ", groups: db",
				", nodeSelector: {rack: r1}", ", whyNot: a GPU"}).Draw(t, "wish"))
	}
	return b.String()
}

const rack = `
hosts:
- {name: "a[1-2]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
- {name: "b[1-3]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: "web-[1-4]", host: "a[1-2]", memory: 8GiB, class: web}
- {name: db, host: a1, memory: 16GiB, class: idle}
`

func TestNominal(t *testing.T) {
	p := planned(parse(t, rack), "a1", "a2")
	r, err := p.Nominal(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	last := time.Duration(0)
	for vm, result := range r.Results {
		if !result.Done || result.Attempts != 1 || result.Downtime <= 0 || result.Why != "" ||
			result.Busy != result.Took {
			t.Errorf("%s: %+v", vm, result)
		}
		last = max(last, result.Began+result.Took)
	}
	if r.Empty != last || len(r.Results) != 5 || len(r.Violations) > 0 {
		t.Errorf("empty at %v, the last VM had left at %v: %+v", r.Empty, last, r)
	}
}

func TestNothingToMoveIsEmptyAtOnce(t *testing.T) {
	r, err := planned(parse(t, rack), "b1").Nominal(context.Background())
	if err != nil || r.Empty != 0 || len(r.Results) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEventsAreNotPlayed: a scenario's own events and unfinished migrations do not count.
func TestEventsAreNotPlayed(t *testing.T) {
	calm, err := planned(parse(t, rack), "a1").Nominal(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, rack+"events: [\"0s drain b1\", \"1s delete db\"]\n")
	s.Fleet.Migrations = []inventory.Migration{{Spec: migration.Spec{ID: "m", VM: "default/db"}}}
	stormy, err := planned(s, "a1").Nominal(context.Background())
	if diff := cmp.Diff(calm, stormy); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// busy dirties its memory faster than its link carries it.
const busy = `
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: calm, host: n1, memory: 4GiB, class: idle}
- {name: busy, host: n1, memory: 16GiB, dirty: 4GiB/s, workingSet: 12GiB}
`

// TestDisksTakeTime: a VM with 1 TiB on local disks takes what 10 Gbit/s need for it, and is
// not taken for one that is like it in everything else.
func TestDisksTakeTime(t *testing.T) {
	p := planned(parse(t, `
hosts:
- {name: n1, memory: 64GiB, cpus: 32, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: plain, host: n1, memory: 8GiB, class: idle}
- {name: stored, host: n1, memory: 8GiB, class: idle, hardware: {disks: [{name: d, size: 1TiB}]}}
- {name: shared, host: n1, memory: 8GiB, class: idle, `+
		`hardware: {disks: [{name: d, size: 1TiB, path: /shared/d}]}}
`), "n1")
	solos, err := p.Solos(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	copied := hypervisor.TiB.At(10 * hypervisor.Gbit)
	for vm, disks := range map[hypervisor.VMID]time.Duration{"default/plain": 0,
		"default/stored": copied, "default/shared": 0} {
		if s := solos[vm]; !s.Done || s.Took < disks || s.Took > disks+30*time.Second {
			t.Errorf("%s: %+v, its disks need %v", vm, s, disks)
		}
	}
	r, err := p.Nominal(context.Background())
	if err != nil || r.Empty < copied || r.Empty > copied+time.Minute || len(r.Violations) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSoloTellsWhoDoesNotConverge(t *testing.T) {
	p := planned(parse(t, busy), "n1")
	solos, err := p.Solos(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s := solos["default/calm"]; !s.Done || s.Took <= 0 || s.Attempts != 1 {
		t.Errorf("calm: %+v", s)
	}
	if s := solos["default/busy"]; s.Done || s.Why == "" {
		t.Errorf("busy: %+v", s)
	}
	r, err := p.Nominal(context.Background())
	if err != nil || r.Empty >= 0 || !r.Results["default/calm"].Done {
		t.Errorf("%+v, %v", r, err)
	}
}

// VMs of one size are not alike where one crosses a slow up-link of its rack, or one is paused.
func TestSoloTellsWiresAndPausesApart(t *testing.T) {
	p := planned(parse(t, `
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 32, link: 10Gbit/s, rack: a, uplink: 1Gbit/s}
- {name: n3, memory: 64GiB, cpus: 32, link: 10Gbit/s, rack: b, uplink: 1Gbit/s}
vms:
- {name: near, host: n1, memory: 8GiB, class: idle}
- {name: far, host: n1, memory: 8GiB, class: idle}
- {name: paused, host: n1, memory: 9GiB, dirty: 3GiB/s, workingSet: 8GiB, paused: true}
- {name: runs, host: n1, memory: 9GiB, dirty: 3GiB/s, workingSet: 8GiB}
`), "n1")
	p.Waves = []plan.Wave{{{VM: "default/near", Source: "n1", Target: "n2"}, {VM: "default/far", Source: "n1", Target: "n3"},
		{VM: "default/paused", Source: "n1", Target: "n2"}, {VM: "default/runs", Source: "n1", Target: "n2"}}}
	solos, err := p.Solos(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if near, far := solos["default/near"], solos["default/far"]; !near.Done || !far.Done || far.Took < 4*near.Took {
		t.Errorf("in the rack %+v, out of it %+v", near, far)
	}
	if stands, runs := solos["default/paused"], solos["default/runs"]; !stands.Done || runs.Done {
		t.Errorf("paused %+v, running %+v", stands, runs)
	}
}

// tight has room for the large VM when the small one has moved.
const tight = `
hosts:
- {name: "n[1-3]", memory: 8GiB, cpus: 32}
vms:
- {name: large, host: n1, memory: 4GiB, class: idle}
- {name: small, host: n2, memory: 2GiB, class: idle}
- {name: medium, host: n2, memory: 4GiB, class: idle}
- {name: other, host: n3, memory: 5GiB, class: idle}
`

// TestWhatFailsIsTriedAgain: the next wave waits for a move that has failed once.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	p := planned(parse(t, tight+
		"vary: {faults: [\"20x within 1s reset n2 n3\"]}\n"), "n1")
	runs, err := p.Samples(context.Background(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := runs[0]
	if small := r.Results["default/small"]; r.Empty < 0 || !small.Done || small.Attempts != 2 ||
		small.Busy <= small.Took {
		t.Errorf("%+v", r)
	}
}

// TestWhatStaysIsDrained: a move that fails too often is left to the controller, which
// chooses the target itself.
func TestWhatStaysIsDrained(t *testing.T) {
	p := planned(parse(t, rack+"vary: {faults: [\"300x within 60s reset a1 any-host\"]}\n"), "a1")
	runs, err := p.Samples(context.Background(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if db := runs[0].Results["default/db"]; runs[0].Empty < 0 || !db.Done || db.Attempts < 3 {
		t.Errorf("%+v", runs[0])
	}
}

func TestSoloOfNoMove(t *testing.T) {
	_, err := planned(parse(t, busy), "n1").Solo(context.Background(),
		plan.Move{VM: "default/calm", Source: "n1", Target: "n9"})
	if err == nil || !strings.Contains(err.Error(), "is no move") {
		t.Error(err)
	}
}

// TestSamplesFollowFromTheSeed: the same seed gives the same worlds, whichever runs first;
// another seed gives others; and what varies makes them differ.
func TestSamplesFollowFromTheSeed(t *testing.T) {
	p := planned(parse(t, rack+"vary: {dirty: lognormal(0.5), link: \"uniform(0.5, 1)\", faults: "+
		"[\"50% within 20s crash-agent a1 for=10s\"]}\n"), "a1", "a2")
	sample := func(seed uint64) []*whatif.Run {
		runs, err := p.Samples(context.Background(), seed, 6)
		if err != nil {
			t.Fatal(err)
		}
		return runs
	}
	first := sample(7)
	if diff := cmp.Diff(first, sample(7)); diff != "" {
		t.Errorf("the same seed differs (-want +got):\n%s", diff)
	}
	if cmp.Equal(first, sample(8)) {
		t.Error("another seed gives the same")
	}
	times := map[time.Duration]bool{}
	for _, r := range first {
		times[r.Empty] = true
		if r.Empty < 0 || len(r.Violations) > 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(times) != len(first) {
		t.Errorf("only %d different times in %d worlds", len(times), len(first))
	}
}

func TestInterruption(t *testing.T) {
	ctx, stop := context.WithCancelCause(context.Background())
	reason := errors.New("the caller has lost patience")
	stop(reason)
	p := planned(parse(t, rack), "a1")
	if _, err := p.Nominal(ctx); !errors.Is(err, reason) {
		t.Error(err)
	}
	if _, err := p.Samples(ctx, 1, 3); !errors.Is(err, reason) {
		t.Error(err)
	}
}

// A plan may restart a VM twice, to make room meanwhile: the wave after the second restart begins.
func TestAVMThatIsRestartedTwiceDelaysNoWave(t *testing.T) {
	s := parse(t, `
hosts:
- {name: a, memory: 64GiB, cpus: 16}
- {name: b, memory: 64GiB, cpus: 16}
vms:
- {name: gpu, host: a, memory: 4GiB, class: idle, whyNot: it has a GPU}
- {name: web, host: a, memory: 4GiB, class: idle}
`)
	move := func(vm hypervisor.VMID, from, to hypervisor.HostName) plan.Wave {
		return plan.Wave{{VM: vm, Source: from, Target: to}}
	}
	p := &whatif.Play{Scenario: s, Stops: &whatif.Stops{Restart: map[hypervisor.VMID]bool{"default/gpu": true}},
		Waves: []plan.Wave{move("default/gpu", "a", "b"), move("default/gpu", "b", "a"), move("default/web", "a", "b")}}
	run, err := p.Nominal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if gpu, web := run.Results["default/gpu"], run.Results["default/web"]; !gpu.Done || gpu.Attempts != 2 || !web.Done {
		t.Errorf("gpu %+v, web %+v", gpu, web)
	}
}
