package daemon

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A Set is all that one daemon measures.
type Metrics struct {
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	errs     *prometheus.CounterVec
}

// NewMetrics returns a set with what the process itself measures, and these collectors.
func NewMetrics(more ...prometheus.Collector) *Metrics {
	s := &Metrics{registry: prometheus.NewRegistry(),
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

// DescribeMetrics shows the collectors of all that daemons measure, and which daemons: controllers, agents, or
// both. It leaves out what the Go runtime and the process measure of themselves.
func DescribeMetrics(show func(daemons string, c prometheus.Collector)) {
	const both, controllers, agents = "both", "controllers", "agents"
	own, times, transfers := NewMetrics(), newStoreTimes(), WatchMetrics(nil, "", time.Now)
	for _, c := range []prometheus.Collector{own.took, own.errs, times.took, times.errs, Certificates{}} {
		show(both, c)
	}
	show(controllers, &ClusterMetrics{})
	show(agents, transfers.gone)
	show(agents, transfers)
}

// Handler answers what was measured.
func (s *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 20 * time.Second})
}

// Looked counts a look of a participant.
func (s *Metrics) Looked(participant string, took time.Duration, err error) {
	s.took.WithLabelValues(participant).Observe(took.Seconds())
	if err != nil {
		s.errs.WithLabelValues(participant, kind(err)).Inc()
	}
}

// kind says which sort of error it is, in one of a few words.
func kind(err error) string {
	if e, is := errors.AsType[*store.StoreError](err); is {
		return "store: " + e.Kind.Error()
	}
	if e, is := errors.AsType[*hypervisor.Error](err); is {
		return "hypervisor: " + e.Kind.Error()
	}
	return "other"
}
