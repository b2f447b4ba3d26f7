package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// ClusterMetrics measures what is stored: it reads what has changed when it is asked. It is a
// Prometheus collector.
type ClusterMetrics struct {
	store    store.Store
	defaults *evacuation.Params
	leading  func() (term uint64, leads bool)
	now      func() time.Time

	mu   sync.Mutex
	view client.Cluster
}

// NewClusterMetrics returns what measures a store. Evacuation has the defaults of VMs and drains; without it no drain is
// told. Leading says whether this process leads.
func NewClusterMetrics(store store.Store, evacuation *evacuation.Params,
	leading func() (uint64, bool), now func() time.Time) *ClusterMetrics {
	return &ClusterMetrics{store: store, defaults: evacuation, leading: leading, now: now}
}

// What is told of a cluster. Source: KubeVirt v1.9.0 pkg/monitoring/metrics/virt-controller/
// (migrationstats_collector.go, vmistats_collector.go).
var (
	descPending = gauge("vmi_migrations_in_pending_phase",
		"Migrations that wait for a slot and a target.")
	descScheduling = gauge("vmi_migrations_in_scheduling_phase",
		"Migrations whose target gets ready.")
	descRunning   = gauge("vmi_migrations_in_running_phase", "Migrations that are under way.")
	descSucceeded = gauge("vmi_migration_succeeded",
		"The last migration of the VM succeeded.", "vmi", "vmim", "namespace")
	descFailed = gauge("vmi_migration_failed",
		"The last migration of the VM failed.", "vmi", "vmim", "namespace")
	descStart = gauge("vmi_migration_start_time_seconds",
		"When the last migration of the VM was asked for.", "node", "namespace", "name",
		"migration_name")
	descEnd = gauge("vmi_migration_end_time_seconds",
		"When the last migration of the VM ended.", "node", "namespace", "name",
		"migration_name", "status")
	descUnknown = gauge("vmi_migrations_outcome_unknown",
		"Migrations whose outcome is not known.")
	descHost  = gauge("host_info", "A host, and how it is.", "node", "state")
	descVMs   = gauge("number_of_vms", "VMs on a host.", "node")
	descStray = gauge("vm_runs_astray",
		"1 for a VM that runs on a host although its record says that it does not.", "vm", "node")
	descSecond = gauge("host_second_agent",
		"1 for a host whose name was refused to a second agent, else 0.", "node")
	descStrays = gauge("host_stray_vms",
		"VMs that run on a host although their records say that they do not.", "node")
	descTroubles = gauge("host_migration_failures",
		"Migrations in a row that have failed and speak against a host.", "node")
	descDown = gauge("vm_down",
		"1 for a VM that shall run, and is not known to.", "node", "namespace", "name")
	descLeftVMs = gauge("host_drain_remaining_vms",
		"VMs that are left on a host that is drained, but for those that are shut down.", "node")
	descLeft = gauge("host_drain_remaining_bytes",
		"Memory and disks that have to leave a host that is drained.", "node")
	descGone = gauge("host_drain_eta_seconds",
		"Seconds until a host that is drained is empty, if nothing changes.", "node")
	descStopped = gauge("maintenance_stopped",
		"1 for a run of maintenance that has stopped and waits for an operator, 0 for one that goes on.", "run")
	descLeader = gauge("controller_leading_status", "1 for the controller that leads.")
	descTerm   = gauge("controller_term", "How often a controller has taken over.")
	descRead   = gauge("store_up", "1 while the store answers.")
	descBack   = gauge("store_set_back",
		"1 while the store is older than it has been, and nothing is done until it is reconciled.")
)

