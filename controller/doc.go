// Package controller turns decisions into moves. It holds the two participants
// and the port to where they keep what they know:
//
//	operator ──► [Store] ◄──► [Controller]   decides, for the whole cluster
//	                ▲
//	                └───────► [Agent]        acts, one for each host ◄──► hypervisor
//
// Participants are synchronous: Reconcile looks once, acts once, and says when
// it next wants to look. There is no clock, goroutine, channel or lock in this
// package; production calls Reconcile in real time, the simulator in virtual
// time.
//
// # Records
//
// Everything known is in three kinds of [Record]: [Migration], [VM] and [Host].
// Every field has one writer, named in its documentation. A record is written as
// a whole, on condition that nobody wrote it since it was read: whoever loses
// that race reads again and decides again.
//
// # The hand-over
//
//	controller                 target's agent            source's agent
//	chooses a target     ──►   makes room: Ready
//	claims the VM        ──►   Receive: Address
//	                                                     announces: Began
//	                                                     Migrate:   Started
//	                           sees the VM run: Completed
//	or                                                   sees the VM kept: Failed
//	or                         Discard: Discarded   ◄──  stopped, outcome Unresolved
//	                                                ──►  Resume with that Evidence
//	VM.Host = target     ──►                             Release with Evidence
//
// Until Began is written the controller may end the migration: the source's
// write then finds another version and nothing begins. Afterwards only Completed
// and Failed end it.
package controller
