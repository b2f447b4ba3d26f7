// Package drive is all of production's concurrency: it calls synchronous participants
// again and again, in real time.
//
// A participant looks once, acts once, and says when it wants to look again
// ([Reconciler]). [Run] calls one from one goroutine, and has one other that waits for
// hints. [Group] runs several and stops all when one ends. A caller
//
//  1. gives each participant to one [Loop] only: it is never called twice at a time;
//  2. sees to it that Reconcile and Wait return soon after their context has ended:
//     nothing else can stop them;
//  3. starts the process again when Run answers an error: what a participant kept in
//     memory is gone then, and does not matter.
//
// It decides nothing, imports nothing of godwit, and retries nothing by itself: a
// participant says when.
package drive
