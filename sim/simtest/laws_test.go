package simtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
	"github.com/godwit-vm/godwit/store"
)

// restless wants to be woken after so long, for ever.
type restless time.Duration

func (r restless) Reconcile(_ context.Context, now time.Time) (time.Time, error) {
	return now.Add(time.Duration(r)), nil
}

// wakes lets a process of every host be restless.
func wakes(every time.Duration) simtest.Option {
	return simtest.Configure(func(c *sim.Config) {
		c.Beside = func(*sim.World, hypervisor.HostName, int, store.Store) store.Participant {
			return restless(every)
		}
	})
}

// refusing is a filter that refuses some hosts.
func refusing(refuses func(*placement.Host) bool) simtest.Option {
	return simtest.Filter(placement.Filter{Name: "mine",
		Refuses: func(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
			return refuses(h)
		},
		Explain: func(*placement.VM, *placement.Host, placement.Options) (string, string) {
			return "another host", "this one"
		}})
}

// aborting gives every transfer up in its first pass.
func aborting(_ convergence.Config, s convergence.State, _ hypervisor.Progress, _ time.Time) (
	convergence.State, convergence.Decision) {
	return s, convergence.Decision{Action: convergence.Abort, Why: convergence.Stalled}
}

func TestTheLawsFindWhatIsNotWrongAtAnyMoment(t *testing.T) {
	testutil.Unraced(t)
	now := simtest.Retry("now", func(migration.ID, []migration.Attempt) time.Time {
		return time.Time{}
	})
	later := simtest.Retry("next year",
		func(self migration.ID, attempts []migration.Attempt) time.Time {
			for _, a := range attempts {
				if a.ID != self && a.Phase == migration.Failed {
					return a.FailedAt.AddDate(1, 0, 0)
				}
			}
			return time.Time{}
		})
	calm := simtest.Calm()
	storm := simtest.Convergence("aborting", aborting)
	for _, row := range []struct {
		name    string
		in      simtest.Generator
		options []simtest.Option
		says    string // "" is that it holds
	}{
		{"godwit's own decisions in calm worlds", calm, nil, ""},
		{"godwit's own decisions where things break", simtest.Turmoil(), nil, ""},
		{"a filter that refuses every host", calm,
			[]simtest.Option{refusing(func(*placement.Host) bool { return true })},
			"drains-end, at"},
		{"a filter that refuses every host, on purpose", calm,
			[]simtest.Option{refusing(func(*placement.Host) bool { return true }),
				simtest.Without(simtest.DrainsEnd)}, ""},
		{"a filter that refuses no host", calm,
			[]simtest.Option{refusing(func(*placement.Host) bool { return false })}, ""},
		{"a filter that refuses every host where there is no room anyway",
			simtest.Of(simtest.Cramped(simtest.Small), simtest.Converging(), simtest.Drain()),
			[]simtest.Option{refusing(func(*placement.Host) bool { return true })}, ""},
		{"a retry of now where every transfer is given up", calm,
			[]simtest.Option{now, storm, simtest.Without(simtest.DrainsEnd)},
			"work-is-bounded, at"},
		{"godwit's own retry where every transfer is given up", calm,
			[]simtest.Option{storm, simtest.Without(simtest.DrainsEnd)}, ""},
		{"a retry of next year where every transfer is given up", calm,
			[]simtest.Option{later, storm}, "drains-end, at"},
		{"a process that wants to be woken now, for ever", calm, []simtest.Option{wakes(0)},
			"time-advances, at"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{name: "TestMine"}
			simtest.Check(r, row.in, append(row.options, simtest.Transcript(t.TempDir()),
				simtest.Runs(20))...)
			said := strings.Join(r.said, "\n")
			if (row.says == "") != (said == "") || !strings.Contains(said, row.says) {
				t.Fatalf("want %q, got %q", row.says, said)
			}
			t.Log(said)
		})
	}
}

// text generates the one world that a text describes.
func text(t *testing.T, scenario string) simtest.Generator {
	parsed, err := simtest.Parse("world", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	return simtest.Of(simtest.Part{Name: "of a text", Add: func(m *simtest.Builder) { m.World = parsed.Clone() }})
}

// A migration that does not end, because something holds its VM, excuses a VM that needs its place, and no
// other one.
func TestAHeldVMExcusesThoseThatNeedItsPlace(t *testing.T) {
	const world = `
hosts:
- {name: n1, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n3, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n4, memory: 64GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: held, host: n1, memory: 8GiB, class: idle}
- {name: left, host: %s, memory: 1GiB, class: idle}
limits: {perCluster: %d, perSource: 1}
events:
- 0s hold held cpu
- 0s migrate held to=n4
- 10s drain %[1]s
`
	stuck := simtest.Filter(placement.Filter{Name: "mine",
		Refuses: func(v *placement.VM, _ *placement.Host, _ placement.Options) bool { return v.ID != "default/held" },
		Explain: func(*placement.VM, *placement.Host, placement.Options) (string, string) {
			return "the other VM", "this one"
		}})
	for _, row := range []struct {
		from  string
		limit int
		found bool
	}{{"n1", 2, false}, {"n2", 1, false}, {"n2", 2, true}} {
		r := &recorder{name: "TestMine"}
		simtest.Check(r, text(t, fmt.Sprintf(world, row.from, row.limit)), stuck, simtest.Transcript(t.TempDir()),
			simtest.Runs(1))
		said := strings.Join(r.said, "\n")
		if found := strings.Contains(said, "drains-end, at"); found != row.found || !found && said != "" {
			t.Errorf("a VM on %s, limit %d: want it found %t, got %q", row.from, row.limit, row.found, said)
		}
	}
}

// A world whose events never end, although time passes, would be played for thirty days of
// virtual time: hours by the clock on the wall.
func TestATestThatCannotEndSaysSoWithinItsBudget(t *testing.T) {
	testutil.Unraced(t)
	r, began := &recorder{name: "TestMine"}, time.Now()
	busy := simtest.Configure(func(c *sim.Config) { c.Quiet = 1000 * time.Hour })
	simtest.Check(r, simtest.Calm(), wakes(time.Millisecond), busy,
		simtest.Transcript(t.TempDir()), simtest.Within(500*time.Millisecond))
	said := strings.Join(r.said, "\n")
	if !strings.Contains(said, "all-end, at") || !strings.Contains(said, "it has not come to an end") {
		t.Errorf("it says %q", said)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("after %v", took)
	}
	t.Log(said)
}

// byName lets VMs leave by name, two at once.
type byName struct{}

func (byName) Compare(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	return strings.Compare(string(a.VM), string(b.VM))
}

func (byName) Admit(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
	return len(others) < 2
}

// A VM that is held before its migration begins stays, and one whose migration has begun goes: the order
// decides which it is, and no order is wrong for that.
func TestAVMThatIsHeldMayStayOnADrainedHost(t *testing.T) {
	dir := t.TempDir()
	world := `seed: 1
hosts:
- {name: n3, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n4, memory: 64GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v4, host: n4, memory: 1GiB, dirty: 2GiB/s, workingSet: 768MiB}
- {name: v5, host: n4, memory: 6GiB}
events:
- 0s drain n4
- 1s hold v5 utility
`
	kept := filepath.Join(dir, "simtest", "TestMine")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "held.yaml"), []byte(world), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &recorder{name: "TestMine"}
	simtest.Check(r, simtest.Calm(), simtest.Evacuation("by name", byName{}), simtest.Transcript(dir), simtest.Runs(1))
	if len(r.said) > 0 {
		t.Errorf("said of it: %q", r.said)
	}
}
