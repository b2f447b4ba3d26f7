// Package migration decides, one step at a time, what a live migration does next.
//
//	Unset → Pending → Scheduling → Scheduled → PreparingTarget → TargetReady → Running → Succeeded
//	  └────────┴──────────┴────────────┴──────────────┴───────────────┴───────────┴────→ Failed
//
// It moves no memory and waits for nothing: [Config.Step] maps what is known to what should be
// done. A caller
//
//  1. stores the new state, on condition that no other process wrote the record since it was observed,
//  2. only then performs the actions: but [HandOff], which needs no more than source and target,
//     may be performed before Scheduled is stored, so that one writing does for two phases,
//  3. observes again.
//
// Any of the three may be lost to a crash: actions follow from what the observation lacks, so a
// lost action is asked for again, and every action may be repeated.
//
// # What each phase waits for
//
// A [Decision] that changes nothing waits for news, which the next [Observation] has to bring:
//
//	phase            asks for       goes on when the observation says
//	---------------  -------------  ----------------------------------------------------
//	Unset            -              nothing is needed
//	Pending          CreateTarget   Gate is Open, and then: Target.Exists
//	Scheduling       -              Target.Ready
//	Scheduled        HandOff        Ownership is ClaimedBySelf, and Report.TargetNamed
//	PreparingTarget  -              Report.TargetNamed and Report.Address
//	TargetReady      -              Report.Started; Report.Began goes before
//	Running          TellTarget     Report.Completed; Report.Failed ends it the other way
//
// The example "withoutHosts" of [Config.Step] walks through all of them.
//
// # What ends a migration
//
// Until the source has announced that it begins ([Report.Began]) a migration may fail at any
// time: the compare-and-swap of duty 1 keeps the source from beginning afterwards. From then on
// only a positive report ends it: the target runs the VM (Succeeded), or the source kept it
// (Failed). Whatever else goes wrong is answered with a request to abort, and, when no host
// answers that in time, with the condition [OutcomeUnknown]: it says who must be heard, and
// nothing is destroyed.
//
// # Where it differs from KubeVirt
//
// The reference is KubeVirt's migration controller. [Config.Compatible] restores its decisions
// exactly, as recorded from it; the default is better where the reference is known to be weak:
//
//   - every phase from Pending on has a deadline ([Timeouts]), except in post-copy, which cannot
//     be taken back, and while it only waits for its turn; KubeVirt bounds only pending targets;
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
//
// # Health of targets
//
// This part decides which hosts have lately failed migrations, and when one of them is
// tried again.
//
//	healthy ──a failure──► troubled ──the back-off is over──► one migration may try it
//	   ▲                      ▲                                   │            │
//	   │                      └───────────── it fails ────────────┘            │
//	   └───────────────────────── it succeeds, or time passes ─────────────────┘
//
// What one migration learns of a host counts for all: see [TargetHealth]. A failure while the target
// was prepared speaks against the target, a failure to begin against the source. A transfer that
// broke speaks against the way between the two, and against one of the two hosts as soon as it
// has failed so with two others and with none succeeded since.
//
// The caller (1) adds the end of every migration, oldest first, and takes out those that it
// forgets; (2) starts no migration to or from a troubled host before [HealthProblem.Again], and then
// one at a time. This package knows no record, no clock and no store.
// Source: M. Nygard, "Release It!", 2007 (circuit breaker: closed, open, half-open).
//
// # Migration policies
//
// This part decides with which options a VM is migrated: the cluster's
// configuration, overlaid by the one policy that fits the VM best.
//
//	ClusterOverrides ── Complete ──► Cluster ── Options ──┐
//	                                                      ├── Apply ──► Options
//	[]Policy + labels ── Match ──► the winner's Overrides ┘
//
// A policy matches a VM when every label that it selects on is on the VM, or on
// the VM's namespace, with the same value. Of the policies that match, the one
// with more labels wins; among equals the one with more labels on the VM; among
// equals still the one with the smaller name. Only the winner counts: policies
// are never combined. Of the winner, a field that is not set inherits the
// cluster's value; a field that is set overrides it, also with zero or false.
//
// A caller (1) resolves once per migration, when the target is known and before
// memory moves, (2) stores the [Options] with the migration, so that a later
// edit changes no migration under way, and (3) asks [ExplainPolicy] when a person
// wants to know why.
//
// Differences from KubeVirt:
//
// [ResolveOptions] and [ExplainPolicy] differ from KubeVirt v1.9.0 in the following.
// The same methods of PolicyMatcher{Compatible: true} do not.
//
//  1. VM labels that are nil are an empty set. KubeVirt then ignores both
//     selectors of every policy, so that each policy which has selectors
//     matches with no labels at all, and the smallest name wins.
//  2. Namespace labels that are nil are an empty set. KubeVirt means to ignore
//     the namespace selector for them, but asks whether the VM's labels are nil;
//     with VM labels that are not nil the outcome is the same as here.
//
// The same in both: selectors without any label match every VM, and lose to
// every policy that matches with a label; a policy without selectors matches no
// VM. A policy cannot influence placement or limits.
//
// KubeVirt has feature gates for the stall detector and for downtime tuning.
// Here the policy that configures one switches it on; nothing else does.
//
// This package reads no clock, does no I/O, and keeps nothing between calls. It
// never changes its arguments.
//
// The examples of [ResolveOptions] and [ExplainPolicy] show it in code.
//
// # Limits
//
// This part counts how many migrations hold a slot, and says whether one more
// may start: arithmetic, which knows neither a VM nor a phase.
package migration
