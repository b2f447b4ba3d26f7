// Package sim runs a cluster in virtual time: the controller and the agents that
// run in production, over a store in memory and modelled hypervisors.
//
//	scenario ──► [World] ──► trace, invariants, [Result]
//	               │
//	   controller  agents  operator  faults     one event at a time
//	        └────────┴────── store ──┘
//	                 └────── fabric (modelled hypervisors and links)
//
// A World takes one event after the other: something happens on the fabric, a
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
package sim
