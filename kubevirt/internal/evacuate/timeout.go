package evacuate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
)

// A migration holds its place from the moment its target pod exists. While other VMs wait for the place, the pod has so
// long to get ready: slowStarts times the slowest that was seen, and at least leastStart; firstStart if none was seen. KubeVirt
// itself waits 5 minutes for a pod that cannot be scheduled, and 15 for another.
// Source: KubeVirt v1.8.0 pkg/virt-controller/watch/migration/migration.go:1724 (handlePendingPodTimeout).
const (
	leastStart = 10 * time.Second
	firstStart = time.Minute
	slowStarts = 3
)

// patience returns how long a target pod has to get ready.
func (s *site) patience() time.Duration {
	slowest := time.Duration(0)
	for i := range s.Migrations {
		m := &s.Migrations[i]
		if began, ready := since(m, virtv1.MigrationScheduling), since(m, virtv1.MigrationScheduled); began != nil && ready != nil {
			slowest = max(slowest, ready.Sub(began.Time)+time.Second) // the times are of whole seconds
		}
	}
	if slowest == 0 {
		return firstStart
	}
	return max(leastStart, slowStarts*slowest)
}

// since returns when a migration came into a phase, or nil.
func since(m *virtv1.VirtualMachineInstanceMigration, phase virtv1.VirtualMachineInstanceMigrationPhase) *metav1.Time {
	for i := range m.Status.PhaseTransitionTimestamps {
		if t := &m.Status.PhaseTransitionTimestamps[i]; t.Phase == phase {
			return &t.PhaseTransitionTimestamp
		}
	}
	return nil
}

// timeOut cancels migrations off the node whose target pods do not get ready while other VMs of the node wait for
// their places. Each VM loses its place once: it goes last, and then has the time that KubeVirt gives it.
func (s *site) timeOut(p *planned, d *evacuation.Decision) {
	if s.active == nil || !slices.ContainsFunc(d.Stay, func(r evacuation.RemainingVM) bool { return r.Waits }) {
		return
	}
	patience := s.patience()
	for _, v := range s.vms {
		m := v.current
		if m == nil || !ours(m) || m.DeletionTimestamp != nil || m.Status.Phase != virtv1.MigrationScheduling ||
			m.Annotations[v1alpha1.SourceNodeAnnotation] != s.name || s.timedOut(v.id) {
			continue
		}
		began := since(m, virtv1.MigrationScheduling)
		if began == nil {
			continue
		}
		if left := began.Add(patience).Sub(s.Now); left > 0 {
			p.again = sooner(p.again, left)
			continue
		}
		why := fmt.Sprintf("its target pod was not ready after %v, and other VMs wait for its place",
			s.Now.Sub(began.Time).Round(time.Second))
		p.cancel = append(p.cancel, Cancellation{types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, m.UID,
			m.ResourceVersion, m.Spec.VMIName, why})
		now := metav1.NewTime(s.Now.Truncate(time.Second))
		p.timedOut = append(p.timedOut, v1alpha1.MovedVM{Namespace: m.Namespace, Name: m.Spec.VMIName, Migration: m.Name,
			MigrationUID: m.UID, Outcome: v1alpha1.OutcomeTimedOut, Reason: why, EndedAt: &now})
	}
}

// timedOut reports whether a VM has lost its place.
func (s *site) timedOut(id hypervisor.VMID) bool {
	return slices.ContainsFunc(s.active.Status.Moved, func(m v1alpha1.MovedVM) bool {
		return m.Outcome == v1alpha1.OutcomeTimedOut && idOf(m.Namespace, m.Name) == id
	})
}

// lastIfTimedOut lets VMs that have lost their places go last, and else has an order.
func (s *site) lastIfTimedOut(order evacuation.OrderFunc) evacuation.OrderFunc {
	last := map[hypervisor.VMID]int{}
	for _, m := range s.active.Status.Moved {
		if m.Outcome == v1alpha1.OutcomeTimedOut {
			last[idOf(m.Namespace, m.Name)] = 1
		}
	}
	return func(link hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
		return cmp.Or(cmp.Compare(last[a.VM], last[b.VM]), order(link, a, b))
	}
}
