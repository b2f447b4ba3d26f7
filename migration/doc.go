// Package migration decides, one step at a time, what a live migration does next.
//
//	Unset → Pending → Scheduling → Scheduled → PreparingTarget → TargetReady → Running → Succeeded
//	  └────────┴──────────┴────────────┴──────────────┴───────────────┴───────────┴────→ Failed
//
// It moves no memory and waits for nothing: [Config.Step] maps what is known to what should be
// done. A caller
//
//  1. stores the new state, on condition that nobody wrote the record since it was observed,
//  2. only then performs the actions: but [HandOff], which needs no more than source and target,
//     may be performed before Scheduled is stored, so that one writing does for two phases,
//  3. observes again.
//
// Any of the three may be lost to a crash: actions follow from what the observation lacks, so a
// lost action is asked for again, and every action may be repeated.
//
// # What ends a migration
//
// Until the source has announced that it begins ([Report.Began]) a migration may fail at any
// time: the compare-and-swap of duty 1 keeps the source from beginning afterwards. From then on
// only a positive report ends it: the target runs the VM (Succeeded), or the source kept it
// (Failed). Whatever else goes wrong is answered with a request to abort, and, when nobody
// answers that in time, with the condition [OutcomeUnknown]: it says who must be heard, and
// nothing is destroyed.
//
// # Where it differs from KubeVirt
//
// The reference is KubeVirt's migration controller. [Config.Compatible] restores its decisions
// exactly, as recorded from it; the default is better where the reference is known to be weak:
//
//   - every phase from Pending on has a deadline ([Timeouts]), except in post-copy, which nobody
//     can take back, and of who only waits for its turn; KubeVirt bounds only pending targets;
//   - a cancel works at once in every phase up to the beginning of the transfer; KubeVirt ignores
//     it between hand-over and Running;
//   - a target that vanishes under a running transfer does not end the migration before the source
//     has said that it kept the VM;
//   - a backup in progress blocks the creation of the target, too; in KubeVirt the target is
//     created and holds a slot meanwhile;
//   - attachments are created in Scheduling as well, and a target that stays unschedulable with
//     hot-plugged volumes fails instead of starting over;
//   - an expired target is given up in the same decision, not one look later;
//   - what a look ends it does not act on: KubeVirt creates targets of, and hands over, migrations
//     that fail in the same look;
//   - a target that may hold the VM is not deleted;
//   - the limits know inbound migrations per target ([Limits.PerTarget]);
//   - retries remember the hosts that failed ([Config.Avoid]) and their back-off has a cap of its
//     own ([Config.BackoffCap]).
//
// # In code
//
//	config := migration.Config{}.Complete()
//	for {
//		d := config.Step(&spec, &state, &seen) // no clock, no I/O: seen.Now is the time
//		state = d.State                        // store it first
//		for action := range d.Actions.All() {
//			perform(action) // again whenever it is asked for again
//		}
//		seen = observe()
//	}
//
// The examples of [Config.Step] and [Slots] run.
package migration
