package whatif

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// An Upgrade is a run of maintenance and the world that it is carried out in, by the controller that
// carries it out in production.
type Upgrade struct {
	// Scenario is the fleet, its limits and what differs from world to world; its events are not played.
	Scenario *config.Scenario
	Run      store.Maintenance
	// Away is how long a host is away: the hook reboots it.
	Away Away
	// Settled lets worlds go on until they rest, so that what must hold in the end is checked, too.
	Settled bool
}

// Away is a log-normal distribution of how long hosts are away: each host of each world draws its own.
type Away struct{ P50, P90 time.Duration }

// draw returns a time that follows the distribution.
func (a Away) draw(chance *rand.Rand) time.Duration {
	if a.P90 <= a.P50 {
		return a.P50
	}
	const z90 = 1.2815515655446004 // the 90 % quantile of the normal distribution
	spread := math.Log(float64(a.P90)/float64(a.P50)) / z90
	return time.Duration(float64(a.P50) * math.Exp(spread*chance.NormFloat64()))
}

// An Outcome is how a run of maintenance went in one world.
type Outcome struct {
	Took       time.Duration // since it was started; negative: it did not end, or not every host was serviced
	Stopped    string        // why it stood still at the end
	Hooks      int           // that began
	Occupied   []hypervisor.HostName
	Violations []sim.Violation
}

// Samples carries the run out in so many worlds, several at once, from one number to before another.
func (u *Upgrade) Samples(ctx context.Context, seed uint64, from, to int) ([]Outcome, error) {
	outcomes := make([]Outcome, to-from)
	base := (&Play{Scenario: Endless(u.Scenario)}).staged()
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range outcomes {
		group.Go(func() error {
			own := sweep.Seed(seed, from+i)
			drawn, err := base.Draw(own)
			if err == nil {
				outcomes[i], err = u.play(within, drawn, own)
			}
			if err != nil {
				return fmt.Errorf("seed %d: %w", own, err)
			}
			return nil
		})
	}
	return outcomes, group.Wait()
}

// play carries the run out in one world. Agents claim the names of their hosts, so that one that has
// started anew is known as such.
func (u *Upgrade) play(ctx context.Context, s *config.Scenario, seed uint64) (Outcome, error) {
	o := Outcome{Took: -1}
	c := s.Config(seed)
	c.Claims, c.Marks = true, true
	c.Tick = func(*sim.World) bool { return ctx.Err() == nil }
	w, err := s.Build(c)
	if err != nil {
		return o, err
	}
	chance := rand.New(rand.NewPCG(seed, 0x75706772616465))
	run := u.Run
	w.At(0, sim.Maintain{Run: run})
	w.At(0, sim.RunHooks{Run: run.Name, Takes: func(hypervisor.HostName) time.Duration { return u.Away.draw(chance) },
		Begins: func(host hypervisor.HostName, executing []hypervisor.VMID) {
			if o.Hooks++; len(executing) > 0 {
				o.Occupied = append(o.Occupied, host)
			}
		}})
	for w.Now() < s.Until && ctx.Err() == nil {
		w.Run(w.Now() + time.Hour)
		if m := w.Maintenance(run.Name); !m.Ended.IsZero() || m.Stopped != "" {
			o.ended(m)
			break
		}
	}
	if u.Settled && w.Run(s.Until) == sim.AtRest {
		w.CheckAtRest()
	}
	if err := ctx.Err(); err != nil {
		return o, context.Cause(ctx)
	}
	o.Violations = w.Result().Violations
	return o, nil
}

// ended takes in how a run has ended.
func (o *Outcome) ended(m *store.Maintenance) {
	o.Stopped = m.Stopped
	through := !slices.ContainsFunc(m.Hosts, func(h store.ServicedHost) bool { return h.Phase != store.ServiceDone })
	if through && !m.Ended.IsZero() {
		o.Took = m.Ended.Sub(m.Created)
	}
}

// Promise returns a time that a further world takes longer than with a probability of at most 1 - p, and
// false when there is none, or when too few worlds were played to know. The times are those of worlds that were
// drawn alike; a negative one is never.
//
// Of n times and a further one, in any order, the chance that the further one is not above the k-th smallest is
// at least k/(n+1), whatever their distribution.
// Source: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005, section 2.1.
func Promise(times []time.Duration, p float64) (time.Duration, bool) {
	sorted := slices.DeleteFunc(slices.Clone(times), func(t time.Duration) bool { return t < 0 })
	slices.Sort(sorted)
	k := int(math.Ceil(p*float64(len(times)+1) - rounding))
	if k < 1 || k > len(sorted) {
		return 0, false
	}
	return sorted[k-1], true
}
