package qmp

import "github.com/godwit-vm/godwit/hypervisor"

// RecordOf returns what a host keeps of a VM.
func RecordOf(h *Host, vm hypervisor.VMID) *DomainRecord { return h.node.Find(vm).Record() }
