// Package store is what is stored about migrations, VMs and hosts, and the port
// to where it is stored.
//
// Everything known is in three kinds of [Record]: [Migration], [VM] and [Host].
// Every field has one writer, named in its documentation. A record is written as
// a whole, on condition that no other process wrote it since it was read ([Store.Put]):
// a writer that loses that race reads again and decides again. So a record is also
// where participants meet: the source's agent announces that it begins, and the
// controller that the migration has failed, and only one of the two succeeds.
//
// A participant reads a [Feed]: all records, or those that concern one host. It
// may read late, and twice, and misses nothing: the store answers what has
// changed since, or everything.
//
// The name of a migration is never used a second time: hypervisors remember it.
// Only the controller deletes migrations; to end one, set Cancel.
//
// This package decides nothing and does no I/O. [Memory] is a store for
// simulations and tests.
//
// # Leases
//
// This part detects failed hosts, and elects the leader, without comparing clocks.
//
// A participant that lives changes its lease in the store again and again ([Renewer]). An
// observer takes an owner for silent when it has not seen the lease change for a
// while by its own clock ([FailureDetector]): clocks may differ by minutes, or run backwards.
// Of several controllers one leads ([Elector]); what it writes is on condition that
// no other has taken over since ([FencedStore]). [LeaderRunner] puts these together: it is the
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
// store's lease that has run out does not stop a process that believes to hold it: the condition on
// every write does, and with it nothing depends on whose clock runs how fast. A clock
// that is wrong can cost an election.
//
// # Change log
//
// This part remembers what has changed in the feeds of a store, for stores that keep
// no history of their own.
//
// A [ChangeLog] knows which records are in each feed, and which were the last to change. It lives
// in memory: a caller that read the store before it was opened is answered everything. It holds
// no records; its owner does, and keeps others from it meanwhile.
package store
