// Package controller decides for a whole cluster: which migrations there are,
// what each does next, where it goes, and which VMs leave a host.
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
// (store.SourceReport.Began) it may end a migration: the source's write then finds another
// version, and nothing begins. Afterwards only what the agents report ends it, or evidence that
// both copies are dead.
//
// A VM names the migration that moves it (store.VM.ActiveMigration) before that is handed over, and until
// it has been written down where the VM is. No other migration may have the VM meanwhile, also
// when the one that it names has ended, or is gone. No other participant acts between the claim and the
// hand-over: a migration that goes through Scheduled to PreparingTarget is stored once.
//
// A target is chosen by package migration/placement, with what the VM has always asked
// for and what this migration asks for besides. From the writing that names it the VM holds the
// target and the migration the source, until it ends: the records are the reservations. Before
// the VM is handed over the target is asked once more, so that of two controllers that gave the same room
// away at most one goes on. What a forced move violates stays with the VM as a debt.
//
// A host that fails migrations is tried by one at a time, and after a back-off: see package
// migration. What is known of it follows from the stored migrations.
//
// A VM that is off and is to run is started by the agent of its host. Where that host takes no
// VM, because it is drained, cordoned, full or not heard, the controller gives it to another: a
// store.Rebuild with the word of the old host's agent that the VM is off is stored first.
//
// A notification that is lost costs at most [Config.Resync], a failed write [Config.Retry].
//
// In code (the package example runs; this package calls Reconcile in real time):
//
//	c := controller.New(controller.Config{}, store, store.DiscardEvents{})
//	wake, err := c.Reconcile(ctx, time.Now()) // again at wake, or when the store changes
//
// # Run loop
//
// This part is all of production's concurrency: it calls synchronous participants
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
//
// # Failover
//
// This part decides what becomes of a host that is silent, and of its VMs.
//
//	heard ──silent for Grace──► lost ──silent for FenceAfter──► being cut ──proved──► fenced
//	  ▲                          │                                 │                    │
//	  └─────── heartbeat ────────┴──────────── heartbeat ──────────┘    its VMs are rebuilt
//	  ▲                                                                 on other hosts
//	  └───────────────────────── another start of the machine ──────────────────────────┘
//
// Silence proves nothing: a VM is given to another host only when its own was fenced,
// or when an operator confirmed that it is down. Every such writing is on condition that
// host and lease are still stored as they were read, so neither a stale view nor a
// second failover controller can act on what is no longer so. A table of rules (failover_decide.go)
// decides about one host, and [FailoverConfig.StormShare] about all; [FailoverController] carries it out.
//
// A host whose agent begins may have been away while its VMs went elsewhere, and while the store was
// set back to before that. Its agent is admitted by the leader, when that has asked all hosts whether one knows a
// newer store.
//
// A caller (1) lets one failover controller write at a time, by giving it a store.FencedStore as store;
// (2) gives every agent a lease; (3) lets agents start nothing while the record of
// their host says that it is being fenced or was.
//
// This package starts no VM, cleans up none, and switches no host on again.
package controller
