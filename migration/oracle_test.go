package migration_test

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// The oracle restates KubeVirt's algorithm in its own two passes: first all
// policies with the best score are collected, then the smallest name of them is
// looked for. It is there to be compared with, so it shares nothing with the
// package but the types.
// Source: KubeVirt v1.9.0 migrationpolicy.go:20-122 (matching), :126-208 (merge).

type oracleScore struct{ vm, namespace int }

func (s oracleScore) better(t oracleScore) bool {
	if s.vm+s.namespace != t.vm+t.namespace {
		return s.vm+s.namespace > t.vm+t.namespace
	}
	return s.vm > t.vm
}

// oracleMatch returns the place of the winner, or -1.
func oracleMatch(policies []migration.Policy, vm, namespace labels) int {
	var tied []int
	top := oracleScore{}
	for i, p := range policies {
		ok, score := oracleCount(p, vm, namespace)
		switch {
		case !ok || top.better(score):
		case score.better(top):
			top, tied = score, []int{i}
		default:
			tied = append(tied, i)
		}
	}
	if len(tied) == 0 {
		return -1
	}
	winner := tied[0]
	for _, i := range tied {
		if policies[i].Name < policies[winner].Name {
			winner = i
		}
	}
	return winner
}

func oracleCount(p migration.Policy, vm, namespace labels) (bool, oracleScore) {
	if p.Selectors == nil {
		return false, oracleScore{}
	}
	ok, score := true, oracleScore{}
	count := func(selector, have labels) int {
		n := 0
		for key, want := range selector {
			got, exists := have[key]
			if !exists || got != want {
				ok = false
				return 0
			}
			n++
		}
		return n
	}
	if p.Selectors.VM != nil && vm != nil {
		score.vm = count(p.Selectors.VM, vm)
	}
	if ok && p.Selectors.Namespace != nil && vm != nil { // the VM's labels: the bug
		score.namespace = count(p.Selectors.Namespace, namespace)
	}
	if !ok {
		return false, oracleScore{}
	}
	return true, score
}

// oracleConfig is the resolved configuration as KubeVirt keeps it: pointers, of
// which those of the base are never nil but in what is experimental.
type oracleConfig struct {
	autoConverge, postCopy, disruption *bool
	bandwidth                          *hypervisor.Bandwidth
	completion, downtime               *time.Duration
	stall                              *stall
	tuning                             *tuning
	compression                        *migration.Compression
}

func oracleResolve(c migration.Cluster, policies []migration.Policy, vm, namespace labels) (
	oracleConfig, string) {
	r := oracleConfig{
		autoConverge: &c.AllowAutoConverge,
		postCopy:     &c.AllowPostCopy,
		disruption:   &c.AllowWorkloadDisruption,
		bandwidth:    &c.BandwidthPerMigration,
		completion:   &c.CompletionTimeoutPerGiB,
		downtime:     &c.MaxDowntime,
	}
	i := oracleMatch(policies, vm, namespace)
	if i < 0 {
		return r, ""
	}
	o := policies[i].OptionsOverrides
	if o.AllowWorkloadDisruption == nil && o.AllowPostCopy != nil {
		r.disruption = o.AllowPostCopy
	}
	replace(&r.autoConverge, o.AllowAutoConverge)
	replace(&r.bandwidth, o.BandwidthPerMigration)
	replace(&r.completion, o.CompletionTimeoutPerGiB)
	replace(&r.downtime, o.MaxDowntime)
	replace(&r.postCopy, o.AllowPostCopy)
	replace(&r.disruption, o.AllowWorkloadDisruption)
	if e := o.Experimental; e != nil {
		r.stall, r.tuning, r.compression = e.StallDetector, e.DowntimeTuning, e.Compression
	}
	return r, policies[i].Name
}

func replace[T any](field **T, value *T) {
	if value != nil {
		*field = value
	}
}

// options returns what the parts of KubeVirt that read the configuration make
// of it: there every field that is nil has its default.
func (r oracleConfig) options(c migration.Cluster) migration.Options {
	o := migration.Options{
		AllowAutoConverge:            *r.autoConverge,
		AllowPostCopy:                *r.postCopy,
		AllowWorkloadDisruption:      *r.disruption,
		Bandwidth:                    *r.bandwidth,
		CompletionTimeoutPerGiB:      *r.completion,
		ProgressTimeout:              c.ProgressTimeout,
		MaxDowntime:                  *r.downtime,
		UtilityVolumesTimeout:        c.UtilityVolumesTimeout,
		UnsafeMigrationOverride:      c.UnsafeMigrationOverride,
		DisableTLS:                   c.DisableTLS,
		Encryption:                   map[bool]migration.Encryption{true: migration.EncryptionOff}[c.DisableTLS],
		Network:                      c.Network,
		MatchSELinuxLevelOnMigration: c.MatchSELinuxLevelOnMigration,
		Compression:                  value(r.compression, ""),
	}
	if s := r.stall; s != nil {
		o.StallDetector = &migration.StallDetector{
			StallMargin:               value(s.StallMargin, 4),
			EWMAAlpha:                 value(s.EWMAAlpha, 0.4),
			StallProgressTimeout:      value(s.StallProgressTimeout, 40*time.Second),
			SwitchoverTimeout:         value(s.SwitchoverTimeout, 60*time.Second),
			PrecopyPossibleFactor:     value(s.PrecopyPossibleFactor, 1.5),
			PatienceWindowDecayFactor: value(s.PatienceWindowDecayFactor, 0.5),
			SearchLocalMinima:         value(s.SearchLocalMinima, true),
			CompletionTimeoutFactor:   value(s.CompletionTimeoutFactor, 2),
		}
	}
	if d := r.tuning; d != nil {
		o.DowntimeTuning = &migration.DowntimeTuning{
			Initial:             value(d.Initial, 150*time.Millisecond),
			Steps:               value(d.Steps, 7),
			StartAfterIteration: value(d.StartAfterIteration, 3),
			Cooldown:            value(d.Cooldown, 10*time.Second),
		}
	}
	return o
}
