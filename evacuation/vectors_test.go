package evacuation_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// The recordings hold in the compatible mode, with the mode of each release.
func TestVectors(t *testing.T) {
	testutil.ReplayEach(t, "evacuation*.jsonl", func(kind string) func(in, out) testutil.Outcome {
		mode := evacuation.QueueAll
		switch {
		case strings.Contains(kind, "freespots-v0.59"):
			mode = evacuation.FreeSpotsV059
		case strings.Contains(kind, "freespots"):
			mode = evacuation.FreeSpots
		}
		return func(i in, want out) testutil.Outcome { return replay(t, mode, i, want) }
	})
}

func replay(t *testing.T, mode evacuation.Mode, i in, want out) testutil.Outcome {
	p, err := i.params(mode)
	if err != nil {
		return testutil.Diff(err.Error())
	}
	migrations, err := i.flights()
	if err != nil {
		return testutil.Diff(err.Error())
	}
	vms, err := i.guests()
	if err != nil {
		return testutil.Diff(err.Error())
	}
	load := evacuation.Count(p, migrations, vms)
	load.Unseen = i.PendingCreations
	d := evacuation.Plan(p, i.host(), vms, load)
	checkPartition(t, d)
	got := outcome(mode, d, load)
	want.normalise()
	if want.Trace == nil { // nothing to tell, or the node is missing
		got.Trace = nil
	}
	return testutil.Diff(gocmp.Diff(want, got))
}

// outcome says a decision in the words of the recordings.
func outcome(mode evacuation.Mode, d evacuation.Decision, load evacuation.Load) out {
	var created, waiting, blocked []string
	for _, c := range d.Create {
		created = append(created, ref(c.VM))
	}
	for _, l := range d.Stay {
		switch {
		case l.Waits:
			waiting = append(waiting, ref(l.VM))
		case l.Blocks:
			blocked = append(blocked, ref(l.VM))
		}
	}
	o := out{RequeueAfter: int(d.Again / time.Second)}
	switch {
	case len(created) > 0 && len(waiting) > 0:
		o.CreatedCount = len(created)
		o.Candidates = slices.Sorted(slices.Values(slices.Concat(created, waiting)))
		o.EventCounts = append(o.EventCounts,
			eventCount{Event: "Normal SuccessfulCreate", Count: len(created)})
	default:
		o.Created = creations(mode, d.Create)
		o.Events = events("Normal SuccessfulCreate ", created)
	}
	var warned []string
	for _, vm := range d.Warn {
		warned = append(warned, ref(vm))
	}
	switch {
	case len(warned) == len(blocked):
		o.Events = append(o.Events, events("Normal FailedCreate ", warned)...)
	case len(warned) > 0:
		o.EventCounts = append(o.EventCounts,
			eventCount{Event: "Normal FailedCreate", Count: len(warned), Of: blocked})
	}
	o.Trace = &trace{load.InCluster, load.FromHost, len(created) + len(waiting), len(blocked)}
	o.normalise()
	return o
}

func creations(mode evacuation.Mode, list []evacuation.MigrationRequest) []created {
	var all []created
	for _, c := range list {
		namespace, name, _ := strings.Cut(string(c.VM), "/")
		made := created{VMI: name, Namespace: namespace}
		if mode == evacuation.QueueAll && c.Priority == migration.SystemMaintenance {
			made.Priority = "system-maintenance"
		}
		all = append(all, made)
	}
	return all
}

func events(what string, refs []string) []string {
	var all []string
	for _, r := range refs {
		all = append(all, what+r)
	}
	return all
}

// ref writes a VM as the recordings do: its namespace only if not default.
func ref(id hypervisor.VMID) string { return strings.TrimPrefix(string(id), "default/") }

type in struct {
	Strategy         string `json:"clusterEvictionStrategy"`
	DrainTaintKey    string
	PerCluster       *int `json:"parallelMigrationsPerCluster"`
	PerNode          *int `json:"parallelOutboundMigrationsPerNode"`
	NodeMissing      bool
	Taints           []struct{ Key, Effect string }
	PendingCreations int
	VMIs             []vmi
	Migrations       []vmim
}

type vmi struct {
	Name, Namespace, Node, Phase     string
	Deleted                          bool
	EvacuationNode, EvictionStrategy string
	LiveMigratable                   *string
	MigrationStarted, MigrationEnded *int
	Pods                             *[]string
	EvictionSource                   string
}

type vmim struct {
	VMI, Namespace, Phase string
	DecentralizedSource   bool
}

type out struct {
	Created      []created
	CreatedCount int
	Candidates   []string
	Events       []string
	EventCounts  []eventCount
	RequeueAfter int `json:"requeueAfterSeconds"`
	Trace        *trace
}

type created struct{ VMI, Namespace, Priority string }

type eventCount struct {
	Event string
	Count int
	Of    []string
}

type trace struct{ Counted, FromNode, Candidates, NonMigratable int }

