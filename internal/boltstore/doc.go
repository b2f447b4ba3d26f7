// Package boltstore is a store in one file, for one machine: bbolt underneath, and one process
// that has it open at a time. Others on the machine reach it through that process, by its socket.
//
// Every write is a transaction of its own that is on the disk when it is acknowledged. A
// store that is killed, at whatever moment, holds every acknowledged write when it is opened
// again, and each of the others wholly or not at all.
//
// A file that is damaged is never opened, and never written to. Everything in it is checked
// before: each page, and a sum over all records that is written with each of them, so that
// not even a whole page goes missing unnoticed. A file that a newer godwit has written is
// refused, untouched, too. bbolt itself would take the page of the last write for an
// interrupted one when it is damaged, and go back to the write before; here that is damage:
// a page that tells the last write fits into one sector, which a disk writes or does not.
//
// The history of the feeds is kept in memory only: a client that reads for the first time since
// the file was opened is answered everything. Versions and revisions begin anew, by the
// clock and above all that are stored, each time the file is opened. So when an older copy
// of the file takes its place, no version is given a second time to something else, and no
// reader takes the history that was lost for the one that is.
//
// All records are in memory, too: reads ask no disk. When a write fails and it is not known
// how much of it is on the disk, the store answers nothing any more until it is opened
// again.
//
// # Access by a socket
//
// This part is a store that another process of the same machine has open, through a
// Unix socket: HTTP with one JSON value each way.
//
// [Serve] answers with a store on a socket that [Listen] made, which only its own user can
// reach. [ServeTo] and [ListenTo] let groups of the machine reach it: each peer has a [Role], by the
// kernel's word, and each operation and each field of a record needs one. [ListenTLS] and [DialTLS] do the same
// over a network for any store, with peers known by their certificates; the agent of a host may change
// what is its host's (agentMay). A [Client] is that store in another process. It keeps no connection that it could
// not do without, so it outlives the server: while there is none, everything is
// Unavailable, and afterwards it goes on.
//
// A write whose answer is lost is Unanswered: it may have happened. One that did not reach
// a server is Unavailable. To wait is a request that is answered late, and ends with
// either side.
//
// The server trusts no client. What is not understood, or is too big, is refused and does
// nothing. Every request and every answer says which version of the protocol and of the
// records it speaks ([Protocol], [store.Format]); a side that meets a newer one refuses to go
// on, and says which side is to be upgraded.
package boltstore
