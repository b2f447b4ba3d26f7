package simtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
)

// An Option plugs a decision in, adds an invariant, or says how long to look. Options are
// applied in their order.
type Option func(*settings)

// settings are all options together.
type settings struct {
	plugs           []func(*sim.Config, *PolicyCheck)
	names           []string // of what is plugged in
	missing         []string // names of what is nil
	always          []invariant
	atRest          []invariant
	promises        []promise
	common          []judgement     // of Everywhere
	bounds          []ExploreConfig // of Explore
	seed            uint64          // of Compare
	measures        []measure       // of Compare, beside its own
	runs            int             // 0 is as many as rapid makes
	span            time.Duration   // 0 is as long as it takes
	decisionTimeout time.Duration
	budget          time.Duration // of one world, by the clock on the wall; 0 is none
	attempts        int           // of a VM, within attemptSpan
	without         []string      // laws that are left out
	dir             string
}

// invariant is one that was added.
type invariant struct {
	name string
	f    func(*sim.World) error
}

// promise is an invariant that comes to hold again.
type promise struct {
	invariant
	within time.Duration
}

// gather applies options. What is nil ends the test: it was forgotten.
func gather(t testing.TB, options []Option) *settings {
	t.Helper()
	s := &settings{decisionTimeout: 10 * time.Second, dir: "testdata", attempts: 60}
	for _, o := range options {
		o(s)
	}
	s.budget = s.span / 2
	if d, has := t.(interface{ Deadline() (time.Time, bool) }); has {
		if end, is := d.Deadline(); is && (s.budget == 0 || s.budget > time.Until(end)/2) {
			s.budget = time.Until(end) / 2
		}
	}
	if len(s.missing) > 0 {
		t.Fatalf("simtest: nil was given for %s: give a function or a policy, or leave the "+
			"option out for godwit's own", strings.Join(s.missing, ", "))
	}
	return s
}

// configure plugs the decisions into a configuration, guarded by the policyCheck.
func (s *settings) configure(c *sim.Config, b *PolicyCheck) {
	for _, plug := range s.plugs {
		plug(c, b)
	}
}

// plug plugs something in. The name is whose it is; missing says that it is nil.
func plug(name string, missing bool, f func(*sim.Config, *PolicyCheck)) Option {
	return func(s *settings) {
		s.require(name, missing)
		s.plugs, s.names = append(s.plugs, f), append(s.names, name)
	}
}

// require notes what is nil, to be told at once and by its name.
func (s *settings) require(name string, missing bool) {
	if missing {
		s.missing = append(s.missing, name)
	}
}

// Evacuation lets a policy say in which order VMs leave a host, and how many at once. The name
// is for reports.
func Evacuation(name string, p evacuation.Policy) Option {
	return plug(name, p == nil, func(c *sim.Config, b *PolicyCheck) {
		c.Controller.Evacuation.Policy = CheckEvacuation(b, name, p)
	})
}

// Convergence lets a policy decide how running transfers are brought to an end.
func Convergence(name string, p convergence.Policy) Option {
	return plug(name, p == nil, func(c *sim.Config, b *PolicyCheck) {
		c.Agent.Converge = CheckConvergence(b, name, p)
	})
}

// Filter adds a condition on targets, or replaces the one with the same name.
func Filter(f placement.Filter) Option {
	return plug("filter "+f.Name, f.Refuses == nil, func(c *sim.Config, b *PolicyCheck) {
		all := c.Controller.Placement.Filters
		if all == nil {
			all = placement.AllFilters()
		}
		c.Controller.Placement.Filters = put(all, CheckFilter(b, f),
			func(f placement.Filter) string { return f.Name })
	})
}

// Weigher adds a preference among targets, or replaces the one with the same name.
func Weigher(w placement.Weigher) Option {
	return plug("weigher "+w.Name, w.Of == nil, func(c *sim.Config, b *PolicyCheck) {
		all := c.Controller.Placement.Weighers
		if all == nil {
			all = placement.Spread()
		}
		c.Controller.Placement.Weighers = put(all, CheckWeigher(b, w),
			func(w placement.Weigher) string { return w.Name })
	})
}

// Retry lets a policy decide when what failed is tried again.
func Retry(name string, r migration.Retry) Option {
	return plug(name, r == nil, func(c *sim.Config, b *PolicyCheck) {
		c.Controller.Migration.Retry = CheckRetry(b, name, r)
	})
}

// put returns all with one more, or with the one of its name replaced.
func put[T any](all []T, one T, name func(T) string) []T {
	all = slices.Clone(all)
	at := slices.IndexFunc(all, func(other T) bool { return name(other) == name(one) })
	if at < 0 {
		return append(all, one)
	}
	all[at] = one
	return all
}

// Configure changes the configuration of every world. It is called for each anew.
func Configure(f func(*sim.Config)) Option {
	return plug("Configure", f == nil, func(c *sim.Config, _ *PolicyCheck) { f(c) })
}

// Always adds an invariant that is checked after every event.
func Always(name string, f func(*sim.World) error) Option {
	return func(s *settings) {
		s.require(name, f == nil)
		s.always = append(s.always, invariant{name, f})
	}
}

// AtRest adds an invariant that is checked when nothing happens any more, long after the last
// fault. A world that never rests is not asked: there the same migrations fail for ever.
func AtRest(name string, f func(*sim.World) error) Option {
	return func(s *settings) {
		s.require(name, f == nil)
		s.atRest = append(s.atRest, invariant{name, f})
	}
}

// Eventually adds an invariant that may fail to hold for a while, but not for longer than a
// virtual time at a stretch, and not when nothing happens any more, or only the same failures
// again and again. It is checked after every event.
func Eventually(name string, within time.Duration, f func(*sim.World) error) Option {
	return func(s *settings) {
		s.require(name, f == nil)
		s.promises = append(s.promises, promise{invariant{name, f}, within})
	}
}

// Runs says in how many worlds to look. Default: rapid's, 100 or -rapid.checks; a fifth of
// that with -short.
func Runs(n int) Option { return func(s *settings) { s.runs = n } }

// Within says for how long to look at most, by the clock on the wall. Without [Runs] it is also
// how long to look at least. Default: until all worlds have been played.
func Within(span time.Duration) Option { return func(s *settings) { s.span = span } }

// DecisionTimeout is how long a decision may take, by the clock on the wall, before it is said not
// to return. Default: 10s.
func DecisionTimeout(d time.Duration) Option { return func(s *settings) { s.decisionTimeout = d } }

// Transcript says below which folder transcripts are kept. Default: testdata.
func Transcript(dir string) Option { return func(s *settings) { s.dir = dir } }
