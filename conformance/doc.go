// Package conformance is the conformance suite of backends: what every
// implementation of [hypervisor.Hypervisor] does, as cases that are run on two
// hosts and a VM. It looks at a backend through its port only, and at no clock:
// it waits for what must come, and never demands that something is quick.
//
// # Writing a backend
//
// First, implement [hypervisor.Hypervisor]: eight methods that ask, begin and command, and
// never wait. The first version needs no optional ability: a [hypervisor.Host] whose
// Abilities are zero moves VMs by plain pre-copy, and whatever else it is asked for it answers
// with [hypervisor.Unsupported]. Only [hypervisor.CanTakeBack] has to be decided at once: it
// says which side keeps the VM when a switch-over is undone. Every error is a
// *[hypervisor.Error] with its kind; one that is not classified is Unknown, and callers look
// again.
//
// Second, describe a [Lab]: two hosts that run nothing, and a small VM. Run the suite on it:
//
//	func TestConformance(t *testing.T) {
//		Hypervisor(t, func(t *testing.T) *Lab {
//			one, other := openHosts(t) // fresh ones, closed by t.Cleanup
//			return &Lab{
//				Source: one, Target: other,
//				VM: func(id hypervisor.VMID) hypervisor.VM {
//					return hypervisor.VM{ID: id, Memory: 64 * hypervisor.MiB, CPUs: 1}
//				},
//			}
//		})
//	}
//
// Third, let the Lab do more. Everything but the hosts and the VM is optional, and worth
// having in this order: Slow, without which nothing happens while memory moves; KillVM,
// CutLink and ResetLink, which are where VMs are lost; Reopen, for a process of ours that
// dies; Alive, Verify and Twice, which look past what the backend says of
// itself. What a Lab lacks is
// skipped, and so is what a host cannot do, once the host has answered Unsupported to it.
// [Hypervisor] counts the reasons at its end: a backend is done when what is skipped is what its
// hypervisor cannot do.
//
// Then claim abilities, one at a time. A host that has one is held to it.
//
// A whole backend in 130 lines, three that are wrong, and what the suite says of them are in
// the folder examples/backend.
//
// # What a failure means
//
// Subtests are named for what a backend does. Their groups, worst first:
//
//   - walk: a VM executed twice, or was lost. Nothing else matters until this passes. [Walk]
//     gives the same commands from rapid, which shrinks them.
//   - hold: a target started, or a source resumed or was removed, without evidence that the
//     other side will not run; or evidence was asked for that is not needed.
//   - failures: after a death or a lost link the two sides do not add up to one VM, or the
//     backend guesses what it cannot know. An outcome that is not known is Unresolved.
//   - reopen: something was kept only in the memory of our process.
//   - receive, migrate, adjust: a job is not what its name says: repeating it has an effect,
//     it answers for another job, or it ends twice.
//   - lifecycle, hardware: commands to a VM on one host; most often a wrong kind of error, so
//     that callers would repeat what cannot work, or give up what could.
//   - contexts, crowd: a call whose caller has gone took effect all the same; or callers at the
//     same time got in each other's way.
//
// A failure says what the suite waited for, which call asked for something last, with all of its
// arguments, what the host answered when it was looked at last, what both hosts say of all VMs and
// jobs, and the sentence of the port that the case rests on. A backend that panics, or whose call
// does not return, fails the case that called it, and the others are played: the message has the
// call and where it panicked.
//
// "waited in vain until …" is no matter of speed, unless Within is shorter than the hypervisor's
// own timeouts: the backend never got there.
//
// # Where backends differ
//
// The suite demands nothing that the documentation of package hypervisor does not say: each case
// rests on a sentence of it, and a failure prints that sentence. It accepts every answer that the
// port leaves open, as where backends notice at different times: a migration to where nothing
// listens, or where another machine is expected, is refused, or begins and fails while the VM
// runs on.
//
// A host without [hypervisor.CanTakeBack] has a hypervisor with a hand-over of its
// own. What the port allows it to refuse while that is under way it may refuse, and
// nothing may change by that; what needs take-back is replaced by cases that demand
// the opposite: that a target which holds everything is the only copy and is kept.
// They run only on such hosts. A host that has the ability is held to it.
//
// # Failures
//
// This part is cases about what goes wrong: processes, links and callers that are lost, our
// own process, and commands without sense.
//
// # State machine
//
// This part is cases about VMs on one host, and about targets that wait for a source.
//
// # Migrations
//
// This part is cases about migrations that go their way, and about what is done to them.
//
// # Harness
//
// This part is what cases of the conformance suite are played on: two hosts,
// what a case asks of them, and what it waits for. It decides nothing about
// backends; a method fails the case when what it asks for does not happen.
//
// # Stores
//
// This part is the conformance suite of stores: what every implementation of
// [store.Store] does, as cases that are run on a store with nothing in it. It looks at a
// store through its port only, and at no clock: it waits for what must come, and never
// demands that something is quick.
//
// Writing a store:
//
// First, implement [store.Store]: four methods. [store.Encode] and [store.Decode] turn
// records into bytes and back; [store.Feeds] says which feeds a record is in. Every error is
// a *[store.StoreError], whose kind says whether the write happened.
//
// Second, describe how to open a store, and what can be done to it, and run the suite:
//
//	func TestConformance(t *testing.T) {
//		Store(t, func(t *testing.T) Subject {
//			s := openStore(t) // a fresh one, closed by t.Cleanup
//			return Subject{Store: s}
//		})
//	}
//
// Third, let the [Subject] do more. Everything in it but the store is optional, and worth
// having in this order: Again, another client or the store opened anew; Crash, without which
// it is not known whether what was acknowledged is kept; Cut and Heal, for a store with a server;
// Compact, for one that forgets what has changed. What a Subject lacks is skipped, with the
// reason, and so is waiting where the store is no [store.Waiter].
//
// A store whose contents die with its process says that it is Volatile. A [store.Memory]
// is one, and needs a lock around it besides: the suite has many callers at a time.
//
// A whole store in 200 lines, three that are wrong, and what the suite says of them are in the
// folder examples/store.
//
// What a failure means:
//
// Each group is a subtest: go test -run 'TestConformance/ordered_change_hints' runs one alone.
//
//   - compare and swap: two participants can both believe that they have won. A VM may be
//     moved twice. Nothing else matters until this passes.
//   - crash between any two writes: a write was acknowledged and is lost, or is there in part: a participant
//     acted on what is not remembered.
//   - ordered change hints, stale reads: a reader that asked what has changed was not told all of it. It
//     would decide on what is no longer so, for ever.
//   - wait: a waiter was not woken: participants look too late, at their next poll.
//   - partition: the store said that a write had failed, or had not, and did not know:
//     that is [store.Unanswered].
//   - lost leadership: a controller that no longer leads has written all the same.
//   - values, errors: a record is not read as it was written, or an error has no kind, or
//     the wrong one.
//
// Where stores differ:
//
// Where the port leaves something open the suite accepts every answer that does no harm: a
// record may be in an answer more than once; the order is that of its last mention. A
// store may say Reset whenever it likes, and wake a waiter for nothing. It may refuse what
// it cannot keep, such as a name that is not text, and must refuse it with an error
// instead of keeping something else.
//
// What it never accepts: a write that was acknowledged and is lost, a write that was
// refused and happened, a reader that was told of less than has changed, and an error that
// is no *[store.StoreError].
package conformance
