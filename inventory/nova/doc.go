// Package nova reads a fleet from what openstack prints of a cloud:
//
//	openstack server list --all-projects --long --limit -1 -f json > servers.json
//	openstack --os-compute-api-version 2.87 hypervisor list --long -f json > hypervisors.json
//	openstack flavor list --all --long -f json > flavors.json
//
// or from the answers of the compute API: servers/detail, os-hypervisors/detail and
// flavors/detail. They may be files of one folder or follow one another in one file. Lists that
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
//   - Flavor: its extra specs. PCI devices, virtual GPUs, memory encryption, a TPM and
//     accelerators keep a server from moving live; dedicated CPUs take whole ones; resources of
//     other classes are devices, which no host is known to have.
//
// Not read: server groups, aggregates, availability zones, images' properties, volumes and
// ports. Not known is which hosts have what other extra specs ask for (pages, NUMA nodes,
// traits): they refuse none, which is a warning.
// What Nova does not know, the speed of links and how fast guests change their memory, comes
// from [inventory.Defaults].
package nova
