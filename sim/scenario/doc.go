// Package scenario reads what a simulated world shall be, and what shall happen
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
// inventory: FILE, of any format of package inventory/formats. workloads: FILE.csv lays
// measured dirty rates over it, by VM. trace: FILE adds
// VMs whose load was recorded, see [TraceSpec]; model: FILE is what hypervisors
// cost, as godwit calibrate writes it. An event is one line of text: when, a
// verb, and what it is done to; [Verbs] lists them.
// Tests write the same lines in their transcripts. What differs from seed to seed
// is in vary: [Scenario.Draw] draws it.
//
// This package decides nothing, and every error names file, line and field.
package scenario