// normalise fills in defaults and sorts what has no order.
func (o *out) normalise() {
	for i := range o.Created {
		c := &o.Created[i]
		c.Namespace = cmp.Or(c.Namespace, "default")
		c.Priority = cmp.Or(c.Priority, "system-critical")
	}
	slices.SortFunc(o.Created, func(a, b created) int {
		return cmp.Or(cmp.Compare(a.VMI, b.VMI), cmp.Compare(a.Namespace, b.Namespace))
	})
	slices.Sort(o.Events)
	slices.Sort(o.Candidates)
	slices.SortFunc(o.EventCounts, func(a, b eventCount) int {
		return cmp.Compare(a.Event, b.Event)
	})
	for i := range o.EventCounts {
		slices.Sort(o.EventCounts[i].Of)
	}
}

func (i in) params(mode evacuation.Mode) (evacuation.Params, error) {
	strategy, err := evacuation.ParseStrategy(i.Strategy)
	limits := evacuation.DefaultLimits()
	if i.PerCluster != nil {
		limits.PerCluster = *i.PerCluster
	}
	if i.PerNode != nil {
		limits.PerNode = *i.PerNode
	}
	return evacuation.Params{DrainKey: i.DrainTaintKey, Strategy: strategy, Mode: mode,
		Limits: limits, Order: evacuation.ByID, Compatible: true}, err
}

func (i in) host() evacuation.Host {
	h := evacuation.Host{Name: "n1", Missing: i.NodeMissing}
	for _, t := range i.Taints {
		h.Taints = append(h.Taints, placement.Taint{Key: t.Key, Effect: placement.Effect(t.Effect)})
	}
	return h
}

// flights are the migrations, every one with an ID of its own.
func (i in) flights() ([]evacuation.ActiveMigration, error) {
	var all []evacuation.ActiveMigration
	for n, m := range i.Migrations {
		f := evacuation.ActiveMigration{
			ID:     migration.ID(fmt.Sprintf("m%d", n)),
			VM:     vmID(m.Namespace, m.VMI),
			Abroad: m.DecentralizedSource,
		}
		word := m.Phase
		if word == "WaitingForSync" || word == "Synchronizing" {
			word = "Pending" // of a cross-cluster migration that holds no slot yet
		}
		if err := f.Phase.UnmarshalText([]byte(word)); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// guests are the VMs on n1.
func (i in) guests() ([]evacuation.VM, error) {
	unfinished := map[hypervisor.VMID]bool{}
	migrations, err := i.flights()
	for _, f := range migrations {
		if !f.Phase.Final() {
			unfinished[f.VM] = true
		}
	}
	var all []evacuation.VM
	for _, v := range i.VMIs {
		if cmp.Or(v.Node, "n1") != "n1" {
			continue
		}
		g, failed := v.guest()
		err = cmp.Or(err, failed)
		g.Moving = unfinished[g.ID]
		all = append(all, g)
	}
	return all, err
}

func (v vmi) guest() (evacuation.VM, error) {
	strategy, err := evacuation.ParseStrategy(v.EvictionStrategy)
	g := evacuation.VM{
		ID:           vmID(v.Namespace, v.Name),
		Final:        v.Phase == "Succeeded" || v.Phase == "Failed",
		Deleting:     v.Deleted,
		Strategy:     strategy,
		Migratable:   v.LiveMigratable == nil || *v.LiveMigratable == "True",
		EvacuateFrom: hypervisor.HostName(v.EvacuationNode),
		Migrating:    migrating(ago(v.MigrationStarted), ago(v.MigrationEnded), now),
		Instances:    1,
		Descheduled:  v.EvictionSource == "descheduler",
	}
	if v.Pods != nil {
		g.Instances = 0
		for _, phase := range *v.Pods {
			if phase != "Succeeded" && phase != "Failed" {
				g.Instances++
			}
		}
	}
	return g, err
}

// migrating reports whether a VMI migrates at now, by the times that it carries itself: begun, and not ended.
// Source: KubeVirt v1.9.0 pkg/util/migrations/migrations.go:76 (IsMigrating).
func migrating(started, ended, now time.Time) bool {
	begun := !started.IsZero() && !started.After(now)
	over := !ended.IsZero() && !ended.After(now)
	return begun && !over
}

func vmID(namespace, name string) hypervisor.VMID {
	return hypervisor.VMID(cmp.Or(namespace, "default") + "/" + name)
}

var now = time.Date(2026, 8, 22, 12, 0, 0, 0, time.UTC)

// ago returns the time some seconds before now; nil is absent.
func ago(seconds *int) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(*seconds) * time.Second)
}

// checkPartition: every VM is in one list only, and the notices are about VMs
// that block.
func checkPartition(t interface{ Errorf(string, ...any) }, d evacuation.Decision) {
	seen := map[hypervisor.VMID]int{}
	blocks := map[hypervisor.VMID]bool{}
	for _, c := range d.Create {
		seen[c.VM]++
	}
	for _, l := range d.Stay {
		seen[l.VM]++
		blocks[l.VM] = l.Blocks
		if len(l.Reasons) == 0 {
			t.Errorf("%s stays without a reason", l.VM)
		}
	}
	for _, vm := range slices.Sorted(maps.Keys(seen)) {
		if seen[vm] > 1 {
			t.Errorf("%s is decided about %d times", vm, seen[vm])
		}
	}
	for _, vm := range d.Warn {
		if !blocks[vm] {
			t.Errorf("a notice about %s, which does not block", vm)
		}
	}
}
