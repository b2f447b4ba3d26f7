package config

import "strings"

// EventHelp returns, for every kind of event, how it is written and what it does.
func EventHelp() (all [][2]string) {
	for _, v := range verbs {
		word, _, _ := strings.Cut(v.usage, " ")
		all = append(all, [2]string{v.usage, meanings[word]})
	}
	return all
}

// oldVerbs are the words that earlier versions had. They are still read.
var oldVerbs = map[string]string{"close": "cordon", "open": "uncordon", "dead": "confirm-down",
	"deafen": "drop-notifications", "freeze": "stale-reads"}

// meanings says what each kind of event does.
var meanings = map[string]string{
	"drain":              "empties a host, as `godwit drain` does",
	"undrain":            "ends the drain of a host",
	"cordon":             "lets no VM enter a host",
	"uncordon":           "lets VMs enter a host again",
	"mark":               "asks for the evacuation of one VM from its host, as KubeVirt does (evacuationNodeName)",
	"unmark":             "takes that back",
	"migrate":            "asks for a migration; `force` overrules the constraints on its target, as `godwit migrate` does",
	"cancel":             "cancels the migrations of a VM",
	"delete":             "deletes the record of a VM",
	"stop":               "shuts a VM down",
	"pause":              "pauses a guest",
	"resume":             "lets a paused guest go on",
	"start":              "starts a VM that was shut down",
	"reboot":             "reboots a VM",
	"attach-disk":        "attaches a disk to a VM",
	"detach-disk":        "detaches a disk",
	"move-disk":          "moves a disk to another image while its guest writes",
	"resize":             "changes the size of a VM",
	"hold":               "blocks the migrations of a VM: another program makes a backup of it, or changes its hardware",
	"unhold":             "ends that",
	"detach":             "removes the name of the migration from the record of its VM, as another program might",
	"claim":              "writes the name of another migration there",
	"release":            "lets an operator remove that name, as `godwit vm release` does",
	"load":               "changes how fast a guest writes, and in how much memory",
	"configure":          "changes `bandwidthPerMigration`",
	"crash-controller":   "kills the controller, at once or after so many writes; it starts again after `for`",
	"crash-agent":        "kills an agent in the same way; its VMs run on",
	"drop-notifications": "hides changes of the store from a process until it reads everything again",
	"repeat":             "reports all records to a process once more",
	"stale-reads":        "lets a process read the store as it was",
	"conflict":           "lets the next write of the record of a VM meet a change by another process",
	"mute":               "loses the answers of so many writes, which take effect",
	"full-store":         "lets the store refuse all writes",
	"crash-hypervisor":   "lets the hypervisor of a host answer nothing; its VMs run on",
	"break":              "makes calls of a hypervisor fail; HOW is FailBefore, FailAfter, Hang, LateAnswer or LateEffect (package `hypervisor/fake`)",
	"cut":                "drops everything between two hosts",
	"reset":              "closes all connections between two hosts",
	"kill":               "kills the process of a VM on a host",
	"crash":              "cuts a host from power; it boots after `for`",
	"fence":              "cuts a host from power as a fencing device does, with evidence",
	"return":             "boots a host that is off",
	"second-agent":       "starts a second agent of a host, with a copy of its directory or a new one",
	"empty-directory":    "empties the directory of an agent",
	"adopt":              "lets an agent with an empty directory act, as `godwit host adopt` does",
	"confirm-down":       "confirms that a host is off, as `godwit host confirm-down` does",
	"backup":             "makes a backup of the store",
	"set-back":           "replaces the store by its last backup",
	"reconcile":          "compares the store with what hosts have, as `godwit store reconcile` does",
	"skew":               "lets the clock of a process be wrong by that much",
}
