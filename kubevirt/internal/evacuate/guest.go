package evacuate

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// strategy returns the effective eviction strategy of a VM.
func (x *index) strategy(v *vm) evacuation.Strategy {
	if v.known == nil {
		return evacuation.Unset
	}
	return v.known.Strategy.Or(x.params.Strategy)
}

// kubeVirts reports whether KubeVirt's own evacuation controller moves a VM off its node now. It moves none that
// cannot be migrated.
// Source: KubeVirt v1.8.0 pkg/virt-controller/watch/drain/evacuation/evacuation.go:416, :438.
func (x *index) kubeVirts(v *vm, node *corev1.Node) bool {
	switch x.strategy(v) {
	case evacuation.LiveMigrate, evacuation.LiveMigrateIfPossible:
	default:
		return false
	}
	if !v.known.Migratable {
		return false
	}
	return v.marked() || node != nil && x.params.Draining(evacuation.Host{Taints: taints(node)})
}

// asked reports whether a VM was marked for eviction and an external controller is to move it.
func (x *index) asked(v *vm) bool { return v.marked() && x.strategy(v) == evacuation.External }

// marked reports whether a VM was asked to leave the node that it is on.
// Source: KubeVirt v1.8.0 evacuation.go:326 (getMarkedForEvictionVMIs).
func (v *vm) marked() bool {
	return v.object.Status.EvacuationNodeName != "" &&
		v.object.Status.EvacuationNodeName == v.object.Status.NodeName
}

// guest returns a VM as package evacuation sees it. This controller is the external one; and where
// a NodeEvacuation asks for the node to be emptied, a VM that may be killed is migrated if that is
// possible: its strategy is about evictions, and nothing is evicted.
func (x *index) guest(v *vm) evacuation.VM {
	o := v.object
	g := evacuation.VM{ID: v.id, Deleting: o.DeletionTimestamp != nil,
		Between: o.Status.Phase != virtv1.Running, Migratable: v.known.Migratable, NotMigratableReason: v.known.NotMigratableReason,
		EvacuateFrom: hypervisor.HostName(o.Status.EvacuationNodeName), Moving: v.current != nil || v.unseen(),
		Instances: len(v.pods), Memory: v.known.Memory + v.known.Disk,
		Descheduled: o.Annotations[virtv1.EvictionSourceAnnotation] == "descheduler",
		Failed:      migration.Failures(len(v.migrations), func(i int) migration.Phase { return phaseOf(v.migrations[i]) })}
	switch g.Strategy = x.strategy(v); g.Strategy {
	case evacuation.External:
		g.Strategy = evacuation.LiveMigrate
	case evacuation.None, evacuation.Unset:
		g.Strategy = evacuation.LiveMigrateIfPossible
	}
	return g
}

// phaseOf returns how far a migration has come; one in a phase that is not known has not ended.
func phaseOf(m *virtv1.VirtualMachineInstanceMigration) (phase migration.Phase) {
	if err := phase.UnmarshalText([]byte(m.Status.Phase)); err != nil {
		return migration.Pending
	}
	return phase
}

// unseen reports whether the last migration of a VM took it off its node, and the VMI is not yet
// seen where it is now.
func (v *vm) unseen() bool {
	if len(v.migrations) == 0 {
		return false
	}
	last := v.migrations[len(v.migrations)-1]
	if last.Status.Phase != virtv1.MigrationSucceeded {
		return false
	}
	state := last.Status.MigrationState
	if state == nil { // it is not written yet; our own say where they began
		return last.Annotations[v1alpha1.SourceNodeAnnotation] == v.object.Status.NodeName
	}
	if state.SourceNode != v.object.Status.NodeName || state.TargetNode == state.SourceNode {
		return false
	}
	seen := v.object.Status.MigrationState
	return seen == nil || !after(seen.EndTimestamp, state.EndTimestamp)
}

func after(a, b *metav1.Time) bool { return a != nil && b != nil && a.After(b.Time) }

// retryAt returns when a VM may be migrated again after failures; the zero time is now. It is the
// back-off that KubeVirt has for migrations of evacuations; while KubeVirt waits, the migration
// would keep its place among those that run at once.
func (v *vm) retryAt(name string, now time.Time) time.Time {
	self := migration.ID(v.object.Namespace + "/" + name)
	attempts := []migration.Attempt{{ID: self, By: migration.Evacuation, Created: now.Add(time.Hour)}}
	for _, m := range v.migrations {
		a := migration.Attempt{ID: migration.ID(m.Namespace + "/" + m.Name), By: migration.Evacuation,
			Created: m.CreationTimestamp.Time, Phase: phaseOf(m), Deleted: m.DeletionTimestamp != nil}
		if _, found := m.Annotations[virtv1.EvacuationMigrationAnnotation]; !found {
			a.By = migration.User
		}
		for _, t := range m.Status.PhaseTransitionTimestamps {
			if t.Phase == virtv1.MigrationFailed {
				a.FailedAt = t.PhaseTransitionTimestamp.Time
			}
		}
		if a.FailedAt.IsZero() {
			a.FailedAt = a.Created
		}
		attempts = append(attempts, a)
	}
	var c migration.Config
	at := c.Backoff(self, attempts)
	if !at.After(now) {
		return time.Time{}
	}
	return at
}

// notReady returns why no VM can be moved off a node now, or nil.
func notReady(n *corev1.Node) *placement.Reason {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return &placement.Reason{Check: "node", Need: "ready", Have: fmt.Sprintf(
				"%s is not ready (%s): what runs there cannot be asked to migrate", n.Name,
				cmp.Or(c.Reason, string(c.Status)))}
		}
	}
	return nil
}

func taints(n *corev1.Node) (all []placement.Taint) {
	for _, t := range n.Spec.Taints {
		all = append(all, placement.Taint{Key: t.Key, Value: t.Value, Effect: placement.Effect(t.Effect)})
	}
	return all
}
