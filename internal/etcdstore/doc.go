// Package etcdstore is a store of records in etcd, for several controllers and many agents.
//
//	PREFIX/r/KIND/NAME          a record; its version is the key's mod_revision
//	PREFIX/s/KIND/NAME          a lease or a leader, which other readers do not get
//	PREFIX/f/HOST/KIND/NAME     a marker: this record is in the feed of this host
//	PREFIX/h/all, PREFIX/h/signs, PREFIX/h/host/HOST
//	                            a head: written with every change of a feed
//
// A write is one transaction: it compares the revisions of the record and of those it
// depends on, and writes the record, its markers and the heads of its feeds. A marker is
// there exactly as long as its record is in the feed, so that nothing is left behind when
// the record goes, and each agent is told only of what concerns its host. A host's head
// goes with the host's record.
//
// One watch for each feed in use, in a goroutine of its own, keeps what has changed
// lately. [Store.Changes] first asks for the head, so that it answers all that was
// written before it was asked, by whomever; a watch that is silent or behind is noticed,
// and the feed is read in full, at one revision. So it is when etcd has been compacted,
// or put back to an older state.
//
// # What its operators have to do
//
// etcd keeps every revision until it is compacted, and leases change all the time: run it
// with automatic compaction, for instance --auto-compaction-mode=periodic and
// --auto-compaction-retention=1h. The package never compacts: others may use the cluster.
//
// # Rights
//
// [Rights] are users and roles of etcd for agents, controllers, operators and viewers. They are about
// keys: an agent writes its own host's record and lease, but the record of any VM.
//
// # What it never does
//
// It repeats no write: whether one has taken effect is the caller's to find out when the
// answer is [store.Unanswered]. It decides nothing by the text of an error.
//
// # Scale
//
// This part holds nothing but a test: what a migration costs in a real etcd, with up to
// 1,000 agents and a controller, and how that grows with the fleet.
package etcdstore
