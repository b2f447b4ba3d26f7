// Package contest lets convergence policies bring the same transfers to an end, and measures
// what it cost: time, blackout, brown-out and bytes.
//
// A [Trace] is a guest: how it dirties its memory over time. [Traces] makes them by named
// distributions from seeds, so that everybody can repeat a contest. [Run] lets one policy
// move one guest over one link of the modelled hypervisor, looking as often as godwit's
// agent does, with permissions that are the same for all ([Terms]). [Sum] makes a [Row] of
// a table from many runs.
//
// The policy is the very function that an agent runs: one of godwit's own, one of package
// peers, or yours. The package decides nothing.
package contest
