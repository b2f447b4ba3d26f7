// Package policy decides with which options a VM is migrated: the cluster's
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
// edit changes no migration under way, and (3) asks [Explain] when a person
// wants to know why.
//
// # Differences from KubeVirt
//
// [Match], [Resolve] and [Explain] differ from KubeVirt v1.9.0 in the following.
// The same methods of Matcher{Compatible: true} do not.
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
// In code (the examples of [Resolve] and [Explain] run):
//
//	best := policy.Match(policies, vmLabels, namespaceLabels) // nil: none matches
package policy
