package simtest_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
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

// recorder is a test that keeps what is said against it.
type recorder struct {
	testing.TB
	name string
	said []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Name() string        { return r.name }
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// policy is an evacuation policy made of functions.
type policy struct {
	compare func(a, b evacuation.EvacuatingVM) int
	open    func(next evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool
}

func (p policy) Compare(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	if p.compare == nil {
		return 0
	}
	return p.compare(a, b)
}

func (p policy) Admit(_ hypervisor.Bandwidth, next evacuation.EvacuatingVM, o []evacuation.EvacuatingVM) bool {
	return p.open == nil || p.open(next, o)
}

var calls int

// converge makes a convergence policy that answers with something of its own at the third
// look, and as godwit does otherwise.
func converge(how func(convergence.Config, convergence.State, hypervisor.Progress) (
	convergence.State, convergence.Decision)) simtest.Option {
	return simtest.Convergence("mine", func(c convergence.Config, s convergence.State,
		p hypervisor.Progress, now time.Time) (convergence.State, convergence.Decision) {
		if p.Iteration < 2 {
			return convergence.Converge(c, s, p, now)
		}
		return how(c, s, p)
	})
}

func answer(v convergence.Decision) simtest.Option {
	return converge(func(_ convergence.Config, s convergence.State, _ hypervisor.Progress) (
		convergence.State, convergence.Decision) {
		return s, v
	})
}

// A mistake is a decision that is none, and what is said about it.
type mistake struct {
	name   string
	option simtest.Option
	says   string
}

// mistakes are all ways in which a decision is none, but those that do not return.
func mistakes() []mistake {
	return slices.Concat(pacing(), converging(), placing())
}

func pacing() []mistake {
	return []mistake{
		{"an order that panics", simtest.Evacuation("mine", policy{
			compare: func(a, b evacuation.EvacuatingVM) int { panic("no idea") }}),
			"mine.Compare panics, at"},
		{"an order by the weather", simtest.Evacuation("mine", policy{
			compare: func(a, b evacuation.EvacuatingVM) int { calls++; return calls%3 - 1 }}),
			"mine.Compare answers differently when asked the same again, at"},
		{"an order that is none", simtest.Evacuation("mine", policy{
			compare: func(a, b evacuation.EvacuatingVM) int { return -1 }}),
			"mine.Compare answers nonsense, at"},
		{"an order that goes round", simtest.Evacuation("mine", policy{
			compare: func(a, b evacuation.EvacuatingVM) int {
				order := func(l evacuation.EvacuatingVM) int { return int(l.VM[len(l.VM)-1]) % 3 }
				return (order(a)-order(b)+4)%3 - 1
			}}), "mine.Compare answers nonsense, at"},
		{"a limit by the weather", simtest.Evacuation("mine", policy{
			open: func(evacuation.EvacuatingVM, []evacuation.EvacuatingVM) bool {
				calls++
				return calls%2 == 0
			}}), "mine.Admit answers differently when asked the same again, at"},
		{"a limit that tidies up", simtest.Evacuation("mine", policy{
			open: func(_ evacuation.EvacuatingVM, others []evacuation.EvacuatingVM) bool {
				others[0].Memory = 0
				return true
			}}), "mine.Admit writes what it was only shown, at"},
	}
}

func converging() []mistake {
	return []mistake{
		{"post-copy at any price", answer(convergence.Decision{Action: convergence.StartPostCopy}),
			"mine asks for what is not allowed, at"},
		{"a pause at any price", answer(convergence.Decision{Action: convergence.Pause}),
			"mine asks for what is not allowed, at"},
		{"any downtime", answer(convergence.Decision{Action: convergence.SetDowntime,
			Limit: time.Hour}), "mine asks for what is not allowed, at"},
		{"a downtime below zero", answer(convergence.Decision{Action: convergence.SetDowntime,
			Limit: -time.Second}), "mine answers nonsense, at"},
		{"an action that does not exist", answer(convergence.Decision{Action: 77}),
			"mine answers nonsense, at"},
		{"a state that is no number", converge(func(_ convergence.Config, s convergence.State,
			_ hypervisor.Progress) (convergence.State, convergence.Decision) {
			s.Bandwidth = math.NaN()
			return s, convergence.Decision{}
		}), "mine answers nonsense, at"},
		{"a state that is written", converge(func(_ convergence.Config, s convergence.State,
			_ hypervisor.Progress) (convergence.State, convergence.Decision) {
			if len(s.Own) == 0 {
				s.Own = []int64{0}
				return s, convergence.Decision{}
			}
			s.Own[0]++
			return s, convergence.Decision{}
		}), "mine writes what it was only shown, at"},
	}
}

func placing() []mistake {
	return []mistake{
		{"a filter that panics", simtest.Filter(placement.Filter{Name: "mine",
			Refuses: func(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
				return []bool{}[len(h.Name)]
			}}), "filter mine panics, at"},
		{"a filter that writes", simtest.Filter(placement.Filter{Name: "mine",
			Refuses: func(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
				h.Memory++
				return false
			}}), "filter mine writes what it was only shown, at"},
		{"a weigher that is no number", simtest.Weigher(placement.Weigher{Name: "mine", Multiplier: 1,
			Of: func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
				return math.Log(-1)
			}}), "weigher mine answers nonsense, at"},
		{"a weigher that counts", simtest.Weigher(placement.Weigher{Name: "mine", Multiplier: 1,
			Of: func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
				calls++
				return float64(calls)
			}}), "weigher mine answers differently when asked the same again, at"},
		{"a configuration that is another each time", simtest.Configure(func(c *sim.Config) {
			calls++
			c.Controller.Evacuation.Order = evacuation.Order(calls % 2)
		}), "the same world is another one when it is played again, at"},
		{"a retry before it failed", simtest.Retry("mine",
			func(_ migration.ID, all []migration.Attempt) time.Time {
				if len(all) < 2 {
					return time.Time{}
				}
				return all[0].FailedAt.Add(-time.Second)
			}), "mine answers nonsense, at"},
	}
}

