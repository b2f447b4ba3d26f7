// Package evacuation decides who must leave a host, and who may leave now.
//
//	marks and taints ──► who must leave ──► who can ──► who may now ──► [Decision]
//	                          [Plan]: rules        [Limits], [Order]
//
// A host is emptied for one of two reasons: it carries the drain taint, then
// every VM leaves, or single VMs are marked with its name ([Evict] says when).
// [Plan] sorts the VMs that must leave into those that get a migration, and
// those that stay for now, each with all the reasons why; [Terms] say which of
// these are shut down. [Cancel] undoes a
// drain that was withdrawn.
//
// The caller's duties:
//
//  1. pass the VMs that are on the host; one that is given twice counts once;
//  2. count what already moves with [Count], by its own view of the cluster;
//  3. store the migrations of a Decision before anything else looks, in the
//     given order: the first shall be the oldest;
//  4. ask again when something changed, and at the latest after Again.
//
// The package moves nothing, retries nothing and knows no target: phases and
// back-off belong to package migration, targets to package placement.
//
// In code (the example of [Plan] runs):
//
//	d := evacuation.Plan(params, host, guests, evacuation.Load{})
//	for _, c := range d.Create {
//		create(c.VM, c.Priority) // in this order
//	}
//	for _, l := range d.Stay {
//		fmt.Println(l.VM, "stays:", l.Reasons)
//	}
package evacuation
