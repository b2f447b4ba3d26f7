package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
)

func build(t testing.TB, s *config.Scenario) *sim.World {
	t.Helper()
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAnOverCommittedHostRunsWhatIsOnIt: it takes no more, and can be drained.
func TestAnOverCommittedHostRunsWhatIsOnIt(t *testing.T) {
	s := parse(t, `
hosts:
- {name: n1, memory: 8GiB, cpus: 2, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: "a[1-3]", host: n1, memory: 4GiB, cpus: 4, class: idle}
- {name: b, host: n2, memory: 4GiB, cpus: 1, class: idle}
events:
- migrate b to=n1
- 1h drain n1
`)
	if len(s.Fleet.Warnings) == 0 {
		t.Error("there is no warning of too little room")
	}
	w := build(t, s)
	h := w.HostRecord("n1").Host
	if h.Memory != 8*hypervisor.GiB || h.CPUs != 2 {
		t.Errorf("n1 has %v and %d CPUs, want 8GiB and 2", h.Memory, h.CPUs)
	}
	w.Run(s.Until)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	for _, id := range []hypervisor.VMID{"default/a1", "default/a2", "default/a3", "default/b"} {
		if at := w.VM(id).Host; at != "n2" {
			t.Errorf("%s is on %s, want n2", id, at)
		}
	}
}

func TestAnOverCommittedHostThatOneVMHasLeftIsStillFull(t *testing.T) {
	s := parse(t, `
hosts:
- {name: n1, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n2, memory: 16GiB, cpus: 64, link: 10Gbit/s}
- {name: n3, memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: "a-[1-5]", host: n1, memory: 16GiB, class: idle}
- {name: b, host: n2, memory: 16GiB, class: idle}
events:
- 1s migrate a-1 to=n3
- 10m drain n2
`)
	w := build(t, s)
	w.Run(s.Until)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	if one, b := w.VM("default/a-1").Host, w.VM("default/b").Host; one != "n3" || b != "n2" {
		t.Errorf("a-1 is on %s, and b on %s, want n3 and n2", one, b)
	}
	said := ""
	for _, r := range w.Why("default/b") {
		said += r.String() + "\n"
	}
	if want := "n1: memory needs 16GiB has 0B"; !strings.Contains(said, want) {
		t.Errorf("b stays because of\n%s\nwant %q", said, want)
	}
}

func TestVMsThatDoNotRunAreLeftOut(t *testing.T) {
	s := parse(t, small+"- {name: later, memory: 4GiB}\n"+
		"events: [mark later, migrate later, kill later n1, load later rate=1MiB/s hot=1GiB]\n")
	w := build(t, s)
	if v := w.VM("default/later"); v != nil {
		t.Errorf("it is there: %+v", v)
	}
	if v := w.VM("default/web-1"); v == nil || v.Host != "n1" {
		t.Errorf("web-1 is not there: %+v", v)
	}
	if end := w.Run(s.Until); end != sim.AtRest {
		t.Error("what is done to a VM that does not run goes on for ever")
	}
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
}

func TestWhatIsKnownOfHostsAndVMsIsKept(t *testing.T) {
	w := build(t, parse(t, `
hosts:
- {name: n1, memory: 8GiB, cpus: 4, link: 1Gbit/s, labels: {rack: a}, taints: "k=v:NoExecute"}
- {name: n2, memory: 8GiB, cpus: 4, cordoned: true}
- {name: n3, memory: 8GiB, cpus: 4, down: true}
vms:
- name: a
  namespace: prod
  host: n1
  memory: 1GiB
  labels: {app: x}
  strategy: None
  whyNot: a GPU
  marked: true
  nodeSelector: {rack: a}
  apart: g
- {name: b, host: n1, memory: 1GiB}
`))
	n1 := w.HostRecord("n1")
	if n1.Host.Link != hypervisor.Gbit || n1.Labels["rack"] != "a" || n1.Cordoned || n1.NotReady {
		t.Errorf("n1 is %+v", n1)
	}
	taint := placement.Taint{Key: "k", Value: "v", Effect: placement.NoExecute}
	if diff := cmp.Diff([]placement.Taint{taint}, n1.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if h := w.HostRecord("n2"); !h.Cordoned || h.NotReady {
		t.Errorf("n2, which is cordoned, is closed %t and lost %t", h.Cordoned, h.NotReady)
	}
	if h := w.HostRecord("n3"); !h.Cordoned || !h.NotReady {
		t.Errorf("n3, which is down, is closed %t and lost %t", h.Cordoned, h.NotReady)
	}
	a, b := w.VM("prod/a"), w.VM("default/b")
	if a.Namespace != "prod" || a.Labels["app"] != "x" || a.Migratable || a.NotMigratableReason != "a GPU" ||
		a.EvacuateFrom != "n1" || a.Strategy.String() != "None" {
		t.Errorf("a is %+v", a)
	}
	if a.Placement == nil || a.Placement.Selector["rack"] != "a" ||
		!cmp.Equal(a.Placement.Apart, []string{"g"}) {
		t.Errorf("a may be placed on %+v", a.Placement)
	}
	if b.Placement != nil || !b.Migratable || b.EvacuateFrom != "" {
		t.Errorf("b, of which nothing is said, is %+v", b)
	}
}

// taking is a fleet of two hosts whose VM is just being moved.
func taking(moves ...migration.Spec) *config.Scenario {
	host := func(name hypervisor.HostName) inventory.Host {
		return inventory.Host{Host: hypervisor.Host{Name: name, Memory: 64 * hypervisor.GiB,
			CPUs: 8, Link: 10 * hypervisor.Gbit}}
	}
	f := &inventory.Fleet{Hosts: []inventory.Host{host("n1"), host("n2")},
		VMs: []inventory.VM{{VM: hypervisor.VM{ID: "default/a", Memory: hypervisor.GiB,
			CPUs: 1}, Host: "n1", Migratable: true}}}
	for _, m := range moves {
		f.Migrations = append(f.Migrations, inventory.Migration{Spec: m,
			Phase: migration.Running, Source: "n1", Chosen: "n2"})
	}
	return &config.Scenario{Name: "taken over", Fleet: f, Until: time.Hour, Model: fake.QEMU()}
}

func TestUnfinishedMigrationsAreTakenOver(t *testing.T) {
	before, after := sim.Epoch.Add(-time.Minute), sim.Epoch.Add(time.Minute)
	tests := []struct {
		name          string
		created, want time.Time
	}{
		{"one that is known to be old", before, before},
		{"one from after the beginning", after, sim.Epoch},
		{"one of unknown age", time.Time{}, sim.Epoch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := migration.Spec{ID: "default/m1", VM: "default/a", Created: tt.created,
				Priority: migration.SystemCritical, Timeouts: migration.Overrides{Unschedulable: new(time.Minute)}}
			w := build(t, taking(want))
			w.Run(time.Hour)
			w.CheckAtRest()
			for _, v := range w.Violations() {
				t.Errorf("%s: %s", v.Invariant, v.Detail)
			}
			all := w.Migrations("default/a")
			if len(all) != 1 || all[0].State.Phase != migration.Succeeded {
				t.Fatalf("migrations %+v", all)
			}
			want.Created = tt.want
			if diff := cmp.Diff(want, all[0].Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if at := w.VM("default/a").Host; at != "n2" {
				t.Errorf("the VM is on %s", at)
			}
		})
	}
}

func TestAMigrationThatIsThereTwiceIsAnError(t *testing.T) {
	m := migration.Spec{ID: "default/m1", VM: "default/a"}
	s := taking(m, m)
	if _, err := s.Build(s.Config(1)); err == nil {
		t.Error("there is no error")
	}
}

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	trace := func(seed uint64) string {
		s := parse(t, small+"events:\n- 1s drain n1\n- 2s crash-agent n2 for=1m\n")
		text, c := "", s.Config(seed)
		c.Trace = func(e sim.Entry) { text += e.String() + "\n" }
		w, err := s.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		w.Run(s.Until)
		return text
	}
	if one, two := trace(5), trace(5); one != two {
		t.Errorf("two runs differ (-first +second):\n%s", cmp.Diff(one, two))
	}
	if one, other := trace(5), trace(6); one == other {
		t.Error("another seed changes nothing")
	}
}

// TestNothingMovesOffAHostThatIsDown before it returns: there is no agent that could send it.
func TestNothingMovesOffAHostThatIsDown(t *testing.T) {
	const down = `
hosts:
- {name: n1, memory: 64GiB, cpus: 16, down: true}
- {name: n2, memory: 64GiB, cpus: 16}
vms:
- {name: v, host: n1, memory: 4GiB, class: idle}
until: 2h
events:
- drain n1
`
	for _, tt := range []struct {
		text string
		at   hypervisor.HostName
	}{{down, "n1"}, {down + "- 10m return n1\n", "n2"}} {
		w := build(t, parse(t, tt.text))
		w.Run(2 * time.Hour)
		if at := w.VM("default/v").Host; at != tt.at {
			t.Errorf("the VM is on %s, want %s:%s", at, tt.at, tt.text)
		}
		for _, v := range w.Violations() {
			t.Errorf("%s: %s", v.Invariant, v.Detail)
		}
	}
}
