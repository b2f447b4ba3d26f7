// Package importer reads a fleet from folders of libvirt's XML, one for each host, named like
// it:
//
//	fleet/n1/capabilities.xml    virsh capabilities
//	fleet/n1/web.xml             virsh dumpxml web
//	fleet/n2/…
//
// The folder of one host alone is a fleet of one host. Files are told apart by their content.
//
// What is read from where:
//
//   - Capabilities: memory, CPUs, NUMA nodes with their pages, and the processor. libvirt has no
//     limit on virtual CPUs; [Ratio] for each CPU are taken. 512 MiB are reserved for the host
//     itself, and all huge pages where no domain asks for them; where one does they count as
//     memory of all, which is a warning.
//   - Domain capabilities (virsh domcapabilities): the CPU models that a host can show.
//   - Domain: its name, which package domxml turns into a VM's, memory and CPUs, whether it
//     runs (it has an id then), what keeps it from moving (see package domxml), and what it
//     asks of a host: its CPU model or the processor itself, huge pages, CPUs of its own. One
//     that is defined on several hosts, by its UUID, is where it runs; its name has the UUID
//     behind it if other domains are called so.
//
// Not read: machine types, features of CPUs beyond a model, the numbers of pinned CPUs and NUMA
// nodes, networks, storage and devices at the target. How
// fast links are and guests change their memory comes from [inventory.Defaults].
//
// # Formats
//
// This part reads a fleet from whatever a file or a folder holds: the format is told
// from the content, never from a name.
//
//	godwit's own YAML                   see package inventory
//	what kubectl prints                 see this package
//	the text format of Ganeti's htools  see this package
//	what openstack prints as JSON       see this package; also a folder of such files
//	libvirt's domain XML                see this package; a folder
//
// # Ganeti
//
// This part reads a fleet from the text format of Ganeti's htools, which hscan and
// hbal -S write, and writes it. Sections are separated by one empty line, fields by |:
// groups, nodes, instances, the cluster's tags, and policies; the last is optional. Amounts
// are in MiB.
//
// What is read from where:
//
//   - Node: its memory for VMs is what is free and what its running instances have, its
//     CPUs are multiplied by the group's ratio (4 unless a policy says otherwise), less those
//     that the node itself uses. An offline one is down, or drained if instances of it run.
//     Instances that are stopped keep their memory and CPUs on their primary node, where they
//     start again; those in the state ADMIN_offline have none.
//     Tags under htools:nlocation become labels.
//   - Instance: one that does not run is on no host. It stays within its group. With drbd
//     disks it is on its primary or its secondary node, which a migration swaps, and with plain
//     or file disks on its primary node only: it neither moves nor starts elsewhere.
//     Names are unique: htools keep several of one name and find the last, which is no VM.
//   - Cluster tags: htools:iextags keeps instances that share a tag apart,
//     htools:migration and htools:allowmigration limit where nodes' VMs may go, as they do
//     for hbal: all that a source's tags say, a target must accept.
//
// Not read: disks and their sizes, spindles, moves of secondaries, desired locations, and of
// policies all but the ratio of CPUs. What Ganeti does not
// know, the speed of links and how fast guests change their memory, comes from
// [inventory.Defaults].
//
// # KubeVirt
//
// This part reads a fleet from what kubectl prints of a cluster with
// KubeVirt:
//
//	kubectl get nodes,pods,vmis,vmims,migrationpolicies,kubevirts,namespaces,resourcequotas -A -o json
//
// [ReadKubeVirt] takes that, the same as YAML, several such outputs one after another,
// and single objects. JSON is read several times faster than YAML. Objects are
// decoded one at a time into the types of package kubeobject, so that
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
//   - VirtualMachineInstanceMigration: those that have not ended. The VM of one to or from
//     another cluster stays where it is until that has ended.
//   - MigrationPolicy, KubeVirt, Namespace: policies, configuration, labels.
//   - Pod: what those that are not of VMs request of their node, as the scheduler counts it, is not
//     free for VMs. So are pods of VMs that are not among those read.
//   - ResourceQuota: what it allows, and what other pods use of it. A migration needs a
//     second pod, and waits while no quota of its namespace admits one.
//
// What KubeVirt does not know, the speed of links and how fast guests change
// their memory, comes from [inventory.Defaults]. What would refuse a node and cannot
// be expressed is a warning: topology spread, networks, claimed devices, NUMA nodes,
// some affinity between VMs. A node without the label that anti-affinity goes by is
// refused, which Kubernetes would allow. What a VM's pod needs besides its guest's memory is what
// its status says, or else by KubeVirt's formula. Without pods in what is read there is a warning: what they
// take counts as free then. Not read are LimitRanges, and a VM's volumes: whether they move with it is what
// KubeVirt says of the VM.
//
// # Labels of KubeVirt
//
// This part knows the labels by which KubeVirt says what a node offers, and
// what the pod of a VM asks of a node.
//
// # OpenStack Nova
//
// This part reads a fleet from what openstack prints of a cloud:
//
//	openstack server list --all-projects --long --limit -1 -f json > servers.json
//	openstack --os-compute-api-version 2.87 hypervisor list --long -f json > hypervisors.json
//	openstack flavor list --all --long -f json > flavors.json
//	openstack compute service list -f json > services.json
//	openstack server group list --all-projects --long -f json > groups.json
//
// or from the answers of the compute API: servers/detail, os-hypervisors/detail,
// flavors/detail, os-services and os-server-groups. They may be files of one folder or follow one another in one file. Lists that
// are not whole are refused: of servers there must be one, and an answer that goes on in another
// needs that one, too.
//
// What is read from where:
//
//   - Hypervisor: memory, CPUs and disk, state and status. From version 2.88 of the API on
//     sizes are no longer there. Nova's configuration is not either: its defaults are taken, 4
//     virtual CPUs for each CPU and 512 MiB that are reserved.
//   - Server: its size is its flavor's, from the API's answer or from the list of flavors.
//     One that has a host has its room there, whatever its status; its power state says whether
//     it runs. What servers that do not run have of a host stays reserved. Servers move live
//     while they are ACTIVE or PAUSED and run. Its name is the VM's if it is the only one of
//     its project that is called so, otherwise its ID is.
//     One that says which availability zone it was asked for in, as from version 2.96 of the API on,
//     stays there.
//   - Service: whether its host is disabled or down, and its availability zone. Without the list the
//     zone of a host is that of its servers, and a warning says where nothing tells whether hosts
//     are disabled.
//   - Server group: its policy, and how many members may be on one host.
//   - Flavor: its extra specs. PCI devices, virtual GPUs, memory encryption, a TPM and
//     accelerators keep a server from moving live; dedicated CPUs take whole ones; resources of
//     other classes are devices, which no host is known to have.
//
// Not read: aggregates and images' properties, of which there is a warning, volumes and
// ports. Not known is which hosts have what other extra specs ask for (pages, NUMA nodes,
// traits): they refuse none, which is a warning.
// What Nova does not know, the speed of links and how fast guests change their memory, comes
// from [inventory.Defaults].
//
// # Splitting documents
//
// This part takes what kubectl prints to pieces, one for each object, so that
// only one is held in memory at a time. A piece knows its line.
//
// # Traces
//
// This part reads how busy the VMs of real fleets were, from the formats in which such
// traces are published:
//
//	Bitbrains   a file for each VM, or a folder of them: "Timestamp [ms];  CPU cores; …"
//	Azure       the folder of a public data set, V1 or V2: vmtable.csv, and the readings
//	            vm_cpu_readings-file-*.csv; also compressed with gzip
//	PlanetLab   a folder with a file for each VM, a percentage a line, five minutes apart; or
//	            one CSV file with a line for each VM: vm,t0,t300,…
//	OpenDC      a folder with tasks.parquet and fragments.parquet
//
// [ReadTrace] tells the format from the content. Files are streamed: they may be far larger than
// the memory, of which [maxPoints] says how much is needed. What is wrong with a file is
// [yamldoc.Problems] with file and line, or row. Gaps, loads above 100 % and times in
// another unit than the file says are warnings, and what was made of them is said.
//
// No public trace says how fast memory changes. [Proxy] makes a workload of a load: a
// stated assumption, not a measurement.
package importer
