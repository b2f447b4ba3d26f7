// Package agent acts for one host: it prepares targets, drives sources, cleans
// up what is left of VMs that have moved, and keeps the host's VMs running.
//
//	controller                 target's agent            source's agent
//	chooses a target     ──►   makes room: Ready
//	claims the VM        ──►   Receive: Address
//	                                                     announces: Began
//	                                                     Migrate:   Started
//	                           sees the VM run: Completed
//	or                                                   sees the VM kept: Failed
//	or                         Discard: Discarded   ◄──  stopped, outcome Unresolved
//	                                                ──►  Resume with that Evidence
//	VM.Host = target     ──►                             Release with Evidence
//
// The life of a VM is what its operator's fields of [store.VM] say: that it runs, is off, has
// rebooted so often, is so large. What is about to be done is stored before it is done
// ([store.VM.Operation]), and why something is not done is stored, too ([store.VM.Trouble]).
//
// It decides nothing about a migration except what its own host alone can know.
// An [Agent] is synchronous, as package controller is: no clock, goroutine,
// channel or lock. It keeps nothing that the store and the hypervisor do not
// have, and may die at any instruction: every command may be repeated.
//
// # What it never does
//
//   - It sends nothing, and starts no VM anew, that it has not announced in the
//     store before: a claim of the VM, or an end of the migration, meanwhile has changed
//     the record, and the announcement fails.
//   - It does not take absence for proof. A source that announced the beginning
//     and knows of no transfer asks the target, even when no start is remembered.
//   - It lets a source that has stopped go on only with evidence that the target
//     never ran. When the target is dead but may have run, the memory is given up.
//   - It removes a copy only when the record says that the VM moved, by this very
//     migration, or that it was rebuilt elsewhere. What executes is left alone.
//   - While its own host is being fenced, or was, it starts, activates and resumes
//     nothing and sends nothing: what is announced is on condition that it is not.
//   - It touches no domain that no record says is its own ([Agent.UnmanagedDomains]).
//
// A caller looks as often as it is told to:
//
//	a := agent.New("n2", agent.Config{}, host, store, store.DiscardEvents{}) // host is a hypervisor
//	wake, err := a.Reconcile(ctx, time.Now())                          // looks once, acts once
//	if err != nil {
//		fmt.Println(err) // what could not be done is tried again
//	}
//	fmt.Println("again at", wake)
//
// # Migration cache
//
// This part keeps the migrations that concern one host, and what convergence remembers of
// those under way. It decides nothing, and keeps what it is given: no other code may change that.
//
// # Local VMs
//
// This part says whether one host has room for a VM: for one that is to come, whatever
// the controller has reserved, and for one that is at home and is to start or to grow.
// It looks at what the host's own hypervisor answers, and touches nothing.
//
// # Mapping of options
//
// This part puts the options of a migration into the terms of those who carry it out. It
// decides nothing.
//
// # Workqueue
//
// This part keeps what an agent is to look at: now, at its time, or once more after it
// could not be dealt with. It decides how long to wait after a failure, and nothing else.
package agent
