package mutant_test

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
	"github.com/godwit-vm/godwit/store"
)

// bugs are all that are planted.
func bugs() []bug {
	return slices.Concat(paces(), convergences(), placements(), retries(), stores(), edits())
}

// paces are bugs in an evacuation's order and limit.
func paces() []bug {
	evacuate := func(p evacuation.Policy) simtest.Option { return simtest.Evacuation("mine", p) }
	var all []bug
	for _, b := range []struct {
		name string
		pace pace
	}{
		{"an order in which equal ones come after each other", pace{compare: smallerIsBefore}},
		{"an order that changes while it is used", pace{compare: takingTurns()}},
		{"a limit that divides by the number of others", pace{open: fairShare}},
		{"a limit that waits until the others have left", pace{open: waitForTheFirst}},
		{"a limit that sorts what it is shown", pace{open: largestFirst}},
	} {
		all = append(all, bug{name: b.name, where: "evacuation", in: simtest.Turmoil(),
			with: evacuate(b.pace), cheap: b.pace.compare != nil})
	}
	return append(all, bug{name: "a limit that forgets the VM that asks", where: "evacuation",
		in: simtest.Calm(), with: evacuate(pace{open: atMostTwo}),
		right: evacuate(pace{open: lessThanTwo}),
		holds: simtest.Always("no more than two leave a host at once", twoAtOnce)})
}

// convergences are bugs in how transfers are brought to an end.
func convergences() []bug {
	emptied := simtest.Eventually("a drained host is empty", 2*time.Hour, emptied)
	return []bug{
		{name: "gives a transfer up after its first pass", where: "convergence",
			in: simtest.Calm(), with: simtest.Convergence("mine", hasty), holds: emptied},
		{name: "switches to post-copy unasked", where: "convergence", in: simtest.Turmoil(),
			with: simtest.Convergence("mine", impatient)},
		{name: "stops the guest unasked", where: "convergence", in: simtest.Turmoil(),
			with: simtest.Convergence("mine", brutal), cheap: true},
		{name: "doubles the downtime beyond what is allowed", where: "convergence",
			in: simtest.Turmoil(), with: simtest.Convergence("mine", doubling)},
	}
}

// placements are bugs in the choice of a target.
func placements() []bug {
	emptied := simtest.Eventually("a drained host is empty", 2*time.Hour, emptied)
	unrefused := simtest.Always("no target refuses", noneRefuses)
	return []bug{
		{name: "refuses the hosts that have room", where: "filter", in: simtest.Calm(),
			with: simtest.Filter(memory(swapped)), holds: emptied},
		{name: "refuses every host", where: "filter", in: simtest.Calm(), cheap: true,
			with: simtest.Filter(memory(everyHost))},
		{name: "forgets how much a VM needs", where: "filter",
			in: simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Drain(),
				simtest.Drain(), simtest.Drain()),
			with: simtest.Filter(memory(notFull)), holds: unrefused},
		{name: "takes any processor for the right one", where: "filter",
			in: simtest.Of(simtest.Roomy(simtest.Small), simtest.Generations(), simtest.Converging(),
				simtest.Drain()),
			with: simtest.Filter(anyModel()), holds: unrefused},
		{name: "does not enable the filters of drained hosts", where: "filter",
			in: simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Drain(),
				simtest.Drain()),
			with: simtest.Configure(func(c *sim.Config) {
				c.Controller.Placement.Filters, _ = placement.SelectFilters([]string{"memory", "cpus"})
			}), holds: simtest.Always("no VM moves onto a drained host", noneOntoDrained)},
		{name: "weighs by what each VM has, where there is none", where: "weigher",
			in: simtest.Turmoil(), with: simtest.Weigher(perVM()), cheap: true},
		{name: "prefers another host each time", where: "weigher", in: simtest.Turmoil(),
			with: simtest.Weigher(roundRobin())},
		{name: "reserves room while it weighs", where: "weigher", in: simtest.Turmoil(),
			with: simtest.Weigher(reserving())},
	}
}

// retries are bugs in when a failure is tried again.
func retries() []bug {
	broken := simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Drain(),
		simtest.Swarm(simtest.ProcessFaults(), 0, 4))
	retry := func(r migration.Retry) simtest.Option {
		return simtest.Configure(func(c *sim.Config) { c.Controller.Migration.Retry = r })
	}
	return []bug{
		{name: "never tries again", where: "retry", in: broken, with: retry(never),
			holds: simtest.Eventually("a drained host is empty", 4*time.Hour, emptied)},
		{name: "tries again at once, for ever", where: "retry", in: simtest.Calm(), cheap: true,
			with: simtest.Configure(func(c *sim.Config) {
				c.Controller.Migration.Retry, c.Agent.Converge = atOnce, hasty
			}), right: simtest.Configure(func(*sim.Config) {})},
		{name: "tries again at once", where: "retry", in: simtest.Turmoil(),
			with:  retry(atOnce),
			holds: simtest.Always("nothing is tried again within a second", pausesBetween)},
	}
}

// stores are bugs in where records are kept.
func stores() []bug {
	wrap := func(name string, in simtest.Generator, w func(store.Store) store.Store) bug {
		plug := simtest.Configure(func(c *sim.Config) {
			c.Store = func(_ hypervisor.HostName, s store.Store) store.Store { return w(s) }
		})
		return bug{name: name, where: "store", in: in, with: plug}
	}
	turmoil := simtest.Turmoil()
	cheap := wrap("tells of a change only with the next", turmoil,
		func(s store.Store) store.Store { return late{s, &store.Changes{}} })
	cheap.cheap = true
	undeleted := wrap("keeps what was deleted", turmoil,
		func(s store.Store) store.Store { return undead{s} })
	undeleted.holds = simtest.AtRest("no more attempts are kept than asked for", fewKept)
	return []bug{cheap, undeleted,
		wrap("overwrites what another process has written", forgetful,
			func(s store.Store) store.Store { return overwriting{s} }),
		wrap("acknowledges a write now and then that it does not store", turmoil,
			func(s store.Store) store.Store { return leaky{s, new(int)} }),
		wrap("loses the last write before a crash", simtest.Of(simtest.Roomy(simtest.Small),
			simtest.Converging(), simtest.Drain(), simtest.Swarm(simtest.ProcessFaults(), 1, 5),
			simtest.Swarm(simtest.Orders(), 1, 4)),
			func(s store.Store) store.Store { return volatile{s.(*sim.FlakyStore)} }),
		wrap("tells nothing of a change now and then", turmoil,
			func(s store.Store) store.Store { return distracted{s, new(int)} }),
		wrap("answers with hosts as they were the time before", turmoil,
			func(s store.Store) store.Store {
				return backwards{s, map[store.Key]store.Record{}}
			}),
		wrap("does not tell of what was deleted", turmoil,
			func(s store.Store) store.Store { return silent{s} }),
	}
}
