package explore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/godwit-vm/godwit/sim"
)

// A View is what a [Judge] may look at.
type View = sim.InvariantWorld

// ParseScene reads a scene: lines as "hosts n1 n2=1", where n2 has room for one VM, "vms
// web@n1 db@n2,busy", "post-copy", "per-cluster 1", "per-source 1", "per-target 1",
// "claims", "backup", "marks", "forgotten", "second n1 copied" or "second n1 new" and, for what operators do, "script drain n1". The error says which line is wrong.
func ParseScene(text string) (*Scene, error) { return parse(text) }

// Scenes yields the small scenes of 2 hosts or more and 1 VM or more, up to so many of each:
// every way to place VMs on hosts that differs by more than names, at rest and busy, on hosts
// with room for all and for one VM more than the fullest has, under each of the usual orders of
// operators. A text is what [ParseScene] reads, and a name says it in few words.
func Scenes(hosts, vms int) iter.Seq2[string, string] { return small(hosts, vms) }

// Config says what is explored, and how far. A zero field takes the default it names.
type Config struct {
	Scene *Scene // required
	// Faults are the kinds of faults that may happen. Default: none.
	Faults Fault
	// Budget is how many faults may happen on one way. Default: none.
	Budget int
	// Odd bounds the order, as one less: so many steps may be other than the usual one,
	// where the participant that is due looks, the controller first, and time goes on only then. 1 is
	// none, 0 any number. Faults do not count. Few such steps lead far: the number of
	// states grows with the length of the way, and not with a power of it.
	Odd int
	// Depth is how many steps are taken at most. Default: as many as there are.
	Depth int
	// States is after how many states the exploration ends. Default: when there are
	// no more.
	States int
	// Rest is of how many states one is led to rest, where more must hold. Default:
	// 200; below zero is none.
	Rest int
	// Workers is how many worlds are played at once. Default: one for each processor, and one if
	// States is given: which states come first depends on how fast each of several workers is, and an
	// exploration that ends early is to find tomorrow what it has found today.
	Workers int
	// Seed, Runs and Steps are for [Deep]: how many random runs, of how many steps.
	// Default: 1, 100, 400.
	Seed        uint64
	Runs, Steps int
	// Calm is of how many steps in [Deep] one may be any. Default: 2.
	Calm int
}

func (c Config) complete() (Config, error) {
	if c.Scene == nil {
		return c, errors.New("explore: there is no scene")
	}
	if err := c.Scene.check(); err != nil {
		return c, fmt.Errorf("explore: %w", err)
	}
	if c.States > 0 && c.Workers == 0 {
		c.Workers = 1
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&c.Depth, 1 << 30}, {&c.States, 1 << 30}, {&c.Rest, 200},
		{&c.Workers, runtime.GOMAXPROCS(0)}, {&c.Runs, 100}, {&c.Steps, 400}, {&c.Calm, 2}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	return c, nil
}

// Result is what an exploration came to.
type Result struct {
	States      int  // that differ
	Transitions int  // steps that were taken from them, the same state met or not
	Rested      int  // states that were led to rest
	Depth       int  // up to so many steps nothing was left out
	Exhausted   bool // there are no more states
	Violation   *Counterexample
}

// String sums up a result.
func (r *Result) String() string {
	end := ""
	if r.Exhausted {
		end = ", and there are no more"
	}
	return fmt.Sprintf("%d states, %d transitions, depth %d%s; %d led to rest", r.States,
		r.Transitions, r.Depth, end, r.Rested)
}

// Run explores a scene: every state that can be reached, until one violates an invariant,
// the depth or the number of states is reached, or ctx ends. It goes breadth first, so
// that nothing up to [Result.Depth] was left out; with [Config.Odd] depth first, since ways
// are long and narrow then. The error is about the configuration only.
func Run(ctx context.Context, c Config) (*Result, error) {
	s, err := run(ctx, c)
	if err != nil {
		return nil, err
	}
	return &s.result, nil
}

