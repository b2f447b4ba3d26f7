package simtest_test

import (
	"errors"
	"fmt"
	"math"
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
)

// Two VMs leave a host of three.
const leaving = "hosts n1 n2 n3\nvms web@n1 db@n1\nscript drain n1\n"

// upTo explores so many states with one fault of some kinds.
func upTo(states int, faults simtest.ExploreFault) simtest.Option {
	return simtest.Bounds(simtest.ExploreConfig{Faults: faults, Budget: 1, Odd: 1, States: states})
}

// few are enough for what these tests look for.
var few = upTo(1500, simtest.EveryFault)

func TestASoundPolicyIsExplored(t *testing.T) {
	asked := 0
	simtest.Explore(t, leaving, few, simtest.Transcript(t.TempDir()),
		simtest.Evacuation("sound", policy{compare: func(a, b evacuation.EvacuatingVM) int {
			asked++
			return strings.Compare(string(a.VM), string(b.VM))
		}}))
	if asked < 50 {
		t.Errorf("the policy was asked %d times: it was not plugged in", asked)
	}
}

// Each small scene is a test of its own, whose name says where something goes wrong.
func TestSmallScenesAreExplored(t *testing.T) {
	wrong := map[bool]int{}
	for name, scene := range simtest.Scenes(2, 2) {
		r := &recorder{name: "TestMine/" + name}
		simtest.Explore(r, scene, upTo(60, simtest.EveryFault), simtest.Transcript(t.TempDir()),
			simtest.Everywhere("web stays at home", func(w simtest.Observation) error {
				if web := w.VM("web"); web != nil && web.Host != "n1" {
					return fmt.Errorf("web is on %s", web.Host)
				}
				return nil
			}))
		if len(r.said) > 1 || len(r.said) == 1 && !strings.Contains(r.said[0], "web is on n2") {
			t.Errorf("%s: it says: %q", name, r.said)
		}
		wrong[len(r.said) == 1]++
	}
	if wrong[true] < 20 || wrong[true]+wrong[false] != 60 {
		t.Errorf("web left home in %d of %d scenes", wrong[true], wrong[true]+wrong[false])
	}
}

// What goes wrong is named, written, and played first from then on, until it is mended.
func TestExploredMistakesAreReportedByName(t *testing.T) {
	testutil.Unraced(t)
	n := 0
	for _, row := range []struct {
		name   string
		option simtest.Option
		says   string
	}{
		{"a retry that panics", simtest.Retry("mine",
			func(_ migration.ID, all []migration.Attempt) time.Time {
				return all[len(all)].FailedAt
			}), "mine panics: runtime error: index out of range"},
		{"a limit that panics", simtest.Evacuation("mine", policy{
			open: func(_ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
				return others[7].Memory > 0
			}}), "mine.Admit panics"},
		{"an order by the weather", simtest.Evacuation("mine", policy{
			compare: func(a, b evacuation.EvacuatingVM) int { n++; return n%3 - 1 }}),
			"mine.Compare answers differently when asked the same again"},
		{"post-copy at any price", simtest.Convergence("mine", func(_ convergence.Config,
			s convergence.State, _ hypervisor.Progress, _ time.Time) (convergence.State,
			convergence.Decision) {
			return s, convergence.Decision{Action: convergence.StartPostCopy}
		}), "mine asks for what is not allowed"},
		{"a weigher that is no number", simtest.Weigher(placement.Weigher{Name: "mine", Multiplier: 1,
			Of: func(*placement.VM, *placement.Host, placement.Options) float64 {
				return math.NaN()
			}}), "weigher mine answers nonsense"},
		{"a retry without a guard", simtest.Configure(func(c *sim.Config) {
			c.Controller.Migration.Retry = func(_ migration.ID, all []migration.Attempt) time.Time {
				return all[len(all)].FailedAt
			}
		}), "no-panic: runtime error: index out of range"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir := &recorder{name: "TestMine"}, simtest.Transcript(t.TempDir())
			simtest.Explore(r, leaving, few, dir, row.option)
			if len(r.said) != 1 || !strings.Contains(r.said[0], row.says) ||
				!strings.Contains(r.said[0], "\n"+leaving) {
				t.Fatalf("want %q, it says: %q", row.says, r.said)
			}
			failing := strings.Contains(row.name, "retry") // something must go wrong before
			if failing && !strings.Contains(r.said[0], "\n# operator\n# look controller\n") {
				t.Errorf("there is no way to it: %q", r.said)
			}
			again := &recorder{name: "TestMine"}
			simtest.Explore(again, leaving, few, dir, row.option)
			if len(again.said) != 1 || !strings.Contains(again.said[0], "on the way of") ||
				!strings.Contains(again.said[0], row.says) {
				t.Errorf("played again it says: %q", again.said)
			}
			mended := &recorder{name: "TestMine"}
			simtest.Explore(mended, leaving, upTo(50, simtest.EveryFault), dir)
			if len(mended.said) > 0 {
				t.Errorf("mended it says: %q", mended.said)
			}
		})
	}
}

