// Package record is what is stored about migrations, VMs and hosts, and the port
// to where it is stored.
//
// Everything known is in three kinds of [Record]: [Migration], [VM] and [Host].
// Every field has one writer, named in its documentation. A record is written as
// a whole, on condition that nobody wrote it since it was read ([Store.Put]):
// whoever loses that race reads again and decides again. So a record is also
// where participants meet: the source's agent announces that it begins, and the
// controller that the migration has failed, and only one of the two succeeds.
//
// A participant reads a [Feed]: all records, or those that concern one host. It
// may read late, and twice, and misses nothing: the store answers what has
// changed since, or everything.
//
// The name of a migration is never used a second time: hypervisors remember it.
// Only the controller deletes migrations; whoever no longer wants one sets Cancel.
//
// This package decides nothing and does no I/O. [Memory] is a store for
// simulations and tests.
package record
