package audit_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

const wantScenario = `name: after the log of controller/a
config: {parallelMigrationsPerCluster: 3}
evictionStrategy: LiveMigrate
order: SmallestFirst
onUnmovable: Keep
grace: 2m
groups: {db-set: {policy: anti-affinity, max: 2, domain: rack}}
defaults: {class: web}
hosts:
- {name: n1, memory: 64GiB, cpus: 64, link: 10Gbit/s}
` + `- {name: n2, memory: 64GiB, cpus: 64, link: 10Gbit/s, labels: {rack: a}, ` +
	`taints: ["gpu=yes:NoSchedule"]}
- {name: n3, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n4, memory: 64GiB, cpus: 64, link: 10Gbit/s, rack: r1, uplink: 40Gbit/s}
vms:
- {name: big, host: n1, memory: 8GiB, cpus: 1}
- {name: small, host: n1, memory: 1GiB, cpus: 1}
` + `- {name: other, namespace: prod, host: n3, memory: 1GiB, cpus: 1, labels: {app: x}, ` +
	`strategy: External, migratable: false, whyNot: it has a GPU, paused: true, nodeSelector: {rack: a}, ` +
	`tolerations: ["gpu=yes:NoSchedule", "*"], apart: [db], overhead: 256MiB, balloon: 1MiB, cpuRequest: 1, groups: [db-set], without: [default/big], tenant: acme, hardware: {disks: [{name: local, size: 3GiB}]}}
events:
- 30s mark prod/other
- 30s unmark prod/other
- 1m0s drain n1
- 2m0s mark prod/other
- 3m0s migrate default/small to=n3 priority=user-triggered
- 3m0.01s hold default/small backup
- 3m10s crash n4
- 3m40s fence n4
- 3m50s crash-agent n2 for=2m10s
- 4m30s cordon n3
- 5m0s undrain n1
- 5m0.01s stop default/small
- 5m0.02s cancel default/small
- 5m0.02s start default/small
- 5m0.02s unhold default/small backup
- 5m0.02s pause default/big
- 5m0.02s reboot default/big
- 5m0.02s resize default/big memory=16GiB cpus=1
- 6m0s crash-controller for=1m0s
- 7m30s uncordon n3
- 7m30s delete default/small
- 8m0s return n4
`

// constrained adds what hosts have and VMs ask for, and returns what changes a VM.
func constrained(c *cluster) (vm func(name string, how func(*store.VM))) {
	vm = func(name string, how func(*store.VM)) {
		change(c, store.VMKind, name, func(v *store.VM) store.Record {
			next := *v
			how(&next)
			return &next
		})
	}
	vm("prod/other", func(v *store.VM) {
		v.Labels, v.Migratable, v.NotMigratableReason = migration.Labels{"app": "x"}, false, "it has a GPU"
		v.Strategy = evacuation.External
		v.Overhead, v.Balloon, v.CPURequest, v.Disk = hypervisor.GiB/4, hypervisor.MiB, 1, 3*hypervisor.GiB
		v.Pause = true
		v.Placement = &placement.Constraints{Selector: placement.Labels{"rack": "a"},
			Without: []hypervisor.VMID{"default/big"}, Tenant: "acme", Apart: []string{"db"},
			Groups: []placement.GroupRule{{Group: "db set", Policy: placement.AntiAffinity, Max: 2, Domain: "rack"}},
			Tolerations: []placement.Toleration{{Key: "gpu", Value: "yes",
				Effect: placement.NoSchedule}, {Exists: true}}}
	})
	c.host("n4", func(h *store.Host) {
		h.Facts = &placement.Facts{Rack: "r1", Uplink: 40 * hypervisor.Gbit}
	})
	return vm
}

