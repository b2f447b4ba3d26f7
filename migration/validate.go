package migration

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// A PolicyProblem is something wrong with a configuration: where, what it needed, and
// what there was. All of it is text for people; nothing is decided on it.
type PolicyProblem struct{ Field, Need, Have string }

// String says the problem in one line.
func (p PolicyProblem) String() string {
	return humanize.Unmet(p.Field, p.Need, p.Have)
}

// problems collects everything that is wrong, in the order of the questions.
type problems []PolicyProblem

// need adds a problem unless ok holds.
func (all *problems) need(ok bool, field, need, have string) {
	if !ok {
		*all = append(*all, PolicyProblem{field, need, have})
	}
}

// Validate returns everything that is wrong with p, in the order of the fields;
// none means that it may be used. Not asked for are KubeVirt's feature gates,
// which refuse changes of MaxDowntime and of Experimental where a gate is closed.
// Beyond KubeVirt, where the API server asks for it, a policy needs a name.
// Source: KubeVirt v1.9.0 migrationpolicy-admitter.go:56 (Admit), and the bounds
// of the schema in api/migrations/v1alpha1/types.go:43.
func (p Policy) Validate() []PolicyProblem {
	var all problems
	all.need(p.Name != "", "name", "a name", "none")
	if v := p.BandwidthPerMigration; v != nil {
		all.bandwidth(*v)
	}
	if v := p.CompletionTimeoutPerGiB; v != nil {
		all.duration("completionTimeoutPerGiB", *v, 0)
	}
	if v := p.MaxDowntime; v != nil {
		all.downtime(*v)
	}
	if p.Experimental != nil {
		all.experimental(*p.Experimental)
		all.need(p.Experimental.StallDetector == nil || p.Convergence == nil ||
			*p.Convergence == convergence.Stall, "convergence",
			"Stall, since there is a stallDetector", policyOr(p.Convergence, 0).String())
	}
	return all
}

// Validate returns everything that is wrong with c, in the order of the fields;
// none means that it may be used. KubeVirt checks only the types, which allow no
// negative limits, and the feature gates of maxDowntimeMs; the other bounds here
// are those of policies, since both end up in the same options.
func (c Cluster) Validate() []PolicyProblem {
	var all problems
	all.count("parallelMigrationsPerCluster", c.ParallelMigrationsPerCluster, 0)
	all.count("parallelOutboundMigrationsPerNode", c.ParallelOutboundMigrationsPerNode, 0)
	all.count("parallelInboundMigrationsPerNode", c.ParallelInboundMigrationsPerNode, 0)
	all.bandwidth(c.BandwidthPerMigration)
	all.duration("progressTimeout", c.ProgressTimeout, 0)
	all.duration("completionTimeoutPerGiB", c.CompletionTimeoutPerGiB, 0)
	all.downtime(c.MaxDowntime)
	all.duration("utilityVolumesTimeout", c.UtilityVolumesTimeout, 0)
	return all
}

// OverlappingPolicies warns of policies that can never win because another policy matches
// exactly the same VMs and has a smaller name, and of policies with one name.
// KubeVirt checks neither. A policy without selectors matches nothing, and so
// overlaps nothing. Their order does not matter as long as their names differ.
func OverlappingPolicies(policies []Policy) []PolicyProblem {
	var all problems
	sorted := make([]*Policy, len(policies))
	for i := range policies {
		sorted[i] = &policies[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Policy) int { return cmp.Compare(a.Name, b.Name) })
	first := map[string]string{} // the smallest name, by selectors
	for i, p := range sorted {
		all.need(i == 0 || sorted[i-1].Name != p.Name, "name",
			"a name that no other policy has", strconv.Quote(p.Name)+" twice")
		if p.Selectors == nil {
			continue
		}
		key := p.Selectors.key()
		winner, taken := first[key]
		if !taken {
			first[key] = p.Name
			continue
		}
		all.need(winner == p.Name, "selectors of "+p.Name, "labels that no other policy selects",
			"those of "+winner+", which always wins")
	}
	return all
}

