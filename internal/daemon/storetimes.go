package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godwit-vm/godwit/store"
)

// storeTimes measures what participants ask of a store. It is a Prometheus collector.
type storeTimes struct {
	took *prometheus.HistogramVec
	errs *prometheus.CounterVec
}

// operations are the methods of a store, as labels.
var operations = []string{"get", "put", "delete", "changes"}

func newStoreTimes() *storeTimes {
	s := &storeTimes{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "godwit_store_request_duration_seconds",
			Help:    "How long the store took to answer.",
			Buckets: []float64{1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
		errs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "godwit_store_request_errors_total",
			Help: "Requests that the store did not answer, or refused for another reason than a newer record.",
		}, []string{"operation"})}
	for _, o := range operations { // a rate needs a series from the beginning
		s.took.WithLabelValues(o)
		s.errs.WithLabelValues(o)
	}
	return s
}

// Describe implements prometheus.Collector.
func (s *storeTimes) Describe(to chan<- *prometheus.Desc) { s.took.Describe(to); s.errs.Describe(to) }

// Collect implements prometheus.Collector.
func (s *storeTimes) Collect(to chan<- prometheus.Metric) { s.took.Collect(to); s.errs.Collect(to) }

// over returns a store whose answers are measured.
func (s *storeTimes) over(inner store.Store) store.Store { return &timed{inner, s} }

// asked takes in one request.
func (s *storeTimes) asked(operation string, began time.Time, err error) {
	s.took.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	if err != nil && !errors.Is(err, store.Stale) && !errors.Is(err, context.Canceled) {
		s.errs.WithLabelValues(operation).Inc()
	}
}

// timed is a store whose answers are measured.
type timed struct {
	store.Store
	times *storeTimes
}

// Get implements store.Store.
func (t *timed) Get(ctx context.Context, key store.Key) (store.Record, error) {
	began := time.Now()
	r, err := t.Store.Get(ctx, key)
	t.times.asked("get", began, err)
	return r, err
}

// Put implements store.Store.
func (t *timed) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record, error) {
	began := time.Now()
	stored, err := t.Store.Put(ctx, r, while...)
	t.times.asked("put", began, err)
	return stored, err
}

// Delete implements store.Store.
func (t *timed) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	began := time.Now()
	err := t.Store.Delete(ctx, r, while...)
	t.times.asked("delete", began, err)
	return err
}

// Changes implements store.Store.
func (t *timed) Changes(ctx context.Context, f store.Feed, since store.Revision) (store.Changes, error) {
	began := time.Now()
	c, err := t.Store.Changes(ctx, f, since)
	t.times.asked("changes", began, err)
	return c, err
}
