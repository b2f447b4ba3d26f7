// Package remote is a store that another process of the same machine has open, through a
// Unix socket: HTTP with one JSON value each way.
//
// [Serve] answers with a store on a socket that [Listen] made, which only its own user can
// reach. A [Client] is that store in another process. It keeps no connection that it could
// not do without, so it outlives the server: while there is none, everything is
// Unavailable, and afterwards it goes on.
//
// A write whose answer is lost is Unanswered: it may have happened. One that did not reach
// a server is Unavailable. To wait is a request that is answered late, and ends with
// either side.
//
// The server trusts nobody. What is not understood, or is too big, is refused and does
// nothing. Every request and every answer says which version of the protocol and of the
// records it speaks ([Protocol], [record.Format]); whoever meets a newer one refuses to go
// on, and says which side is to be upgraded.
package remote
