// Package godwit is the module of godwit: live migration and evacuation of virtual machines, as
// decisions that a controller of one's own embeds, a simulator that runs the same code in virtual
// time, and a command line. It has no code itself; start at one of these packages:
//
//	hypervisor      the types (VM, Host, Domain, Bytes) and the interface that a backend implements
//	migration       PURE: what one migration does next, step by step; its policies, limits, placement
//	evacuation      PURE: which VMs must leave a host, how many at once, in which order
//	controller      a cluster's migrations and drains, to be embedded: one method, Reconcile
//	agent           a host's part of them, in the same way
//	store           what is stored, the interface of a store, heartbeats, leases of leadership
//	sim             clusters in virtual time: scenarios, faults, invariants, traces
//	sim/simtest     property tests for policies, stores and backends of one's own
//	plan            drains, maintenance and failover capacity of a fleet, with proofs
//	inventory       fleets from godwit's own files; the commands also read KubeVirt, libvirt, Nova, Ganeti
//
// Backends are hypervisor/qmp (QEMU), hypervisor/libvirt and hypervisor/fake (a model); package
// conformance tells whether a backend of one's own is right.
//
// What decides is a pure function: time, chance and what was observed are its arguments.
//
//	config := migration.Config{}.Complete()
//	d := config.Step(&spec, &state, &migration.Observation{Now: now, VM: guest, Gate: gate})
//	for action := range d.Actions.All() {
//		perform(action)
//	}
//
// What acts is synchronous, and production and the simulator call it in the same way:
//
//	c := controller.New(config, store, recorder)
//	wake, err := c.Reconcile(ctx, now)
//
// A Decision, and everything else that is decided, prints and marshals as words: it can be logged
// as it is. Whole programs are in the folder examples: embed (the decisions in a reconciler of one's own), policy,
// backend, store and libvirt-drain.
package godwit
