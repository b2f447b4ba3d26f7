package mutant_test

import (
	"github.com/godwit-vm/godwit/internal/mutant"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// places are where mutants are looked for that the worlds of [simtest.Turmoil] do not find soon.
var places = map[string]simtest.Generator{
	"begins to send without having announced it":               dying,
	"releases the source as soon as it has handed over":        dying,
	"takes a broken connection for a transfer that has failed": severed,
	"takes an unknown outcome for a failure":                   severed,
	"fails a migration at once because its target is down":     severed,
	"fails an overdue migration at once":                       severed,
	"takes one dead host for two":                              powerless,
	"says that a VM has arrived that was lost before it ran":   severed,
	"takes a cancel that was asked for as done":                canceled,
	"fails a cancelled migration at once":                      canceled,
	"forgets to compare versions":                              forgetful,
}

// scenes are where mutants are explored that random worlds do not find soon.
var scenes = map[string]string{
	"says that the target was discarded, and leaves it": oneMoves,
	"takes a fenced host for one that never ran the VM": oneMoves,
	"resumes the source without the target's word":      oneMoves,
	"takes a VM that is not here for one that was kept": oneMoves,
}

const oneMoves = "hosts n1 n2\nvms web@n1\nscript migrate web\n"

// Worlds that are about one thing, and small, so that much of it happens soon.
var (
	few = simtest.Roomy(simtest.Size{MinHosts: 2, MaxHosts: 3, MinVMs: 1, MaxVMs: 2})
	// dying is about processes that die.
	dying = simtest.Of(few, simtest.Converging(), simtest.Drain(),
		simtest.Swarm(simtest.ProcessFaults(), 1, 3))
	// severed is about the switch-over, which takes long there, and all that can end in it.
	severed = simtest.Of(few, simtest.Endless(), simtest.Means(), simtest.Drain(),
		simtest.Swarm(ends, 1, 4), simtest.Swarm(simtest.ProcessFaults(), 0, 2))
	// canceled is about those who no longer want what is under way.
	canceled = simtest.Of(few, simtest.AnyLoad(), simtest.Means(), simtest.Drain(),
		simtest.Swarm(regrets, 1, 5), simtest.Swarm(simtest.ProcessFaults(), 0, 2))
	// powerless is about hosts that die.
	powerless = simtest.Of(few, simtest.AnyLoad(), simtest.Means(), simtest.Drain(),
		simtest.Swarm(simtest.HostFaults(), 1, 5))
	// forgetful is about processes that die, and look at what is no longer so.
	forgetful = simtest.Of(simtest.AnyFleet(simtest.Small), simtest.AnyLoad(), simtest.Limits(),
		simtest.Means(), simtest.Drain(), simtest.Swarm(simtest.ProcessFaults(), 2, 10))
)

var (
	ends = []simtest.EventText{
		func(m *simtest.Builder) string { return "cut " + m.TwoHosts() + " " + m.Lasting() },
		func(m *simtest.Builder) string { return "reset " + m.TwoHosts() },
		func(m *simtest.Builder) string { return "kill " + m.VM() + " " + m.Host() },
		func(m *simtest.Builder) string { return "crash " + m.Host() + " " + m.Lasting() },
		func(m *simtest.Builder) string { return "fence " + m.Host() },
	}
	regrets = []simtest.EventText{
		func(m *simtest.Builder) string { return "cancel " + m.VM() },
		func(m *simtest.Builder) string { return "migrate " + m.VM() },
		func(m *simtest.Builder) string { return "undrain " + m.Host() },
	}
)

// edits are bugs in what godwit itself does.
func edits() []bug {
	var all []bug
	for i := range mutant.Planted {
		m := &mutant.Planted[i]
		in, special := places[m.Name]
		if !special {
			in = simtest.Turmoil()
		}
		all = append(all, bug{name: m.Name, where: m.File, in: in,
			scene: scenes[m.Name], edit: m})
	}
	for i := range mutant.Mistakes {
		m := &mutant.Mistakes[i]
		all = append(all, bug{name: m.Name, where: m.File, in: simtest.Erring(),
			scene: mistaken[m.Name], edit: m})
	}
	return all
}

// restored is a world in which a backup of the store is restored on another machine.
const restored = "hosts n1 n2\nvms web@n1\nforgotten\n"

// mistaken are where mutants are explored that show where people err, and that random worlds do
// not find soon.
var mistaken = map[string]string{
	"believes a record that is older than what its host knows": "hosts n1 n2\nvms web@n1\n" +
		"backup\nscript migrate web\n",
	"takes a store that was set back for the one that it has seen":      restored,
	"acts before a leader has admitted it":                              restored,
	"admits an agent to a backup before all hosts were heard":           restored,
	"takes a migration that has failed for what explains a second copy": saidToBeOff,
	"gives VMs away of a host that was found to live":                   saidToBeOff,
	"takes a VM that its directory does not know for one that has stopped": "hosts n1 n2\n" +
		"vms web@n1\nclaims\nscript migrate web\n",
	"ignores the lock of a process that another directory has started": "hosts n1 n2\n" +
		"vms web@n1\nsecond n1 new\nscript migrate web\n",
	"takes a VM that was added anew for the one that was deleted": "hosts n1 n2\nvms web@n1\nbackup\n" +
		"script migrate web\nscript stop web\nscript renew web\n",
	"takes a VM that was deleted for the one that was added anew": "hosts n1 n2\nvms web@n1\nbackup\n" +
		"script stop web\nscript renew web\nscript migrate web\n",
}

// saidToBeOff is a world in which an operator says of a host that it is off while a VM leaves it.
const saidToBeOff = "hosts n1 n2\nvms web@n1\nscript migrate web\nscript dead n1\n"
