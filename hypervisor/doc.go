// Package hypervisor is the vocabulary of godwit and its port to the machines
// that run virtual machines.
//
// The vocabulary: a [VM] is what somebody wants to run, a [Host] is where it may
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
//  3. A stopped source is kept until somebody says, with Evidence, that the VM
//     has moved.
//  4. An operation whose outcome is not known answers [Unknown], never a guess.
//  5. What is asked of one VM happens in the order in which it was asked: when something has
//     happened, what was asked before it and answered Unknown happens no more.
//
// This package does no I/O, starts no goroutine and reads no clock.
package hypervisor
