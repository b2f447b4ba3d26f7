// Package inventory reads what a fleet looks like from files: its hosts, the
// VMs on them, the migration policies and the cluster's configuration.
//
// [ReadFleet] reads godwit's own short YAML; [Spec] is that YAML as a Go value,
// to be embedded in larger files, as scenarios are:
//
//	hosts:
//	- {name: "n[1-4]", memory: 256GiB, cpus: 64, link: 25Gbit/s}
//	vms:
//	- {name: "web-[1-20]", host: "n[1-4]", memory: 8GiB, cpus: 4, class: web}
//	- {name: db, host: n1, memory: 64GiB, dirty: 800MiB/s, workingSet: 6GiB}
//
// It is read in one call:
//
//	fleet, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(text))
//	if err != nil {
//		fmt.Println(err) // file, line and field of everything that is wrong
//		return
//	}
//	fmt.Println(len(fleet.Hosts), "hosts,", len(fleet.VMs), "VMs")
//
// Package inventory/kubevirt reads what kubectl prints, into the same [Fleet].
// It is a package of its own because it needs the Kubernetes API types.
//
// Files come from strangers. A reader answers every input, however hostile, in
// memory and time that are bounded by [MaxInput] and the limits beside it, and
// without a panic: with a fleet, or with [Problems], each of which names the
// file, the line and the field. What can be worked with but should be known is
// in [Fleet.Warnings].
//
// A unit is never guessed: 64 is no amount of memory, 64GiB is. YAML anchors,
// aliases, tags and merge keys are refused.
//
// This package decides nothing about migrations and talks to no cluster.
package inventory
