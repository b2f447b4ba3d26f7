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
// The package decides nothing about time: how long a move takes is for the
// simulator to say. It starts no goroutine and reads no clock.
package plan
