//go:build linux && libvirt_dlopen

package libvirt

import "github.com/godwit-vm/godwit/hypervisor"

// What the tests in package libvirt_test see of the inside.

type Node = node

// RecordOf returns what a host keeps of a VM.
func RecordOf(h *Host, vm hypervisor.VMID) *DomainRecord { return h.node.Find(vm).Record() }
