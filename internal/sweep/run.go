package sweep

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// A Sweep is what is to be simulated.
type Sweep struct {
	Run   Run
	Shard Shard // the zero value is everything
	// Load returns the scenario of a combination; its seed is that of the first
	// sample. It is called once for each combination, and of several at once.
	Load func(combination int) (*config.Scenario, error)
	// Sample is told what came out of each world, in the order of the worlds and
	// never twice at once. Its error ends the sweep.
	Sample func(*Sample) error
	// Tick is told now and then of a world that runs, and when it has ended, from
	// several goroutines at once. Default: none.
	Tick func(w *sim.World, ended bool)
	// Workers is how many worlds run at once. Default: one on each core.
	Workers int
}

// Simulate runs all worlds of the shard. When the context ends first, the worlds
// that are under way are given up, Sample is told of those that are complete, and
// the context's cause is returned. An error in one world names its combination
// and its seed, and ends the sweep.
func (s *Sweep) Simulate(ctx context.Context) error {
	workers := s.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	out := &queue{tell: s.Sample}
	var load func() (*config.Scenario, error)
	loaded := -1
	worlds := s.Shard.Worlds(s.Run.Worlds())
	for i, world := range worlds {
		if within.Err() != nil {
			break
		}
		combination, sample := s.Run.World(world)
		if combination != loaded {
			loaded = combination
			load = sync.OnceValues(func() (*config.Scenario, error) {
				return s.Load(combination)
			})
		}
		base := load
		group.Go(func() error {
			scene, err := base()
			if err != nil || within.Err() != nil {
				return err
			}
			done, err := s.world(within, scene, combination, sample)
			if done == nil || err != nil {
				return err
			}
			return out.add(i, done)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := out.flush(); err != nil || out.next == len(worlds) {
		return err
	}
	return context.Cause(ctx)
}

// world simulates one world; nil is one that was given up.
func (s *Sweep) world(ctx context.Context, scene *config.Scenario, combination, n int) (
	sample *Sample, err error) {
	seed := Seed(scene.Seed, n)
	defer func() { // a broken world says which it is
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("%s, seed %d: %w", Label(s.Run.Axes.At(combination)), seed, err)
		}
	}()
	drawn, err := scene.Draw(seed)
	if err != nil {
		return nil, err
	}
	config, seen := drawn.Config(seed), newRecorder()
	config.Watch = seen.watch
	config.Tick = func(w *sim.World) bool {
		s.tick(w, false)
		return ctx.Err() == nil
	}
	w, err := drawn.Build(config)
	if err != nil {
		return nil, err
	}
	ending := w.Run(drawn.Until)
	switch ending {
	case sim.Stopped:
		return nil, nil
	case sim.AtRest:
		w.CheckAtRest()
	}
	s.tick(w, true)
	done := seen.sample(w, ending)
	done.Combination, done.Sample, done.Seed = combination, n, seed
	return &done, nil
}

func (s *Sweep) tick(w *sim.World, ended bool) {
	if s.Tick != nil {
		s.Tick(w, ended)
	}
}

// queue passes samples on in the order of their worlds.
type queue struct {
	mutex sync.Mutex
	tell  func(*Sample) error
	next  int // the first that was not passed on
	ahead map[int]*Sample
}

// add takes the sample of the i-th world, and passes on what is in order.
func (q *queue) add(i int, s *Sample) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.ahead == nil {
		q.ahead = map[int]*Sample{}
	}
	q.ahead[i] = s
	for {
		s, is := q.ahead[q.next]
		if !is {
			return nil
		}
		delete(q.ahead, q.next)
		q.next++
		if err := q.tell(s); err != nil {
			return err
		}
	}
}

// flush passes on what is complete, although worlds before it are not.
func (q *queue) flush() error {
	for _, i := range slices.Sorted(maps.Keys(q.ahead)) {
		if err := q.tell(q.ahead[i]); err != nil {
			return err
		}
	}
	return nil
}
