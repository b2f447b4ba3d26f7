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
// Package internal/importer reads what kubectl, virsh and others print, into the same
// [Fleet], for the commands of godwit. Other programs cannot import it: they fill a [Spec]
// or a [Builder] from what they know.
//
// Files come from strangers. A reader answers every input, however hostile, in
// memory and time that are bounded, and without a panic: with a fleet, or with
// [Problems], each of which names the file, the line and the field. What can be worked with but should be known is
// in [Fleet.Warnings].
//
// A unit is never guessed: 64 is no amount of memory, 64GiB is. YAML anchors,
// aliases, tags and merge keys are refused.
//
// This package decides nothing about migrations and talks to no cluster.
//
// # Reservations
//
// This part turns a fleet that was read from a file into what placement works
// on: hosts with all that their VMs take of them, and VMs with all that they ask.
//
// It decides nothing and changes nothing: [OpenLedger] is a snapshot, and
// [Ask] is what package placement is asked about one VM of it.
//
// # Attributes of hosts and VMs
//
// This part reads what a file says about hosts and VMs beside their size: all
// that the conditions on a target look at (package placement).
//
// [HostAttributes] and [VMAttributes] are the fields of godwit's own YAML, [Shared] is what hosts and
// VMs refer to by name, and the reader turns them into [placement.Facts] and
// [placement.Constraints]. In short:
//
//	aggregates: {ssd: {disks: "ssd, nvme", filter_tenant_id: shop}}
//	groups: {db: {policy: anti-affinity, domain: rack}}
//	hosts:
//	- name: a1
//	  memory: 256GiB                  # what there is; VMs may use (memory-reserved)*ratio
//	  reserved: {memory: 8GiB}
//	  ratios: {cpus: 4}
//	  zone: a
//	  rack: r1                        # zone and rack are labels, too, unless labels say else
//	  aggregates: ssd
//	  devices: {nvidia-a100: 2}
//	  cells: [{cpus: 0-31, threads: 2, memory: 96GiB, pages: {1GiB: 32}}]
//	vms:
//	- name: db
//	  memory: 16GiB
//	  groups: db
//	  specs: {disks: nvme}
//	  topology: {dedicated: true, pageSize: 1GiB}
//	  hardware: {machine: pc-q35-7.2, disks: [{name: scratch, size: 40GiB}]}
//
// What a file does not say of a host is unknown, and refuses no VM, unless it
// asks for it. A VM asks by its constraints and by its hardware: a machine type, a
// CPU model, huge pages, pins and local disks are demands on every host.
//
// Files come from strangers: every value is checked, and no input panics.
//
// # Units
//
// This part reads amounts of memory, speeds and durations as people write
// them. A unit is never guessed: 64 is no amount of memory, 64GiB is.
package inventory
