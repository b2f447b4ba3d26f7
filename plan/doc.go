// Package plan says what a plan for a fleet is: hosts and VMs, the host of each VM, and
// moves in waves.
//
// A [Fleet] is a snapshot; [State] is the fleet after some moves. Whether a host
// takes a VM is decided by the conditions of package placement, on the same
// reservations as in production: while a VM moves, its room is taken on both hosts. Package
// intake makes a Fleet of one that was read from a file.
//
// A planner (1) begins a State, (2) tries moves with Start, Finish and Undo,
// (3) sorts the moves that it wants into waves with [Waves]. What it cannot do it
// proves with a [Certificate]. Package verify checks both and trusts no planner.
//
//	f := &plan.Fleet{Hosts: []placement.Host{{Name: "n1", Memory: 8, UsedMemory: 6}, {Name: "n2", Memory: 8}},
//		VMs: []plan.VM{{VM: placement.VM{ID: "db", Memory: 4}, Home: "n1"},
//			{VM: placement.VM{ID: "web", Memory: 2}, Home: "n1"}}}
//	waves, ok := plan.Waves(plan.Begin(f), []plan.Move{
//		{VM: "db", Source: "n1", Target: "n2"}, {VM: "web", Source: "n1", Target: "n2"}})
//	fmt.Println(ok, len(waves), plan.Count(waves)) // true 1 2
//
// The package decides nothing about time: how long a move takes is for the
// simulator to say. It starts no goroutine and reads no clock.
//
// # Drain
//
// This part plans how hosts are emptied with as few moves as possible.
//
//	direct: each VM to a host that takes it ──► room: others make room ──► [FailoverResult.Waves]
//	                                                │ small fleets
//	                                                └──► every arrangement, nearest first
//	                                                         └──► [plan.Certificate]
//
// The caller passes the fleet as it is and the hosts to be emptied; no VM enters
// those. [Drain] is total and deterministic. It says what can be done, and of what
// cannot be done either a proof or that the search was given up.
//
// It does not say how long anything takes, and moves nothing.
//
// # From an inventory
//
// This part makes the fleet of a plan out of one that was read from a file.
//
// # Maintenance
//
// This part plans how many hosts are serviced in turn: which are emptied and
// rebooted together, where their VMs go meanwhile, and how they come back home.
//
//	choose hosts ──► empty them ──► check ──► reboot ──► they take VMs again ──► next batch
//
// VMs go to hosts that were serviced already, or need no service, wherever these have room:
// then one move each is enough. Only to begin with, some VMs have to move twice.
//
// After each batch has been emptied, so many failures more are survived as were asked for,
// by this package. It then holds at every instant of the batch, too: before, there is
// no less room on any host that takes VMs, and a VM that has not left a host of the batch
// yet has a place reserved at its target.
//
// The caller makes a [Request] and calls [Maintenance]; it gets batches, and for each host that
// cannot be serviced a reason that can be checked. [PlanReturn] plans the way home. The simulator
// estimates times. The package is pure, and moves nothing.
//
// # Failover capacity
//
// This part answers whether a fleet survives failures of hosts: whichever hosts
// fail one after another, is there room to restart every protected VM before the next
// one fails?
//
// A VM that has been restarted stays where it is unless that host fails, too: a controller that
// restarts it does not know which host is next. So the order matters, and the question
// is a game. [Failover] answers
//
//   - Yes, when every choice and every order of the failures leaves room. Either there is
//     so much that any placement will do, which is shown by counting, or a placement was
//     found for each failure, after which all further failures were looked at;
//   - No, with a [Counterexample] that can be checked without the search: see
//     [Counterexample.Verify];
//   - Open, when neither was found within the effort: [FailoverResult.Lower] failures are
//     survived for certain, and more than [FailoverResult.Upper] are not.
//
// VMs are restarted under the conditions of package placement, as in production, on the
// reservations of the fleet. Those on hosts that have not failed stay where they are; VMs that
// ask to be with others are restarted last, in any order. A host that is down cannot fail
// again, and its VMs are not looked at.
//
// [Strand] says which free room no VM can use, and [Admit] how many more VMs there is
// room for while the fleet survives.
//
// The package is pure: no clock, no chance, no I/O. An answer depends on the question
// alone.
package plan