// Describe implements prometheus.Collector.
func (c *ClusterMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descPending, descScheduling, descRunning, descSucceeded,
		descFailed, descStart, descEnd, descUnknown, descHost, descVMs, descStray, descStrays, descSecond,
		descTroubles, descDown, descLeftVMs, descLeft, descGone, descStopped, descLeader,
		descTerm, descRead, descBack} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *ClusterMetrics) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	tell := func(d *prometheus.Desc, value float64, labels ...string) {
		send(to, d, value, labels...)
	}
	if c.leading != nil {
		term, leads := c.leading()
		tell(descLeader, truth(leads))
		if leads {
			tell(descTerm, float64(term))
		}
	}
	err := c.view.Pull(ctx, c.store)
	tell(descRead, truth(err == nil))
	if err != nil {
		return // what was read before may be wrong by now
	}
	tell(descBack, truth(c.view.SetBack() != nil))
	c.phases(tell)
	c.hosts(tell)
	for _, m := range c.view.Runs() {
		if m.Ended.IsZero() {
			tell(descStopped, truth(m.Halted()), m.Name)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

type teller func(d *prometheus.Desc, value float64, labels ...string)

// phases tells how many migrations are how far, and how each VM's last one went.
func (c *ClusterMetrics) phases(tell teller) {
	var pending, scheduling, running, unknown int
	last := map[hypervisor.VMID]*store.Migration{}
	for _, m := range c.view.Migrations() { // oldest first
		last[m.Spec.VM] = m
		switch p := m.State.Phase; {
		case m.State.Conditions.Has(migration.OutcomeUnknown) && !p.Final():
			unknown++
			running++
		case p <= migration.Pending:
			pending++
		case p == migration.Scheduling:
			scheduling++
		case !p.Final():
			running++
		}
	}
	tell(descPending, float64(pending))
	tell(descScheduling, float64(scheduling))
	tell(descRunning, float64(running))
	tell(descUnknown, float64(unknown))
	for vm, m := range last {
		if c.view.VM(vm) != nil {
			ended(tell, vm, m)
		}
	}
}

// ended tells when a VM's last migration began, and how and when it ended.
func ended(tell teller, vm hypervisor.VMID, m *store.Migration) {
	namespace, name := split(vm)
	id, node := string(m.Spec.ID), string(m.State.Source)
	tell(descStart, seconds(m.Spec.Created), node, namespace, name, id)
	switch m.State.Phase {
	case migration.Succeeded:
		tell(descSucceeded, 1, name, id, namespace)
		tell(descEnd, seconds(m.State.Entered), string(m.State.Target), namespace, name, id,
			"succeeded")
	case migration.Failed:
		tell(descFailed, 1, name, id, namespace)
		tell(descEnd, seconds(m.State.Entered), node, namespace, name, id, "failed")
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// draining reports whether a host is drained.
func (c *ClusterMetrics) draining(h *store.Host) bool {
	return c.defaults != nil && client.Drains(*c.defaults, h)
}

// hosts tells how the hosts are.
func (c *ClusterMetrics) hosts(tell teller) {
	count, left := map[hypervisor.HostName]int{}, map[hypervisor.HostName]int{}
	for _, v := range c.view.VMs() {
		if count[v.Host]++; !client.LeftAside(v) {
			left[v.Host]++
		}
		if client.Down(&c.view, v) {
			namespace, name := split(v.VM.ID)
			tell(descDown, 1, string(v.Host), namespace, name)
		}
	}
	now := c.now()
	failures := map[hypervisor.HostName]int{}
	for _, p := range store.Health(c.view.Migrations()).Problems(now) {
		failures[p.Host] = max(failures[p.Host], p.Failures)
	}
	for _, h := range c.view.Hosts() {
		node := string(h.Host.Name)
		tell(descHost, 1, node, client.HostState(h, c.draining(h)))
		tell(descVMs, float64(count[h.Host.Name]), node)
		for _, stray := range h.Strays {
			tell(descStray, 1, string(stray.VM), node)
		}
		tell(descStrays, float64(len(h.Strays)), node)
		tell(descSecond, truth(h.Refused != nil), node)
		tell(descTroubles, float64(failures[h.Host.Name]), node)
		if !c.draining(h) {
			continue
		}
		bytes, _ := c.view.Outstanding(h.Host.Name, c.defaults.Strategy, now)
		tell(descLeftVMs, float64(left[h.Host.Name]), node)
		tell(descLeft, float64(bytes), node)
		if at := c.view.EstimateDrain(h.Host.Name, c.defaults.Strategy, now); !at.IsZero() {
			tell(descGone, at.Sub(now).Seconds(), node)
		}
	}
	if n := count[""]; n > 0 {
		tell(descVMs, float64(n), "")
	}
}
