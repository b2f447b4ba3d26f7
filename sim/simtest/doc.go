// Package simtest property-tests decisions about migrations in `go test`: an evacuation order,
// a limit policy, a convergence policy, a filter, a weigher of one's own, or a whole
// configuration, in random worlds where things break.
//
//	func TestMyOrder(t *testing.T) {
//		simtest.Check(t, worlds.Turmoil(), simtest.Evacuation("mine", mine{}))
//	}
//
// [Check] runs the controller and the agents that run in production, with the decisions plugged
// in, in one world after the other. In each, all of godwit's own invariants are checked, and
// those that are added:
//
//   - [Always]: holds after every event;
//   - [AtRest]: holds when nothing happens any more;
//   - [Eventually]: may fail to hold for a while, and holds again within a time;
//   - [Everywhere]: holds after every event, and is checked by [Explore], too.
//
// Four laws are held in every world, too, because invariants say only that nothing wrong happens:
// [DrainsEnd] (drains end when there is room), [WorkIsBounded] (no retry storm), [TimeAdvances]
// (virtual time does not stand still) and [WorldsEnd] (a test that cannot end says so within its
// budget, [Within] or the time-out of `go test`). [Without] leaves out what is meant to be
// different, as a filter that refuses hosts although they have room.
//
// An invariant is a function of the [sim.World]; it reads hosts, VMs, where they are and what
// moves (World.Hosts, VMs, VM, RunsOn, VMsOn, Moving, Migrations, Demand, Now), and changes
// nothing. A decision that panics, blocks, answers nonsense, is not the same for the same
// arguments, or asks for what is not allowed is reported by its name: see package guard.
//
// What fails is made as small as it can be while it still fails in the same way and is still
// what its generator guarantees, and is written as a scenario below testdata/simtest, named
// for the test and for what failed. It says which invariant, when, and the last decisions with
// their reasons; `godwit simulate FILE` plays the same world with godwit's own decisions. The
// next run of the test plays the file first, so that it fails until the policy is mended, and
// guards against the bug from then on. [Replay] does only that.
//
// [Explore] plays all that may happen in a world of two or three hosts, and [Compare] says which
// of two decisions is better at what, and how sure that is.
//
// # What can be replaced
//
// Each decision is a field of the configuration that production has, too: a controller's is
// controller.Config (daemon.Controller.Config, sim.Config.Controller), an agent's agent.Config
// (daemon.Agent.Config, sim.Config.Agent). The fields, and what they are without:
//
//	decision             type                field                         default
//	who leaves first     evacuation.Policy   Controller.Evacuation.Policy  Evacuation.Order
//	how many at once     its Open            the same                      the limits alone
//	whether a host can   placement.Filter    Controller.Placement.Filters  filter.All()
//	which host is best   weigh.Weigher       Controller.Placement.Weighers weigh.Spread()
//	when to try again    migration.Retry     Controller.Migration.Retry    Config.Backoff
//	how a transfer ends  convergence.Policy  Agent.Converge                convergence.Converge
//
// One line each plugs them in, here and in production:
//
//	simtest.Evacuation("mine", mine{})   c.Evacuation.Policy = mine{}
//	simtest.Filter(mine)                 c.Placement.Filters = append(filter.All(), mine)
//	simtest.Weigher(mine)                c.Placement.Weighers = append(weigh.Spread(), mine)
//	simtest.Retry("mine", mine)          c.Migration.Retry = mine
//	simtest.Convergence("mine", mine)    a.Converge = mine
//
// A policy that is an order alone, or a limit alone, is evacuation.OrderFunc(f) or LimitFunc(f).
// In a simulated world that rests for 20 minutes nothing more is expected: whoever waits longer
// says so in sim.Config.Quiet.
//
// How long to look is for -rapid.checks (worlds, 100 by default), [Runs] and [Within]; -rapid.seed
// makes a run the same again. Meanwhile garbage may gather to four times what lives, within
// 256 MiB, unless the process has set GOGC itself; afterwards all is as before.
package simtest