func TestADecisionThatDoesNotReturnIsNamed(t *testing.T) {
	r, end := &recorder{name: "TestMine"}, make(chan bool)
	t.Cleanup(func() { close(end) })
	simtest.Explore(r, leaving, few, simtest.Transcript(t.TempDir()),
		simtest.DecisionTimeout(200*time.Millisecond), simtest.Evacuation("mine", policy{
			open: func(evacuation.EvacuatingVM, []evacuation.EvacuatingVM) bool { return <-end }}))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "mine.Admit does not return") {
		t.Errorf("it says: %q", r.said)
	}
}

// The scene's own limits are there for a configuration to change.
func TestAConfigurationIsExploredAsItIs(t *testing.T) {
	limits, asked := 0, 0
	simtest.Explore(t, "hosts n1 n2\nvms web@n1 db@n1\nper-source 1\nscript drain n1\n",
		upTo(100, simtest.EveryFault),
		simtest.Transcript(t.TempDir()), simtest.Configure(func(c *sim.Config) {
			limits = c.Controller.Cluster.ParallelOutboundMigrationsPerNode
			c.Controller.Placement.Filters = []placement.Filter{{Name: "anywhere",
				Refuses: func(*placement.VM, *placement.Host, placement.Options) bool {
					asked++
					return false
				}}}
		}))
	if limits != 1 || asked == 0 {
		t.Errorf("the scene allows %d at once from a host, want 1; the filter was asked %d times",
			limits, asked)
	}
}

// An invariant of one's own is checked at every step, and what leads to the first violation is
// a way that can be played.
func TestAnInvariantOfOnesOwnIsExplored(t *testing.T) {
	together := simtest.Everywhere("never-together", func(w simtest.Observation) error {
		web, db := w.VM("web"), w.VM("db")
		if web != nil && db != nil && web.Host == db.Host && web.Host != "n1" {
			return fmt.Errorf("both are on %s", web.Host)
		}
		return nil
	})
	r, dir := &recorder{name: "TestMine"}, simtest.Transcript(t.TempDir())
	simtest.Explore(r, leaving, few, dir, together)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "never-together: both are on n") {
		t.Fatalf("it says: %q", r.said)
	}
	apart := simtest.Filter(placement.Filter{Name: "apart",
		Refuses: func(vm *placement.VM, h *placement.Host, _ placement.Options) bool {
			return (vm.ID == "web") != (h.Name == "n2") && h.Name != "n1"
		},
		Explain: func(*placement.VM, *placement.Host, placement.Options) (string, string) {
			return "a host of its own", "the other's"
		}})
	// Who rebuilds VMs of dead hosts is not asked for a place by the exploration.
	alive := upTo(300, simtest.EveryFault&^simtest.Power)
	r = &recorder{name: "TestMine"}
	if simtest.Explore(r, leaving, alive, dir, together, apart); len(r.said) > 0 {
		t.Errorf("with a filter that keeps them apart it says: %q", r.said)
	}
}

func TestAnInvariantThatPanicsIsNamed(t *testing.T) {
	r := &recorder{name: "TestMine"}
	simtest.Explore(r, leaving, few, simtest.Transcript(t.TempDir()),
		simtest.Everywhere("mine", func(w simtest.Observation) error {
			return errors.New(string(w.VM("unknown").Host))
		}))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "mine: it panics: runtime error") {
		t.Errorf("it says: %q", r.said)
	}
}

// What has no guard, and decides by more than its arguments, is found out when it is played
// again.
func TestAMoodIsNamed(t *testing.T) {
	r, asked := &recorder{name: "TestMine"}, 0
	simtest.Explore(r, leaving, few, simtest.Transcript(t.TempDir()),
		simtest.Configure(func(c *sim.Config) {
			c.Agent.Converge = func(convergence.Config, convergence.State, hypervisor.Progress,
				time.Time) (s convergence.State, v convergence.Decision) {
				if asked++; asked == 20 {
					panic("enough for today")
				}
				return s, v
			}
		}))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "by more than its arguments") {
		t.Errorf("it says: %q", r.said)
	}
}

func TestScenesAndTranscriptsThatMakeNoSense(t *testing.T) {
	r, dir := &recorder{name: "TestMine"}, t.TempDir()
	simtest.Explore(r, "hosts n1\nguests web@n1\n")
	if len(r.said) != 1 || !strings.Contains(r.said[0], `line "guests web@n1"`) {
		t.Errorf("it says: %q", r.said)
	}
	file := filepath.Join(dir, "simtest", "TestMine", "old.txt")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("hosts n1\nvms web@n1\n\nsing\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r = &recorder{name: "TestMine"}
	simtest.Explore(r, leaving, few, simtest.Transcript(dir))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "old.txt") {
		t.Errorf("it says: %q", r.said)
	}
}
