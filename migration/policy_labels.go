package migration

import "github.com/godwit-vm/godwit/hypervisor"

// PolicyLabels returns the labels that policies select on: a VM's own, with the host that it is on
// and the target that its migration was given; "" is none yet.
// Source: KubeVirt v1.9.0 migration.go:1259 (the labels of nodeName and
// migrationTargetNodeName on the VMI).
func PolicyLabels(vm Labels, host, target hypervisor.HostName) Labels {
	all := make(Labels, len(vm)+2)
	for k, v := range vm {
		all[k] = v
	}
	all["kubevirt.io/nodeName"] = string(host)
	all["kubevirt.io/migrationTargetNodeName"] = string(target)
	return all
}
