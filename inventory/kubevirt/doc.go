// Package kubevirt reads a fleet from what kubectl prints of a cluster with
// KubeVirt:
//
//	kubectl get nodes,vmis,vmims,migrationpolicies,kubevirts,namespaces,resourcequotas -A -o json
//
// [Read] takes that, the same as YAML, several such outputs one after another,
// and single objects. JSON is read several times faster than YAML. Objects are
// decoded one at a time with the API types of KubeVirt and Kubernetes, so that
// only the fleet itself is held in memory; objects of other kinds are left out
// with a warning.
//
// What is read from where:
//
//   - Node: what is allocatable, huge pages and devices included, labels, taints,
//     zone, and what KubeVirt's labels say of its processor and machine types. It is
//     closed when it is unschedulable, not ready, or without
//     kubevirt.io/schedulable=true, which virt-handler sets where VMs may run. Its
//     CPUs are multiplied by KubeVirt's cpuAllocationRatio, 10 unless the KubeVirt
//     object says otherwise. It takes as many VMs as it takes pods.
//   - VirtualMachineInstance: memory and CPUs of the guest, node, labels, eviction
//     strategy, whether it is migratable and why not, whether it was asked to
//     leave its node; and what its pod asks of a node: memory and CPUs that it requests
//     explicitly, or else the guest's memory by memoryOvercommit and one share of a CPU for
//     each virtual one; selector, required affinity to
//     nodes and to other VMs, tolerations, architecture, CPU model and features,
//     machine type, huge pages, dedicated CPUs, devices. Instances that have ended are
//     left out.
//   - VirtualMachineInstanceMigration: those that have not ended.
//   - MigrationPolicy, KubeVirt, Namespace: policies, configuration, labels.
//   - ResourceQuota: what it allows, and what other pods use of it. A migration needs a
//     second pod, and waits while no quota of its namespace admits one.
//
// What KubeVirt does not know, the speed of links and how fast guests change
// their memory, comes from [inventory.Defaults]. What would refuse a node and cannot
// be expressed is a warning: topology spread, networks, claimed devices, NUMA nodes,
// some affinity between VMs. A node without the label that anti-affinity goes by is
// refused, which Kubernetes would allow. Not counted are the memory that virt-launcher
// itself needs, and other pods, but for what they use of a quota. Not read are LimitRanges,
// pods, and a VM's volumes: whether they move with it is what KubeVirt says of the VM.
package kubevirt