func TestDecisionsThatAreNoneAreReportedByName(t *testing.T) {
	testutil.Unraced(t)
	for _, row := range mistakes() {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{name: "TestMine"}
			dir := t.TempDir()
			in := decided
			if strings.Contains(row.name, "failed") {
				in = endless
			}
			simtest.Check(r, in, row.option, simtest.Transcript(dir), simtest.Runs(200))
			if len(r.said) != 1 || !strings.Contains(r.said[0], row.says) {
				t.Fatalf("want %q, got %q", row.says, r.said)
			}
			small(t, dir)
		})
	}
}

// decided is worlds in which every policy is asked: several VMs leave.
var decided = simtest.Of(simtest.Roomy(simtest.Size{MinHosts: 2, MaxHosts: 3, MinVMs: 5, MaxVMs: 8}),
	simtest.Converging(), simtest.Drain())

// endless is worlds in which migrations fail, and are tried again.
var endless = simtest.Of(simtest.Roomy(simtest.Size{MinHosts: 2, MaxHosts: 2, MinVMs: 1, MaxVMs: 1}),
	simtest.Endless(), simtest.Drain())

// eventful is worlds with room for all, where things happen.
var eventful = simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Limits(),
	simtest.Drain(), simtest.Swarm(simtest.Orders(), 0, 3), simtest.Swarm(simtest.Faults(), 0, 3))

// small returns the transcript below a folder, which must be a small one.
func small(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "simtest", "*", "*.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there is not one transcript: %v %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	w, err := simtest.Parse(files[0], text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if n := w.Commands(); n > 15 {
		t.Errorf("%d commands are too many:\n%s", n, text)
	}
	return files[0]
}

// balanced is an invariant that a user might want, and that does not hold.
func balanced(w *sim.World) error {
	for _, host := range w.Hosts() {
		if n := len(w.VMsOn(host)); n > 4 {
			return fmt.Errorf("%s has %d VMs", host, n)
		}
	}
	return nil
}

func TestABrokenInvariantIsFoundShrunkWrittenAndReplayed(t *testing.T) {
	dir := t.TempDir()
	check := func(options ...simtest.Option) []string {
		r := &recorder{name: "TestMine/of mine"}
		simtest.Check(r, eventful, append(options, simtest.Transcript(dir))...)
		return r.said
	}
	broken := check(simtest.Always("balanced", balanced), simtest.Runs(200))
	if len(broken) != 1 || !strings.Contains(broken[0], "balanced, at") {
		t.Fatalf("%q", broken)
	}
	t.Log(broken[0])
	file := small(t, dir)
	again := check(simtest.Always("balanced", balanced), simtest.Runs(200))
	if len(again) != 1 || // and nothing else is looked for
		!strings.Contains(again[0], "in the world of "+file) {
		t.Errorf("it is not played first: %q", again)
	}
	r := &recorder{}
	simtest.Replay(r, file, simtest.Always("balanced", balanced))
	if len(r.said) != 1 {
		t.Errorf("it is not replayed: %q", r.said)
	}
	r = &recorder{}
	if simtest.Replay(r, file); len(r.said) != 0 {
		t.Errorf("what is mended is still broken: %q", r.said)
	}
	if mended := check(simtest.Runs(20)); len(mended) != 0 {
		t.Errorf("what is mended is still broken: %q", mended)
	}
}
