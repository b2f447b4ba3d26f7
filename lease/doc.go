// Package lease tells who lives, and who leads, without comparing clocks.
//
// Whoever lives changes its lease in the store again and again ([Beater]). Whoever
// watches takes an owner for silent when it has not seen the lease change for a
// while by its own clock ([Watch]): clocks may differ by minutes, or run backwards.
// Of several controllers one leads ([Elector]); what it writes is on condition that
// nobody has taken over since ([Guard]). [Led] puts these together: it is the
// participant that a controller's process runs.
//
//	follows ──the leader is silent, has resigned, or has started again──► leads
//	   ▲                     compare and swap, one term up                  │
//	   └── a write is refused, another leads, or another has our name ──────┘
//
// Silence proves nothing about what a host runs, nor that a leader has stopped. Who is
// silent may only be slow. A leader that was stopped in the middle of its work, and goes
// on when another leads, still believes in itself; the store refuses what it writes.
//
// A caller gives each start of a process a session of its own, and stops one of two
// processes with the same name when an [IdentityError] says so: the second never leads.
//
// Some stores have leases of their own, as etcd does. They are not used. A lease of ours
// is a record like any other: it is the same over etcd, over a file and in memory, so the
// simulator runs, with all that can go wrong, the very code that production runs. And a
// store's lease that has run out does not stop who believes to hold it: the condition on
// every write does, and with it nothing depends on whose clock runs how fast. A clock
// that is wrong can cost an election.
package lease
