// Package sim runs a cluster in virtual time: the controller and the agents that
// run in production, over a store in memory and modelled hypervisors.
//
//	scenario ──► [World] ──► trace, invariants, [Result]
//	               │
//	   controller  agents  operator  faults     one event at a time
//	        └────────┴────── store ──┘
//	                 └────── network (modelled hypervisors and links)
//
// A World takes one event after the other: something happens on the network, a
// participant looks, an operator acts, something breaks. After each the
// invariants are checked. All chance comes from one [Chooser], so that the same
// scenario and the same seed give the same trace, byte for byte.
//
// The caller (1) builds a world with [New], adds hosts and VMs, (2) schedules
// what operators do and what breaks with [World.At], (3) runs it, and (4) reads
// the [Result]. Nothing here decides anything about a migration.
//
// In code (the package example runs):
//
//	w := sim.New(sim.Config{Chooser: sim.Seeded(1)})
//	// w.AddHost, w.AddVM …
//	w.At(10*time.Second, sim.Drain{Host: "n1"})
//	ending := w.Run(time.Hour)
//	fmt.Println(ending, w.Result().Migrations)
//
// # Event queue
//
// This part keeps what is to happen in a simulated world, and when.
//
// # Lower bound
//
// This part says how long some moves must take at least, by any policy,
// and how results are spread.
//
// Every byte that must move crosses the links of both hosts once, and the up-links of
// their racks when these differ. The narrowest link for what crosses it decides.
//
// # Times of drains
//
// This part keeps, of every host that was drained, when it was empty. The caller
// says which VMs come to a host and which leave it, by the records.
//
// # Failover
//
// This part makes worlds in which host failures are found, fenced and made up for
// by the code that does so in production: every agent sends heartbeats, and a failover controller
// beside the controller watches for them, has hosts cut from power, and has their VMs
// rebuilt elsewhere.
//
// A world without this part is faster: it knows by itself which hosts are silent.
//
// # Fault injection
//
// This part holds the connections of a simulated process: to the store and to
// its hypervisor, with what can go wrong on them. Either passes everything on
// until a fault is switched on. It decides nothing.
//
// # Dirty rates
//
// A controller knows of guests what agents have measured: [DirtyRates] is that, for the records of VMs.
// Agents of a world measure nothing unless they are configured to: a record without it is of a VM that was
// not measured.
//
// # Invariants
//
// This part says what holds in every simulated world, whatever breaks: the
// promises of godwit, each a named function, written once and checked everywhere.
// It looks at a world and changes nothing.
//
// # Statistics
//
// This part keeps the statistics of a simulated world: what each migration was last said to be,
// what it holds of the limits, how it ended, where VMs are at home, and when drained hosts were
// empty, by the records alone; and how long guests stood that should have run, by the records
// and by what the guests did. It decides nothing, and reads no clock: times are
// virtual, and the caller's.
package sim
