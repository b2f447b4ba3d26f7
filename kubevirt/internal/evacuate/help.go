package evacuate

import (
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
)

// What would let a VM leave that is held for another reason than that it cannot be migrated.
const (
	helpNode     = "repair the node, or fence it, so that its VMs start elsewhere"
	helpQuota    = "raise the quota: a migration needs room for a second copy of the VM"
	helpBudget   = "wait for the other VMs of the budget, or allow more disruptions"
	helpRefused  = "change what refuses the migration"
	helpEviction = "change what refuses the eviction, or shut the VM down"
	helpVMI      = "correct the VMI"
)

// helpMigratable is what would make a VM migratable, by the reason of its condition LiveMigratable.
// Source: KubeVirt v1.8.0 pkg/virt-handler/vm.go:1196 (calculateLiveMigrationCondition).
var helpMigratable = map[string]string{
	virtv1.VirtualMachineInstanceReasonDisksNotMigratable:             "give its disks a storage class with access mode ReadWriteMany",
	virtv1.VirtualMachineInstanceReasonInterfaceNotMigratable:         "connect its pod network with masquerade instead of bridge",
	virtv1.VirtualMachineInstanceReasonCPUModeNotMigratable:           "give it a CPU model that its node knows, instead of host-model",
	virtv1.VirtualMachineInstanceReasonHostDeviceNotMigratable:        "detach its host device, or shut it down",
	virtv1.VirtualMachineInstanceReasonPRNotMigratable:                "remove the persistent reservation from its disks",
	virtv1.VirtualMachineInstanceReasonNoTSCFrequencyMigratable:       "let nodes expose their TSC frequency, or remove the Hyper-V feature that needs it",
	virtv1.VirtualMachineInstanceReasonHypervPassthroughNotMigratable: "choose single Hyper-V features instead of passthrough",
}

// helps says what would let a VM be migrated or leave otherwise; nothing if it can be migrated.
func (s *site) helps(v *vm) (all []string) {
	if v.known.Migratable {
		return nil
	}
	known := false
	for _, c := range v.object.Status.Conditions {
		if c.Type != virtv1.VirtualMachineInstanceIsMigratable {
			continue
		}
		if text := helpMigratable[c.Reason]; text != "" {
			all, known = append(all, text), true
		}
	}
	killable := s.guest(v).Strategy == evacuation.LiveMigrateIfPossible
	switch {
	case killable && s.active != nil && s.active.Spec.Unmovable != v1alpha1.ShutDown:
		all = append(all, "set spec.unmovable: ShutDown, or shut the VM down")
	case !known:
		all = append(all, "shut the VM down, or remove what keeps it from being migrated")
	}
	return all
}
