// Package facts reads what a file says about hosts and VMs beside their size: all
// that the conditions on a target look at (packages placement and filter).
//
// [Host] and [VM] are the fields of godwit's own YAML, [Shared] is what hosts and
// VMs refer to by name, and a [Reader] turns them into [placement.Facts] and
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
// What a file does not say of a host is unknown, and refuses nobody, unless a VM
// asks for it. A VM asks by its constraints and by its hardware: a machine type, a
// CPU model, huge pages, pins and local disks are demands on every host.
//
// Files come from strangers: every value is checked, and no input panics.
package facts
