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
//   - Capabilities: memory and CPUs. libvirt has no limit on virtual CPUs; [Ratio] for each
//     CPU are taken.
//   - Domain: its name, which package domxml turns into a VM's, memory and CPUs, whether it
//     runs (it has an id then), and what keeps it from moving: see package blockers. One that
//     is defined on several hosts is where it runs.
//
// Not read: machine types, CPU models, NUMA nodes, networks and devices at the target. How
// fast links are and guests change their memory comes from [inventory.Defaults].
package domains
