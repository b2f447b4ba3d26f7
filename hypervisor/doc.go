// Package hypervisor is the vocabulary of godwit and its port to the machines
// that run virtual machines.
//
// The vocabulary: a [VM] is what is to run, a [Host] is where it may
// run, and a [Domain] is a VM as one host sees it. A migration moves a VM from a
// source to a target; hypervisors know it by its [JobID].
//
// The port: [Hypervisor] runs the virtual machines of one host. Its methods
// never wait for a migration, may all be repeated, and are safe for concurrent
// use. A backend keeps five promises:
//
//  1. A source that stopped for the switch-over never resumes on its own: it
//     resumes with [Evidence] that the target did not and will not run.
//  2. A target starts only when it holds the complete state of a source that
//     has stopped.
//  3. A stopped source is kept until the caller says, with Evidence, that the VM
//     has moved.
//  4. An operation whose outcome is not known answers [Unknown], never a guess.
//  5. What is asked of one VM happens in the order in which it was asked: when something has
//     happened, what was asked before it and answered Unknown happens no more.
//
// # Which kind of error
//
// Every error is an *[Error]; its [Kind] tells the caller what to do. Where several kinds would
// fit, a backend answers the first that applies:
//
//  1. [Transient], when the caller's context has ended: the call had no effect, and the error
//     wraps the context's.
//  2. [NotFound], when the host does not know the VM or the job. Discard, Forget and Release (with
//     evidence) of an unknown VM are done already, and no error; Start, Receive and Migrate say
//     for themselves what they need.
//  3. [Unsupported], when the host lacks the ability (see [Abilities]). For an unknown VM or job it
//     may answer this as well, and for arguments that can never be right Invalid.
//  4. [Invalid], when the arguments can never be right: no evidence, a name that is empty or is
//     another VM's, a size or a limit that is none.
//  5. [Conflict], when the present state forbids it. Evidence about another VM, host or job, and a
//     proof that does not prove what the command needs, are a Conflict too: they are well formed,
//     and do not fit this domain.
//  6. [NoRoom], when the VM does not fit into what the host has left.
//
// What was refused has changed nothing, and does not use up the job: the same job may be asked for
// again when the reason is gone.
//
// # Repeating
//
// Every call may be repeated with the same arguments. One that has taken effect answers no error
// again, as long as nothing else has been asked of the VM since; it never has its effect twice.
// Many callers may ask for the same at the same time: it happens once, and all of them get the
// answer.
//
// # What outlives a process
//
// A backend is asked by a process that may die at any moment. The next one finds every domain and
// every job as they were: state, Job, Unresolved, the status, mode, start and bytes of a job, the
// address of a target that listens, a stop that is under way, and which jobs were discarded. VMs
// and migrations do not notice. The same holds after the host had no power, except that VMs rest
// then (Shutoff or Crashed), targets that still received are gone, and jobs on the way have
// failed.
//
// # What becomes of a VM when something dies
//
//   - The VM's process dies: the domain is Crashed, stays visible and may be started anew. Stop and
//     Kill of it are done already.
//   - The target's process dies, hangs or loses its host's power while memory moves: the job is
//     JobFailed, or can be cancelled, and the source runs on.
//   - The source's process dies while memory moves: the job is JobFailed or JobBroken, never
//     JobNone, the source is Crashed or Shutoff and keeps its Job, and the target never runs.
//   - The link is lost while memory moves: the job stays JobActive until the hypervisor notices,
//     and goes on when the link is back. It can be cancelled. A connection that is closed fails
//     the job.
//   - The link is lost around the switch-over: the job is JobBroken if the host cannot know what
//     the other side does, and the domain is then, and only then, Unresolved. The source does not
//     run again by itself.
//   - The process of a target that holds everything dies before it is activated: with
//     [CanTakeBack] it is discarded and the source resumes; without, it is Crashed and stays
//     visible.
//   - The VM dies after it has come: it is Crashed at its target, under the Job, and Discard
//     answers Conflict. The source waits as HandedOver.
//
// This package does no I/O, starts no goroutine and reads no clock.
//
// In code:
//
//	address, err := target.Receive(ctx, hypervisor.Incoming{Job: "move-1", VM: vm})
//	if err == nil {
//		err = source.Migrate(ctx, hypervisor.Outgoing{Job: "move-1", VM: vm.ID, Address: address})
//	}
//	if errors.Is(err, hypervisor.Unknown) {
//		// it may have taken effect: observe, then decide
//	}
//	p, err := source.Progress(ctx, "move-1")
package hypervisor
