// Package metrics measures what daemons do, for Prometheus. Names and labels are KubeVirt's,
// with the prefix godwit_; what KubeVirt does not have is when a migration, and a drain, will
// have ended.
//
// No label takes values without bound: series of transfers that have ended are dropped, and
// of a VM's ended migrations only the last is told.
package metrics

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

// A Set is all that one daemon measures.
type Set struct {
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	errs     *prometheus.CounterVec
}

// New returns a set with what the process itself measures, and these collectors.
func New(more ...prometheus.Collector) *Set {
	s := &Set{registry: prometheus.NewRegistry(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "godwit_reconcile_duration_seconds",
			Help:    "How long a participant took to look once.",
			Buckets: []float64{1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1, 5, 30},
		}, []string{"participant"}),
		errs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "godwit_reconcile_errors_total",
			Help: "Looks that ended with an error, by what may be done about it.",
		}, []string{"participant", "kind"})}
	s.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s.took, s.errs)
	s.registry.MustRegister(more...)
	return s
}

// Handler answers what was measured.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 20 * time.Second})
}

// Looked counts a look of a participant.
func (s *Set) Looked(participant string, took time.Duration, err error) {
	s.took.WithLabelValues(participant).Observe(took.Seconds())
	if err != nil {
		s.errs.WithLabelValues(participant, kind(err)).Inc()
	}
}

// kind says which sort of error it is, in one of a few words.
func kind(err error) string {
	if e, is := errors.AsType[*record.StoreError](err); is {
		return "store: " + e.Kind.Error()
	}
	if e, is := errors.AsType[*hypervisor.Error](err); is {
		return "hypervisor: " + e.Kind.Error()
	}
	return "other"
}
