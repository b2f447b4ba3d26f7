// Package guard stands between godwit and decisions that somebody else wrote, and says when
// they are none: a policy that panics, answers nonsense, answers differently when it is asked
// the same again, asks for what the configuration forbids, or writes what it was only shown.
//
//	book := &guard.Book{}
//	config.Agent.Converge = guard.Convergence(book, "mine", mine)
//	…
//	book.Finding() // the first thing that was wrong, by the policy's name, or nil
//
// Whoever makes a decision (1) wraps it, (2) runs whatever asks it, and (3) asks the [Book].
// After a finding the guard answers in the policy's place, something harmless, so that the
// caller can come to an end. Every question is asked twice; arguments are compared with
// copies of them at the first questions and at some of the later ones.
//
// A guard never changes an answer that is one. It has no goroutines and no clock: a call that
// does not return is found by whoever has both, with [Book.Pulse] and [Book.Abandon].
package guard