// story is a log in which all happens that a scenario can say.
func story(t *testing.T) []byte {
	c := newCluster(t, t.TempDir(),
		"config: {parallelMigrationsPerCluster: 3}\nevacuation: {order: SmallestFirst, onUnmovable: Keep, grace: 2m}\n")
	c.host("n2", func(h *store.Host) {
		h.Labels = placement.Labels{"rack": "a"}
		h.Taints = []placement.Taint{{Key: "gpu", Value: "yes", Effect: placement.NoSchedule}}
	})
	c.vm("default/small", "n1", 1, fake.Workload{})
	c.vm("default/big", "n1", 8, fake.Workload{})
	c.vm("prod/other", "n3", 1, fake.Workload{})
	vm := constrained(c)
	// Hints take 5 ms; the first look is at once.
	at := func(minutes float64, do func()) {
		c.run(epoch.Add(time.Duration(minutes * float64(time.Minute))).Sub(c.now))
		do()
		c.wakes.Set("", c.now)
	}
	mark := func(v *store.VM) { v.EvacuateFrom = v.Host }
	at(0.5, func() { vm("prod/other", mark) })
	c.run(0)
	vm("prod/other", func(v *store.VM) { v.EvacuateFrom = "" })
	c.wakes.Set("", c.now)
	at(1, func() { c.drain("n1", true) })
	at(2, func() { vm("prod/other", mark) })
	at(3, func() { c.migrate("default/small", 1, "n3") })
	c.run(10 * time.Millisecond)
	vm("default/small", func(v *store.VM) { v.Blockers.Backup = true })
	c.wakes.Set("", c.now)
	at(3+2.0/3, func() {
		c.host("n4", func(h *store.Host) { h.NotReady, h.Fenced = true, true })
	})
	at(4+1.0/3, func() { c.host("n2", func(h *store.Host) { h.NotReady = true }) })
	at(4.5, func() { c.host("n3", func(h *store.Host) { h.Cordoned = true }) })
	at(5, func() { c.drain("n1", false) })
	c.run(10 * time.Millisecond)
	vm("default/small", func(v *store.VM) { v.Stopped = true })
	c.wakes.Set("", c.now)
	c.run(10 * time.Millisecond)
	change(c, store.MigrationKind, "default/small#u1", func(m *store.Migration) store.Record {
		next := *m
		next.Cancel = true
		return &next
	})
	vm("default/small", func(v *store.VM) { v.Blockers.Backup, v.Stopped = false, false })
	vm("default/big", func(v *store.VM) { v.Reboots, v.Pause, v.VM.Memory = 1, true, 16*hypervisor.GiB })
	c.wakes.Set("", c.now)
	at(6, func() { c.host("n2", func(h *store.Host) { h.NotReady = false }) })
	at(7, func() { c.begin() })
	at(7.5, func() {
		c.host("n3", func(h *store.Host) { h.Cordoned = false })
		r, _ := c.store.Get(context.Background(), store.Key{Kind: store.VMKind,
			Name: "default/small"})
		c.must(c.store.Delete(context.Background(), r))
	})
	at(8, func() { c.host("n4", func(h *store.Host) { h.NotReady, h.Fenced = false, false }) })
	c.run(time.Minute)
	c.close()
	return c.log()
}

// TestTheScenarioOfALog says what operators did, what failed, when, and on which host or VM.
func TestTheScenarioOfALog(t *testing.T) {
	got, err := audit.Scenario(bytes.NewReader(story(t)))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(got), "name: ")
	if !strings.HasPrefix(head, "# Made by godwit replay --scenario") {
		t.Errorf("the head is\n%s", head)
	}
	if diff := cmp.Diff(wantScenario, "name: "+rest); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAScenarioIsPlayed, and a drain ends as it did.
func TestAScenarioIsPlayed(t *testing.T) {
	got, err := audit.Scenario(bytes.NewReader(drained(t, "{}\n")))
	if err != nil {
		t.Fatal(err)
	}
	w := simulate(t, got)
	for _, id := range w.VMs() {
		if v := w.VM(id); v.Host == "n1" {
			t.Errorf("%s is on n1, which was drained", id)
		}
	}
}

// simulate plays a scenario for an hour.
func simulate(t tester, text []byte) *sim.World {
	t.Helper()
	s, err := config.Parse("scenario", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	w.Run(time.Hour)
	for _, v := range w.Violations() {
		t.Errorf("%s: %s\n%s", v.Invariant, v.Detail, text)
	}
	return w
}
