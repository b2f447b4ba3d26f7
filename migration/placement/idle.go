package placement

// When a basic condition refuses no host at all. Each repeats the part of its
// condition that does not look at the host.
// Source: the conditions themselves, in check.go.

// noSource: Source: isSource.
func noSource(_ *VM, o Options) bool { return o.Source == "" }

// noneAvoided: Source: isAvoided.
func noneAvoided(_ *VM, o Options) bool { return len(o.Avoid) == 0 }

// noLimit: Source: inboundFull.
func noLimit(_ *VM, o Options) bool { return o.Inbound <= 0 }

// noMemory: Source: memoryLacks.
func noMemory(vm *VM, _ Options) bool { return vm.Demand() <= 0 }

// noCPUs: Source: cpusLack.
func noCPUs(vm *VM, _ Options) bool { return vm.DemandCPUs() <= 0 }

// noSelector: Source: selectorDiffers.
func noSelector(vm *VM, _ Options) bool { return len(vm.Constraints.Selector) == 0 }

// noAffinity: Source: affinityFails.
func noAffinity(vm *VM, _ Options) bool { return len(vm.Constraints.Affinity) == 0 }

// noneApart: Source: groupTaken.
func noneApart(vm *VM, _ Options) bool { return len(vm.Constraints.Apart) == 0 }
