// Package config reads what a simulated world shall be, and what shall happen
// in it, from YAML:
//
//	name: one host is drained, its link breaks for a minute
//	hosts:
//	- {name: "n[1-3]", memory: 256GiB, cpus: 64, link: 10Gbit/s}
//	vms:
//	- {name: "web-[1-10]", host: n1, memory: 8GiB, cpus: 4, class: web}
//	events:
//	- 0s drain n1
//	- 30s cut n1 n2 for=1m
//
// The fleet is written in place, as package inventory reads it, or is read with
// inventory: FILE, of any format of package internal/importer. workloads: FILE.csv lays
// measured dirty rates over it, by VM. trace: FILE adds
// VMs whose load was recorded, see [TraceSpec]; model: FILE is what hypervisors
// cost, as godwit calibrate writes it. failover: {} lets silent hosts be fenced and their VMs be
// restarted elsewhere, as in production: see [SimulatedFailover]. An event is one line of text: when, a
// verb, and what it is done to; [Verbs] lists them.
// Tests write the same lines in their transcripts. What differs from seed to seed
// is in vary: [Scenario.Draw] draws it.
//
// This package decides nothing, and every error names file, line and field.
//
// # Configuration of daemons
//
// This part reads the file that configures a controller: limits, policies, how hosts
// are emptied, timeouts and quotas.
//
//	evictionStrategy: None               # of VMs that say nothing; default: LiveMigrate
//	config: {parallelMigrationsPerCluster: 10, bandwidthPerMigration: 2Gbit/s}
//	policies:
//	- {name: slow, selectors: {virtualMachineInstanceSelector: {app: db}}, allowPostCopy: true}
//	namespaces: {prod: {tier: gold}}
//	evacuation: {mode: FreeSpots, order: SmallestFirst}   # or order: Adaptive
//	onUnmovable: Restart                 # or Keep, ShutDown: VMs that a drain cannot migrate
//	grace: 5m                            # that their guests have to shut down
//	timeouts: {pending: 12h, transfer: 2h}
//	backoff: {base: 20s, cap: 5m}
//	quotas: {acme: {memory: 512GiB, cpus: 128}}
//	failover: {grace: 30s, fenceAfter: 1m, stormShare: 0.34}
//
// Everything is optional. What is wrong is said at once, each with its line. A scenario of the
// simulator is read by the same parser: whatever it says of a controller may stand here.
//
// # Costs of a model
//
// This part reads and writes a model of hypervisors, [fake.Model], as YAML:
//
//	base: qemu           # what is not said below; qemu (default) or ideal
//	setUp: 2ms
//	firstTouch: 1600MB/s
//	compression: 23      # what remains of a page, in parts per thousand
//
// The fields are those of the model, with units. godwit calibrate writes such a file, and a
// scenario takes one: see [ModelChoice].
//
// # Distributions
//
// This part draws how a world differs from its scenario: named distributions
// of factors, and faults that may come.
//
//	dirty: lognormal(0.5)       # each VM's rates, times a factor of its own
//	workingSet: uniform(0.5, 2) # each VM's hot set
//	link: triangular(0.5, 1, 1) # each host's link
//	faults:
//	- 10% within 1h crash-agent any-host for=30s
//	- 3x within 2h reset any-host any-host
//
// What is drawn follows from the seed alone, and each field draws from a stream
// of its own: that one of them is left out does not change the others. Factors
// are rounded to millionths, so that they are the same on every machine.
package config
