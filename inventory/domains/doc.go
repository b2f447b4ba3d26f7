// Package domains reads a fleet from folders of libvirt's XML, one for each host, named like
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
//     limit on virtual CPUs; [Ratio] for each CPU are taken.
//   - Domain capabilities (virsh domcapabilities): the CPU models that a host can show.
//   - Domain: its name, which package domxml turns into a VM's, memory and CPUs, whether it
//     runs (it has an id then), what keeps it from moving (see package blockers), and what it
//     asks of a host: its CPU model or the processor itself, huge pages, CPUs of its own. One
//     that is defined on several hosts, by its UUID, is where it runs; its name has the UUID
//     behind it if other domains are called so.
//
// Not read: machine types, features of CPUs beyond a model, the numbers of pinned CPUs and NUMA
// nodes, networks, storage and devices at the target. How
// fast links are and guests change their memory comes from [inventory.Defaults].
package domains
