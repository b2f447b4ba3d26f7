// Package controller decides for a whole cluster: which migrations there are,
// what each does next, where it goes, and who leaves a host.
//
//	operator ──► store ◄──► [Controller]   decides
//	               ▲
//	               └──────► agents         act, one for each host
//
// It asks the pure packages, stores what they decide, and acts on nothing but the store: package
// agent does the rest. A [Controller] is synchronous: Reconcile looks once, decides once, and
// says when it next wants to look. There is no clock, goroutine, channel or lock here; production
// calls Reconcile in real time, the simulator in virtual time.
//
// # What it promises
//
// It keeps nothing that the store does not have, and may die after any write. A state is stored
// before an agent acts on it. Until the source has announced that it begins
// (record.SourceReport.Began) it may end a migration: the source's write then finds another
// version, and nothing begins. Afterwards only what the agents report ends it, or evidence that
// both copies are dead.
//
// A VM names the migration that moves it (record.VM.Claim) before that is handed over, and until
// it has been written down where the VM is. No other migration may have the VM meanwhile, also
// when the one that it names has ended, or is gone. Nobody else acts between the claim and the
// hand-over: who goes through Scheduled to PreparingTarget is stored once.
//
// A target is chosen by package migration/placement/choose, with what the VM has always asked
// for and what this migration asks for besides. From the writing that names it the VM holds the
// target and the migration the source, until it ends: the records are the reservations. Before
// the VM is handed over the target is asked once more, so that of two who gave the same room
// away at most one goes on. What a forced move violates stays with the VM as a debt.
//
// A host that fails migrations is tried by one at a time, and after a back-off: see package
// migration/health. What is known of it follows from the stored migrations.
//
// A VM that is off and is to run is started by the agent of its host. Where that host takes no
// VM, because it is drained, closed, full or not heard, the controller gives it to another: a
// record.Rebuild with the word of the old host's agent that the VM is off is stored first.
//
// A notification that is lost costs at most [Config.Resync], a failed write [Config.Retry].
//
// In code (the package example runs; package drive calls Reconcile in real time):
//
//	c := controller.New(controller.Config{}, store, record.Silent{})
//	wake, err := c.Reconcile(ctx, time.Now()) // again at wake, or when the store changes
package controller
