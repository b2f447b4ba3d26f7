// Package plan says what a plan for a fleet is: hosts and VMs, who is where, and
// moves in waves.
//
// A [Fleet] is a snapshot; [State] is the fleet after some moves. Whether a host
// takes a VM is decided by the conditions of package placement, on the same books
// as in production: while a VM moves, its room is taken on both hosts. Package
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
package plan
