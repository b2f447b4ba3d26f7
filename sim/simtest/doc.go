// Package simtest property-tests decisions about migrations in `go test`: an evacuation order,
// a limit policy, a convergence policy, a filter, a weigher of one's own, or a whole
// configuration, in random worlds where things break.
//
//	func TestMyOrder(t *testing.T) {
//		simtest.Check(t, Turmoil(), simtest.Evacuation("mine", mine{}))
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
// arguments, or asks for what is not allowed is reported by its name: see this package.
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
// controller.Config (in a simulation sim.Config.Controller), an agent's agent.Config
// (sim.Config.Agent). The fields, and what they are without:
//
//	decision             type                field                         default
//	which VM leaves first evacuation.Policy   Controller.Evacuation.Policy  Evacuation.Order
//	how many at once     its Admit           the same                      the limits alone
//	whether a host can   placement.Filter    Controller.Placement.Filters  placement.AllFilters()
//	which host is best   placement.Weigher       Controller.Placement.Weighers placement.Spread()
//	when to try again    migration.Retry     Controller.Migration.Retry    Config.Backoff
//	how a transfer ends  convergence.Policy  Agent.Converge                convergence.Converge
//
// One line each plugs them in, here and in production:
//
//	simtest.Evacuation("mine", mine{})   c.Evacuation.Policy = mine{}
//	simtest.Filter(mine)                 c.Placement.Filters = append(placement.AllFilters(), mine)
//	simtest.Weigher(mine)                c.Placement.Weighers = append(placement.Spread(), mine)
//	simtest.Retry("mine", mine)          c.Migration.Retry = mine
//	simtest.Convergence("mine", mine)    a.Converge = mine
//
// A policy that is an order alone, or a limit alone, is evacuation.OrderFunc(f) or LimitFunc(f).
// In a simulated world that rests for 20 minutes nothing more is expected: a policy that waits longer
// says so in sim.Config.Quiet.
//
// How long to look is for -rapid.checks (worlds, 100 by default), [Runs] and [Within]; -rapid.seed
// makes a run the same again.
//
// # Policy checks
//
// This part stands between godwit and decisions that users wrote, and says when
// they are none: a policy that panics, answers nonsense, answers differently when it is asked
// the same again, asks for what the configuration forbids, or writes what it was only shown.
//
//	policyCheck := &PolicyCheck{}
//	config.Agent.Converge = CheckConvergence(policyCheck, "mine", mine)
//	…
//	policyCheck.Finding() // the first thing that was wrong, by the policy's name, or nil
//
// The caller (1) wraps the decision, (2) runs whatever asks it, and (3) asks the [PolicyCheck].
// After a finding the guard answers in the policy's place, something harmless, so that the
// caller can come to an end. Every question is asked twice; arguments are compared with
// copies of them at the first questions and at some of the later ones.
//
// A guard never changes an answer that is one. It has no goroutines and no clock: a call that
// does not return is found by a caller that has both, with [PolicyCheck.Pulse] and [PolicyCheck.Abandon].
//
// # Shrinking
//
// This part makes a world smaller for as long as something about it stays true: that a
// policy fails in it, say.
//
//	small := ShrinkWorld(large, fails)
//
// It drops events, VMs, hosts and settings, many at a time and then one by one, moves events to
// the beginning, shortens what lasts, and gives VMs and hosts the plainest sizes and loads.
// With each it tries a few seeds: which message is late by how much is then another matter, and
// few failures are about that alone. It ends when nothing that it knows makes the world smaller.
//
// The package plays no world. A test function answers no to end it early.
//
// # Generators of worlds
//
// This part makes random worlds for tests: fleets, and what happens to them, each
// generator named by what its worlds are guaranteed to be.
//
//	drain := Of(Roomy(Small), Converging(), Drain())
//
// A [Generator] is put together from [Part]s, which add to a [World] one after the other. A
// part says what it guarantees, [Part.Holds], so that the shrinker can keep
// it what it was: a cluster that has room for all VMs does not lose the host that gave it.
//
//	fleets    [Roomy] [Cramped] [OneFull] [Generations] [AnyFleet]
//	loads     [Converging] [Endless] [AnyLoad]
//	rules     [Limits] [Means] [ConflictingPolicies]
//	events    [Drain] [SecondThoughts] [Swarm] of [Faults], [HostFaults], [ProcessFaults],
//	          [Orders], [Wishes]
//	together  [Calm] [Busy] [Turmoil]
//
// A part of one's own is a function that adds to [Builder.World]. All chance comes from the
// maker's [sim.Chooser]: a seed's, or rapid's ([Drawn], [Generator.Rapid]), so that a world
// shrinks. A world is a scenario: [World.String] writes what `godwit simulate` reads.
//
// The package does nothing but make worlds: it runs none and judges none.
package simtest
