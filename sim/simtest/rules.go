package simtest

import (
	"errors"
	"fmt"
	"maps"

	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Limits draws how much may move at once, and where migrations wait.
func Limits() Part {
	return Part{Name: "with any limits", Add: func(m *Builder) {
		cluster, source := m.Between("per cluster", 1, 6), m.Between("per source", 1, 4)
		target := m.Between("per target", 0, 2)
		m.World.Limits.PerCluster, m.World.Limits.PerSource = &cluster, &source
		m.World.Limits.PerTarget = &target
		m.World.Mode = m.OneOf("mode", "QueueAll", "FreeSpots")
	}}
}

// Means draws how memory may be moved: a long downtime makes long switch-overs.
func Means() Part {
	return Part{Name: "with any means", Add: func(m *Builder) {
		m.World.Config.OptionsSpec = m.options()
	}}
}

// options draws what a cluster or a policy sets.
func (m *Builder) options() inventory.OptionsSpec {
	postCopy, disruption := m.Once("post-copy", 2), m.Once("disruption", 2)
	throttle := m.Once("auto-converge", 2)
	downtime := []int64{downtimeMs, 5000, 30000}[m.Choose("downtime", 3)]
	return inventory.OptionsSpec{AllowPostCopy: &postCopy, AllowWorkloadDisruption: &disruption,
		AllowAutoConverge: &throttle, MaxDowntimeMs: &downtime,
		CompletionTimeoutPerGiB: m.OneOf("completion", "150s", "5s", "30s")}
}

// ConflictingPolicies adds migration policies that match the same VMs and contradict each
// other: two at least match one VM, and say the opposite about post-copy.
func ConflictingPolicies() Part {
	return Part{"with policies that conflict", func(m *Builder) {
		labels := []placement.Labels{{"tier": "db"}, {"tier": "db", "team": "red"}, {"team": "red"}}
		for i := range m.World.VMs {
			m.World.VMs[i].Labels = labels[1]
			if i > 0 {
				m.World.VMs[i].Labels = labels[m.Choose("labels", len(labels))]
			}
		}
		for i := range m.Between("policies", 2, 4) {
			o := m.options()
			if i < 2 {
				allowed := i == 1
				o.AllowPostCopy = &allowed
			}
			s := &inventory.SelectorsSpec{VM: labels[m.Choose("selector", len(labels))]}
			m.World.Policies = append(m.World.Policies, inventory.PolicySpec{
				Name: fmt.Sprintf("p%d", i+1), Selectors: s, OptionsSpec: o})
		}
	}, conflict}
}

func conflict(w *World) error {
	for i := range w.VMs {
		matching, allowing := 0, 0
		for _, p := range w.Policies {
			if p.Selectors == nil || p.AllowPostCopy == nil ||
				!has(w.VMs[i].Labels, p.Selectors.VM) {
				continue
			}
			matching++
			if *p.AllowPostCopy {
				allowing++
			}
		}
		if allowing > 0 && allowing < matching {
			return nil
		}
	}
	return errors.New("no two policies that match a VM say the opposite about post-copy")
}

// has reports whether labels have all that a selector asks for.
func has(labels, selector placement.Labels) bool {
	wanted := maps.Clone(selector)
	maps.DeleteFunc(wanted, func(k, v string) bool { return labels[k] == v })
	return len(wanted) == 0
}
