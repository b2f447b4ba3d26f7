// Package evacuate decides how the nodes of a cluster with KubeVirt are emptied.
//
//	NodeEvacuations ─┐
//	marks of VMIs  ──┼─► [Decide] ──► cordon, create, cancel, evict, uncordon, status
//	migrations     ──┘
//
// It is pure. Which VMs must leave, which can, and which may now is decided by package evacuation of godwit;
// this package says which VMs it is asked about, and what becomes of its answer.
//
// Which VMs are ours:
//
//   - every VM on a node that a NodeEvacuation names, except one that KubeVirt's own evacuation
//     controller takes: its effective eviction strategy is LiveMigrate or LiveMigrateIfPossible,
//     and it is marked for eviction, or the node has KubeVirt's drain taint;
//   - without a NodeEvacuation, a VM whose effective eviction strategy is External and that is
//     marked for eviction from its node (status.evacuationNodeName), as kubectl drain does it.
//
// A VM that has any unfinished migration gets no other, whatever asked for it.
//
// The caller carries out the actions of a [Decision] in their order, and asks again when anything
// changed and at the latest after [Decision.Again]. It may stop after any action: the next decision
// goes on from there. The name of a migration follows from the VM and the number of its attempts,
// so that creating it twice is a conflict.
package evacuate
