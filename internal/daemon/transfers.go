package daemon

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// stale is how long a transfer is told of after its agent last looked at it.
const stale = time.Minute

// defaultDowntime is what a hypervisor allows when it is not set how long the last pass may
// take. Source: QEMU 7.2 migration.c (DEFAULT_MIGRATE_SET_DOWNTIME).
const defaultDowntime = 300 * time.Millisecond

// Transfers measures what a host sends: it listens to what the hypervisor answers to the
// agent, and asks nothing itself. It is a [hypervisor.Hypervisor] and a Prometheus collector.
// Series of transfers that have ended are dropped. It is safe for concurrent use.
type Transfers struct {
	hypervisor.Hypervisor
	node string
	now  func() time.Time

	mu   sync.Mutex
	vms  map[hypervisor.JobID]transfer
	gone *prometheus.HistogramVec
}

// transfer is what was last seen of a job on its source.
type transfer struct {
	vm    hypervisor.VMID
	limit time.Duration
	last  hypervisor.Progress
	at    time.Time
	ended bool
}

// WatchMetrics returns a hypervisor that does what hv does, on the host of this name, and what it
// measures meanwhile.
func WatchMetrics(hv hypervisor.Hypervisor, node hypervisor.HostName, now func() time.Time) *Transfers {
	return &Transfers{Hypervisor: hv, node: string(node), now: now,
		vms: map[hypervisor.JobID]transfer{},
		gone: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "godwit_vmi_migration_downtime_seconds",
			Help:    "How long guests were stopped during successful live migrations.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32},
		}, []string{"node"})}
}

// Migrate implements hypervisor.Hypervisor.
func (t *Transfers) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	t.see(out.Job, func(x *transfer) { x.vm, x.limit = out.VM, out.Options.Downtime })
	return t.Hypervisor.Migrate(ctx, out)
}

// Adjust implements hypervisor.Hypervisor.
func (t *Transfers) Adjust(ctx context.Context, job hypervisor.JobID,
	a hypervisor.Adjustment) error {
	err := t.Hypervisor.Adjust(ctx, job, a)
	if d, is := a.(hypervisor.SetDowntime); is && err == nil {
		t.see(job, func(x *transfer) { x.limit = d.Limit })
	}
	return err
}

// Domain implements hypervisor.Hypervisor.
func (t *Transfers) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := t.Hypervisor.Domain(ctx, vm)
	if err == nil && d.Job != "" && sends(d.State) {
		t.see(d.Job, func(x *transfer) { x.vm = d.VM.ID })
	}
	return d, err
}

// sends reports whether a domain with a job may be its source.
func sends(s hypervisor.DomainState) bool {
	return s != hypervisor.Receiving && s != hypervisor.Received
}

// Progress implements hypervisor.Hypervisor.
func (t *Transfers) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress,
	error) {
	p, err := t.Hypervisor.Progress(ctx, job)
	if err != nil || p.Status == hypervisor.JobNone {
		return p, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x, known := t.vms[job]
	if !known || x.ended {
		return p, nil // a target, or told already
	}
	x.last, x.at = p, t.now()
	if p.Status.Final() {
		x.ended = true
		if p.Status == hypervisor.JobSucceeded && p.Downtime > 0 {
			t.gone.WithLabelValues(t.node).Observe(p.Downtime.Seconds())
		}
	}
	t.vms[job] = x
	return p, nil
}

// see takes in something about a job, and forgets those that are not looked at any more.
func (t *Transfers) see(job hypervisor.JobID, how func(*transfer)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	x, known := t.vms[job]
	if !known {
		t.expire(now)
		x.at = now
	}
	how(&x)
	t.vms[job] = x
}

func (t *Transfers) expire(now time.Time) {
	for id, x := range t.vms {
		if now.Sub(x.at) > 10*stale {
			delete(t.vms, id)
		}
	}
}

var transferLabels = []string{"node", "namespace", "name"}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("godwit_"+name, help, labels, nil)
}

// What a transfer is described by. Source: KubeVirt v1.9.0
// pkg/monitoring/metrics/virt-handler/migrationdomainstats/migrationstats_collector.go.
var (
	descTotal = gauge("vmi_migration_data_bytes_total",
		"Memory of the guest that migrates, and local disks that go with it.", transferLabels...)
	descRemaining = gauge("vmi_migration_data_remaining_bytes",
		"Data that remains to be sent to the target.", transferLabels...)
	descProcessed = gauge("vmi_migration_data_processed_bytes",
		"Data that was sent to the target.", transferLabels...)
	descDirty = gauge("vmi_migration_dirty_memory_rate_bytes",
		"Memory that the guest dirties in a second.", transferLabels...)
	descRate = gauge("vmi_migration_memory_transfer_rate_bytes",
		"Data that is sent in a second.", transferLabels...)
	descETA = gauge("vmi_migration_eta_seconds",
		"Seconds until the migration ends if nothing changes; +Inf when it does not converge.",
		transferLabels...)
)

// Describe implements prometheus.Collector.
func (t *Transfers) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descTotal, descRemaining, descProcessed, descDirty,
		descRate, descETA} {
		to <- d
	}
	t.gone.Describe(to)
}

// Collect implements prometheus.Collector.
func (t *Transfers) Collect(to chan<- prometheus.Metric) {
	t.gone.Collect(to)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	newest := map[hypervisor.VMID]transfer{} // a VM has one series, whatever jobs it has had
	for _, x := range t.vms {
		if !x.ended && x.last.Job != "" && now.Sub(x.at) <= stale && x.at.After(newest[x.vm].at) {
			newest[x.vm] = x
		}
	}
	for vm, x := range newest {
		namespace, name := split(vm)
		for desc, value := range x.values() {
			send(to, desc, value, t.node, namespace, name)
		}
	}
}

func (x *transfer) values() map[*prometheus.Desc]float64 {
	p := &x.last
	limit := x.limit
	if limit <= 0 {
		limit = defaultDowntime
	}
	eta := math.Inf(1)
	if e := convergence.Predict(p.Remaining, p.DirtyRate, p.Bandwidth, limit); e.Converges {
		eta = e.Left.Seconds()
	}
	return map[*prometheus.Desc]float64{descTotal: float64(p.Total + p.Disks),
		descRemaining: float64(p.Remaining), descProcessed: float64(p.Sent),
		descDirty: float64(p.DirtyRate), descRate: float64(p.Bandwidth), descETA: eta}
}

// send sends one figure. Names come from strangers: what is no text is made one.
func send(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "?")
	}
	if m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...); err == nil {
		to <- m
	}
}

// split divides the name of a VM into its namespace and the rest.
func split(vm hypervisor.VMID) (namespace, name string) {
	namespace, name, found := strings.Cut(string(vm), "/")
	if !found {
		return "", namespace
	}
	return namespace, name
}
