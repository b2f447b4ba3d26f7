package qmp

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// RecordOf returns what a host keeps of a VM.
func RecordOf(h *Host, vm hypervisor.VMID) *DomainRecord { return h.node.Find(vm).Record() }

// Features are what the program can do, if that is known.
func (c *Config) Features() *qemu.Features { return c.features }

// SetFeatures says what the program can do, so that it is not asked.
func (c *Config) SetFeatures(f *qemu.Features) { c.features = f }
