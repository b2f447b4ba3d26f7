package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
)

var (
	migrations = counter("godwit_kubevirt_migrations_created_total", "Migrations that were created.")
	canceled   = counter("godwit_kubevirt_migrations_canceled_total",
		"Migrations that were deleted before they began.")
	evictions       = counter("godwit_kubevirt_evictions_total", "Pods of VMs that were evicted.")
	decisionSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "godwit_kubevirt_decision_seconds", Help: "How long it took to look at the cluster and decide.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)})
	vmsLeft    = gauge("godwit_kubevirt_vms_left", "VMs on a node that is emptied.")
	vmsMoving  = gauge("godwit_kubevirt_vms_moving", "VMs with an unfinished migration on a node that is emptied.")
	vmsBlocked = gauge("godwit_kubevirt_vms_blocked", "VMs that cannot leave a node that is emptied.")
)

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"evacuation", "node"})
}

func init() {
	metrics.Registry.MustRegister(migrations, canceled, evictions, decisionSeconds, vmsLeft, vmsMoving, vmsBlocked)
}

// measure shows a status.
func measure(e *v1alpha1.NodeEvacuation, s *v1alpha1.NodeEvacuationStatus) {
	for v, n := range map[*prometheus.GaugeVec]*int32{vmsLeft: s.VMsLeft, vmsMoving: s.Moving, vmsBlocked: s.Blocked} {
		if n != nil {
			v.WithLabelValues(e.Name, e.Spec.NodeName).Set(float64(*n))
		}
	}
}

// forget shows a NodeEvacuation no more.
func forget(e *v1alpha1.NodeEvacuation) {
	for _, v := range []*prometheus.GaugeVec{vmsLeft, vmsMoving, vmsBlocked} {
		v.DeleteLabelValues(e.Name, e.Spec.NodeName)
	}
}
