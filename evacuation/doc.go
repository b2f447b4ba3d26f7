// Package evacuation decides which VMs must leave a host, and which may leave now.
//
//	marks and taints ──► must leave ──► can leave ──► may leave now ──► [Decision]
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
//	drain := placement.Taint{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}
//	host := evacuation.Host{Name: "n1", Taints: []placement.Taint{drain}}
//	d := evacuation.Plan(evacuation.Params{}, host, vms, evacuation.Load{})
//	for _, c := range d.Create {
//		create(c.VM, c.Priority) // in this order
//	}
//	for _, l := range d.Stay {
//		fmt.Println(l.VM, "stays:", l.Reasons)
//	}
//
// # Adaptive order
//
// This part decides by a model, instead of by habit, in which order VMs leave a
// host, how many at once, and where to.
//
// A link is a server that moves memory, and a move costs some time besides (preparing the
// target, handing over) in which it uses no link. With one move at a time the link rests
// meanwhile; with many at once each is slow, and its guest has time to dirty more that must
// be sent again. So there is a best number, and it depends on the VMs:
//
//	k moves at once take, each, at least  memory / (link − k·dirty)      of the link
//	and finish at most one in every       (memory/(speed−dirty) + rest)/k
//
// These are the asymptotic bounds of a closed system with one server. An [AdaptivePolicy] takes the k
// for which the larger of the two is least, where one more must gain a tenth to be worth it.
// Source: Denning and Buzen, "The Operational Analysis of Queueing Network Models", 1978.
//
// Where targets leave a link idle, because others send to them, too, or their links are
// slower, one more goes. VMs that converge on a whole link only, or have failed before, go
// alone, and first of those that are planned together. The others go longest first: a drain
// is over when its last VM has left.
//
// For moves of users and of drains, [Sharer.Shares] says of every link on its way whether all that use it
// still converge there; the others wait for their turn.
//
// A caller sets an [AdaptivePolicy] as Params.Policy and [AdaptiveWeighers] as the preferences
// among targets. Neither ever lets go what a limit holds back: where the limits are
// KubeVirt's defaults, and no operator asked for them, the caller lifts them ([AdaptiveLimits]).
// A policy caps no speed: what it lets go may use all of the link that the operator's cap
// leaves it.
package evacuation
