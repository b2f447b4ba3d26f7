// Package controller decides for a whole cluster: which migrations there are,
// what each does next, where it goes, and who leaves a host.
//
//	operator ──► store ◄──► [Controller]   decides
//	               ▲
//	               └──────► agents         act, one for each host
//
// It asks the pure packages, stores what they decide, and acts on nothing but
// the store: package agent does the rest. A [Controller] is synchronous:
// Reconcile looks once, decides once, and says when it next wants to look. There
// is no clock, goroutine, channel or lock here; production calls Reconcile in
// real time, the simulator in virtual time.
//
// # What it promises
//
// It keeps nothing that the store does not have, and may die after any write. A
// state is stored before anything follows from it. Until the source has
// announced that it begins (record.SourceReport.Began) it may end a migration:
// the source's write then finds another version, and nothing begins. Afterwards
// only what the agents report ends it, or evidence that both copies are dead.
//
// A VM names the migration that moves it (record.VM.Claim) from the hand-over
// until it has been written down where the VM is. No other migration may have
// the VM meanwhile, also when the one that it names has ended, or is gone.
//
// A notification that is lost costs at most [Config.Resync], a write that
// failed [Config.Retry].
package controller
