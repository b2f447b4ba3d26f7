package evacuate

import (
	"fmt"
	"time"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
)

// whenArriving is when to look again at a node that VMs arrive on.
const whenArriving = 10 * time.Second

// arriving returns the VMs that are not on the node, and will be: a cordon keeps no pod away that the scheduler
// has bound already, and a migration with a target goes on.
func (s *site) arriving() (all []v1alpha1.LeavingVM) {
	for _, v := range s.index.vms {
		if why := v.arrives(s.name); why != "" {
			l := v1alpha1.LeavingVM{Namespace: v.object.Namespace, Name: v.object.Name, State: v1alpha1.Arriving,
				Reason: why}
			if v.current != nil {
				l.Migration = v.current.Name
			}
			all = append(all, l)
		}
	}
	return all
}

// arrives says why a VM that is not on a node will be, or nothing.
func (v *vm) arrives(node string) string {
	o := v.object
	switch {
	case o.Status.NodeName == node || node == "":
		return ""
	case o.Status.NodeName == "" && v.podOn(node) != nil:
		return "it starts on this node"
	case v.current == nil:
		return ""
	case v.target() == node:
		return fmt.Sprintf("its migration takes it from %s to this node", o.Status.NodeName)
	}
	for _, p := range v.pods {
		if p.Labels[virtv1.MigrationJobLabel] == string(v.current.UID) && o.Status.ActivePods[p.UID] == node {
			return fmt.Sprintf("the target pod of its migration from %s is on this node", o.Status.NodeName)
		}
	}
	return ""
}

// target returns the node that the unfinished migration of a VM has chosen, or "".
func (v *vm) target() string {
	if m := v.object.Status.MigrationState; m != nil && v.current != nil && m.MigrationUID == v.current.UID {
		return m.TargetNode
	}
	return ""
}