// key returns a text that is equal for selectors that match the same VMs.
func (s *Selectors) key() string {
	var b strings.Builder
	for _, labels := range []Labels{s.VM, s.Namespace} {
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			fmt.Fprintf(&b, "%q=%q,", name, labels[name])
		}
		b.WriteByte('/')
	}
	return b.String()
}

// Source: KubeVirt v1.9.0 migrationpolicy-admitter.go:56 (Admit).
func (all *problems) experimental(e Experimental) {
	const path = "experimental."
	all.need(e.StallDetector == nil || e.DowntimeTuning == nil, path+"downtimeTuning",
		"no stallDetector beside it", "one")
	if e.StallDetector != nil {
		all.stallDetector(path+"stallDetector.", *e.StallDetector)
	}
	if e.DowntimeTuning != nil {
		all.downtimeTuning(path+"downtimeTuning.", *e.DowntimeTuning)
	}
	if c := e.Compression; c != nil {
		all.need(*c == "" || *c == CompressionNone || *c == CompressionZstd,
			path+"compression", `"none" or "zstd"`, strconv.Quote(string(*c)))
	}
}

func (all *problems) stallDetector(path string, o StallDetectorOverrides) {
	d := o.apply(nil) // what is not set has its default, which is valid
	all.need(0 <= d.StallMargin && d.StallMargin <= 100, path+"stallMargin",
		"0 to 100 percent", strconv.Itoa(d.StallMargin))
	all.factor(path+"ewmaAlpha", d.EWMAAlpha, "above 0, up to 1",
		d.EWMAAlpha > 0 && d.EWMAAlpha <= 1)
	all.duration(path+"stallProgressTimeout", d.StallProgressTimeout, 0)
	all.duration(path+"switchoverTimeout", d.SwitchoverTimeout, 0)
	all.factor(path+"precopyPossibleFactor", d.PrecopyPossibleFactor, "1 or more",
		d.PrecopyPossibleFactor >= 1)
	all.factor(path+"patienceWindowDecayFactor", d.PatienceWindowDecayFactor, "0 to 1",
		d.PatienceWindowDecayFactor >= 0 && d.PatienceWindowDecayFactor <= 1)
	all.factor(path+"completionTimeoutFactor", d.CompletionTimeoutFactor, "1 or more",
		d.CompletionTimeoutFactor >= 1)
}

func (all *problems) downtimeTuning(path string, o DowntimeTuningOverrides) {
	t := o.apply(nil)
	all.duration(path+"initialMs", t.Initial, time.Millisecond)
	all.count(path+"steps", t.Steps, 1)
	all.count(path+"startAfterIteration", t.StartAfterIteration, 1)
	all.duration(path+"cooldownSeconds", t.Cooldown, time.Second)
}

// factor wants v in its range, and with at most three decimals, as KubeVirt
// stores it. What is not a number has none to be asked for.
func (all *problems) factor(field string, v float64, bounds string, within bool) {
	have := strconv.FormatFloat(v, 'f', -1, 64)
	all.need(within && !math.IsInf(v, 0), field, bounds, have)
	short := v == math.Trunc(v) || math.Abs(v-math.Round(v*1000)/1000) <= 1e-9
	all.need(short || math.IsNaN(v), field, "at most 3 decimals", have)
}

func (all *problems) bandwidth(v hypervisor.Bandwidth) {
	all.need(v >= 0, "bandwidthPerMigration", "0 (no cap) or more",
		strconv.FormatInt(int64(v), 10)+"B/s")
}

func (all *problems) downtime(v time.Duration) {
	const least, most = time.Millisecond, 2_000_000 * time.Millisecond
	all.need(least <= v && v <= most, "maxDowntimeMs", "1ms to 2000s", v.String())
}

func (all *problems) duration(field string, v, least time.Duration) {
	all.need(v >= least, field, least.String()+" or more", v.String())
}

func (all *problems) count(field string, v, least int) {
	all.need(v >= least, field, strconv.Itoa(least)+" or more", strconv.Itoa(v))
}
