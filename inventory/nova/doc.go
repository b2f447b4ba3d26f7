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
//     What servers that are shut off have of a host stays reserved. Its name is the VM's if
//     it is the only one of its project that is called so, otherwise its ID is.
//
// Not read: server groups, aggregates, extra specs of flavors, and numbers of NUMA nodes.
// What Nova does not know, the speed of links and how fast guests change their memory, comes
// from [inventory.Defaults].
package nova
