package explore

import (
	"context"
	"math/rand/v2"
)

// Deep takes random ways through a scene, [Config.Steps] long, and leads each to rest.
// Most of the steps are the usual ones, so that a way gets somewhere; the faults of the
// budget come at any time. The same seed takes the same ways: run n is drawn from Seed and
// n, on every machine. Depth says how many steps the longest way had.
func Deep(ctx context.Context, c Config) (*Result, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	c.Odd = 0
	s := &search{config: c, ctx: ctx}
	for range c.Workers {
		s.workers = append(s.workers, newWorker(s))
	}
	s.each(c.Runs, func(w *worker, n int) { w.wander(rand.New(rand.NewPCG(c.Seed, uint64(n)))) })
	for _, w := range s.workers {
		s.result.Transitions += w.transitions
		s.result.Rested += w.rested
		s.result.Depth = max(s.result.Depth, w.deepest)
	}
	s.result.States = int(s.met.Load())
	if s.violation != nil {
		s.result.Violation = shorten(c, s.violation.steps)
	}
	return &s.result, nil
}

// wander takes one random way from the scene to rest.
func (w *worker) wander(chance *rand.Rand) {
	w.keeper.restore(w.stack[0].snapshot)
	var way, list []step
	for range w.search.config.Steps {
		s, ok := w.world.Usual()
		if !ok || chance.IntN(w.search.config.Calm) == 0 {
			list = w.world.possible(list[:0], w.search.config.Faults)
			if len(list) == 0 {
				break
			}
			s = list[chance.IntN(len(list))]
			if s.Op == Look && w.world.Faults > 0 && chance.IntN(8) == 0 {
				fated := s.Fated(3, w.search.config.Faults)
				if len(fated) > 0 {
					s = fated[chance.IntN(len(fated))]
				}
			}
		}
		w.transitions++
		w.world.apply(s)
		way = append(way, s)
		if w.world.Broken != nil {
			break
		}
		if w.search.seen.add(w.keeper.print()) {
			w.search.met.Add(1)
		}
	}
	w.deepest = max(w.deepest, len(way))
	if w.world.Broken == nil {
		w.rested++
		w.world.Rest(chance.IntN(2) == 0)
	}
	if w.world.Broken != nil {
		w.violated(way...)
	}
}