func run(ctx context.Context, c Config) (*search, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	s := &search{config: c, ctx: ctx}
	for range c.Workers {
		s.workers = append(s.workers, newWorker(s))
	}
	frontier := s.begin()
	wide := math.MaxInt
	if c.Odd > 0 {
		wide = 8 * c.Workers // a piece of work for each, and some more
	}
	for len(frontier) > 0 && len(frontier) < wide && s.result.Depth < c.Depth && !s.full() {
		next := s.level(frontier)
		if s.full() {
			break
		}
		frontier = next
		s.result.Depth++
	}
	if len(frontier) >= wide && s.result.Depth < c.Depth {
		s.dive(frontier)
	} else {
		s.result.Exhausted = len(frontier) == 0
	}
	for _, w := range s.workers {
		s.result.Transitions += w.transitions
		s.result.Rested += w.rested
	}
	s.result.States = int(s.met.Load())
	if s.violation != nil {
		s.result.Violation = shorten(c, s.violation.steps)
	}
	return s, nil
}

// dive explores depth first what follows from a frontier.
func (s *search) dive(frontier []int32) {
	s.each(len(frontier), func(w *worker, n int) {
		w.visit(frontier[n])
		w.expand(w.dive)
	})
	if s.result.Exhausted = !s.full() && s.bounded == 0; !s.result.Exhausted {
		s.result.Depth = max(s.result.Depth, s.bounded-1)
		return
	}
	for _, w := range s.workers {
		s.result.Depth = max(s.result.Depth, w.deepest)
	}
}

// step is one thing that happens.
type step = Step

// A node is a state, as the step that led to it from another.
type node struct {
	parent int32
	step   step
}

// search is one exploration.
type search struct {
	config  Config
	ctx     context.Context
	seen    seen
	nodes   []node // written between levels only
	workers []*worker
	result  Result

	met  atomic.Int64 // new states
	stop atomic.Bool  // there is a violation

	mu        sync.Mutex
	violation *way
	bounded   int // the depth at which a dive had to turn round; 0 is nowhere
}

// way is steps that lead to a violation.
type way struct{ steps []step }

func (s *search) full() bool {
	return s.stop.Load() || s.met.Load() >= int64(s.config.States) || s.ctx.Err() != nil
}

// cut notes that what follows from a state at a depth was left out.
func (s *search) cut(depth int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bounded == 0 || depth < s.bounded {
		s.bounded = depth
	}
}

// begin returns where the exploration begins: the scene, and the states on a way
// without faults.
func (s *search) begin() []int32 {
	w := s.workers[0]
	s.nodes = append(s.nodes, node{parent: -1})
	s.seen.add(w.keeper.print())
	frontier := []int32{0}
	for range s.config.Scene.Begin {
		next, ok := w.world.Usual()
		if !ok {
			break
		}
		w.world.apply(next)
		s.seen.add(w.keeper.print())
		s.nodes = append(s.nodes, node{int32(len(s.nodes) - 1), next})
		frontier = append(frontier, int32(len(s.nodes)-1))
	}
	w.keeper.restore(w.stack[0].snapshot)
	s.met.Store(int64(len(frontier)))
	return frontier
}

// chunk is how many states a worker takes at once: those that follow from each other
// stay together.
const chunk = 64

// level takes all steps from the states of a level, and returns the next.
func (s *search) level(frontier []int32) []int32 {
	found := make([][]node, (len(frontier)+chunk-1)/chunk)
	s.each(len(found), func(w *worker, n int) {
		found[n] = w.expandAll(frontier[n*chunk : min((n+1)*chunk, len(frontier))])
	})
	var level []int32
	for _, nodes := range found {
		for range nodes {
			level = append(level, int32(len(s.nodes)+len(level)))
		}
	}
	for _, nodes := range found {
		s.nodes = append(s.nodes, nodes...)
	}
	return level
}

// each shares out pieces of work, in order, until there are no more or there is no need.
func (s *search) each(pieces int, do func(*worker, int)) {
	var wait sync.WaitGroup
	var next atomic.Int64
	for _, w := range s.workers {
		wait.Go(func() {
			for n := int(next.Add(1)) - 1; n < pieces && !s.full(); n = int(next.Add(1)) - 1 {
				do(w, n)
			}
		})
	}
	wait.Wait()
}
