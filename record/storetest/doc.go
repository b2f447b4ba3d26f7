// Package storetest is the conformance suite of stores: what every implementation of
// [record.Store] does, as cases that are run on a store with nothing in it. It looks at a
// store through its port only, and at no clock: it waits for what must come, and never
// demands that something is quick.
//
// # Writing a store
//
// First, implement [record.Store]: four methods. [record.Encode] and [record.Decode] turn
// records into bytes and back; [record.Feeds] says which feeds a record is in. Every error is
// a *[record.StoreError], whose kind says whether the write happened.
//
// Second, describe how to open a store, and what can be done to it, and run the suite:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Subject {
//			s := openStore(t) // a fresh one, closed by t.Cleanup
//			return storetest.Subject{Store: s}
//		})
//	}
//
// Third, let the [Subject] do more. Everything in it but the store is optional, and worth
// having in this order: Again, another client or the store opened anew; Crash, without which
// nobody knows whether what was acknowledged is kept; Cut and Heal, for a store with a server;
// Compact, for one that forgets what has changed. What a Subject lacks is skipped, with the
// reason, and so is waiting where the store is no [record.Waiter].
//
// A store whose contents die with its process says that it is Volatile. A [record.Memory]
// is one, and needs a lock around it besides: the suite has many callers at a time.
//
// A whole store in 200 lines, three that are wrong, and what the suite says of them are in the
// folder examples/store.
//
// # What a failure means
//
// The groups are functions of their own, for whoever wants only some of them:
//
//   - [CompareAndSwap]: two participants can both believe that they have won. A VM may be
//     moved twice. Nothing else matters until this passes.
//   - [Crash]: a write was acknowledged and is lost, or is there in part: a participant
//     acted on what nobody remembers.
//   - [Hints], [StaleReads]: a reader that asked what has changed was not told all of it. It
//     would decide on what is no longer so, for ever.
//   - [Wait]: a waiter was not woken: participants look too late, at their next poll.
//   - [Partition]: the store said that a write had failed, or had not, and did not know:
//     that is [record.Unanswered].
//   - [LostLeadership]: who no longer leads has written all the same.
//   - [Values], [Errors]: a record is not read as it was written, or an error has no kind, or
//     the wrong one.
//
// # Where stores differ
//
// Where the port leaves something open the suite accepts every answer that does no harm: a
// record may be in an answer more than once; the order is that of its last mention. A
// store may say Reset whenever it likes, and wake a waiter for nothing. It may refuse what
// it cannot keep, such as a name that is not text, and must refuse it with an error
// instead of keeping something else.
//
// What it never accepts: a write that was acknowledged and is lost, a write that was
// refused and happened, a reader that was told of less than has changed, and an error that
// is no *[record.StoreError].
package storetest
