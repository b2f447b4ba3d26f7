// Package storetest is the conformance suite of stores: what every implementation of
// [record.Store] does, as cases that are run on a store with nothing in it. It looks at a
// store through its port only, and at no clock: it waits for what must come, and never
// demands that something is quick.
//
// A store's author describes how to open one, and what can be done to it, and runs the
// suite:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Subject {
//			s := openStore(t) // a fresh one, closed by t.Cleanup
//			return storetest.Subject{Store: s}
//		})
//	}
//
// The groups are functions of their own, for whoever wants only some of them. Everything
// in a [Subject] but the store is optional. What it lacks is skipped, with the reason, and
// so is waiting where the store is no [record.Waiter].
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
