package migration_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
)

type recordedIn struct {
	Policies        []recordedPolicy
	VMILabels       migration.Labels
	NamespaceLabels migration.Labels
	Cluster         recordedConfig
}

type recordedPolicy struct {
	Name              string
	NoSelectors       bool
	VMISelector       migration.Labels
	NamespaceSelector migration.Labels
	Spec              recordedConfig
}

type recordedOut struct {
	Policy string
	Config recordedConfig
}

// recordedConfig is what an operator or a policy writes, and what was resolved.
type recordedConfig struct {
	AllowAutoConverge, AllowPostCopy, AllowWorkloadDisruption *bool
	DisableTLS, UnsafeMigrationOverride                       *bool
	MatchSELinuxLevelOnMigration                              *bool
	CompletionTimeoutPerGiB, MaxDowntimeMs                    *int64
	ProgressTimeout, UtilityVolumesTimeout                    *int64
	ParallelMigrationsPerCluster                              *int
	ParallelOutboundMigrationsPerNode                         *int
	BandwidthPerMigration, Network, NodeDrainTaintKey         *string
	Experimental                                              *recordedExperimental
}

type recordedExperimental struct {
	StallDetector *struct {
		StallMargin                                        *int
		StallProgressTimeout, SwitchoverTimeout            *int64
		SearchLocalMinima                                  *bool
		EWMAAlpha, PrecopyPossibleFactor                   *string
		PatienceWindowDecayFactor, CompletionTimeoutFactor *string
	}
	DowntimeTuning *struct {
		InitialMs, CooldownSeconds *int64
		Steps, StartAfterIteration *int
	}
	Compression *migration.Compression
}

// decision is all that a resolution decides.
type decision struct {
	Policy                string
	Options               migration.Options
	PerCluster, PerSource int
	DrainTaintKey         string
}

// TestPolicyVectors needs Compatible: the recordings contain VMs whose labels are nil.
func TestPolicyVectors(t *testing.T) {
	testutil.Replay(t, "policy*.jsonl", func(in recordedIn, out recordedOut) testutil.Outcome {
		return testutil.Diff(cmp.Diff(policyRecorded(out), decide(in)))
	})
}

func decide(in recordedIn) decision {
	var policies []migration.Policy
	for _, p := range in.Policies {
		policies = append(policies, p.policy())
	}
	c := in.Cluster.cluster().Complete()
	options, name := migration.PolicyMatcher{Compatible: true}.Resolve(
		c, policies, in.VMILabels, in.NamespaceLabels)
	return decision{name, options, c.ParallelMigrationsPerCluster,
		c.ParallelOutboundMigrationsPerNode, c.NodeDrainTaintKey}
}

// policyRecorded lays the recorded fields over the defaults that the description of
// the recordings names. It does not use what it is there to check.
func policyRecorded(out recordedOut) decision {
	c, e := out.Config, recordedExperimental{}
	if c.Experimental != nil {
		e = *c.Experimental
	}
	return decision{
		Policy: out.Policy,
		Options: migration.Options{
			AllowAutoConverge:            value(c.AllowAutoConverge, false),
			AllowPostCopy:                value(c.AllowPostCopy, false),
			AllowWorkloadDisruption:      value(c.AllowWorkloadDisruption, false),
			Bandwidth:                    value(bandwidth(c.BandwidthPerMigration), 0),
			CompletionTimeoutPerGiB:      timeout(c.CompletionTimeoutPerGiB),
			ProgressTimeout:              timeout(c.ProgressTimeout),
			MaxDowntime:                  value(millis(c.MaxDowntimeMs), 900*time.Millisecond),
			UtilityVolumesTimeout:        timeout(c.UtilityVolumesTimeout),
			UnsafeMigrationOverride:      value(c.UnsafeMigrationOverride, false),
			DisableTLS:                   value(c.DisableTLS, false),
			Encryption:                   map[bool]migration.Encryption{true: migration.EncryptionOff}[value(c.DisableTLS, false)],
			Network:                      value(c.Network, ""),
			MatchSELinuxLevelOnMigration: value(c.MatchSELinuxLevelOnMigration, true),
			StallDetector:                e.detector(),
			DowntimeTuning:               e.tuning(),
			Compression:                  value(e.Compression, ""),
		},
		PerCluster:    value(c.ParallelMigrationsPerCluster, 5),
		PerSource:     value(c.ParallelOutboundMigrationsPerNode, 2),
		DrainTaintKey: value(c.NodeDrainTaintKey, "kubevirt.io/drain"),
	}
}

// timeout: all timeouts of the cluster have one default.
func timeout(recorded *int64) time.Duration {
	return value(seconds(recorded), 150*time.Second)
}

func (e recordedExperimental) detector() *migration.StallDetector {
	d := e.StallDetector
	if d == nil {
		return nil
	}
	return &migration.StallDetector{
		StallMargin:               value(d.StallMargin, 4),
		EWMAAlpha:                 value(factor(d.EWMAAlpha), 0.4),
		StallProgressTimeout:      value(seconds(d.StallProgressTimeout), 40*time.Second),
		SwitchoverTimeout:         value(seconds(d.SwitchoverTimeout), 60*time.Second),
		PrecopyPossibleFactor:     value(factor(d.PrecopyPossibleFactor), 1.5),
		PatienceWindowDecayFactor: value(factor(d.PatienceWindowDecayFactor), 0.5),
		SearchLocalMinima:         value(d.SearchLocalMinima, true),
		CompletionTimeoutFactor:   value(factor(d.CompletionTimeoutFactor), 2),
	}
}

func (e recordedExperimental) tuning() *migration.DowntimeTuning {
	d := e.DowntimeTuning
	if d == nil {
		return nil
	}
	return &migration.DowntimeTuning{
		Initial:             value(millis(d.InitialMs), 150*time.Millisecond),
		Steps:               value(d.Steps, 7),
		StartAfterIteration: value(d.StartAfterIteration, 3),
		Cooldown:            value(seconds(d.CooldownSeconds), 10*time.Second),
	}
}

func (p recordedPolicy) policy() migration.Policy {
	s := p.Spec
	q := migration.Policy{Name: p.Name, OptionsOverrides: migration.OptionsOverrides{
		AllowAutoConverge:       s.AllowAutoConverge,
		AllowPostCopy:           s.AllowPostCopy,
		AllowWorkloadDisruption: s.AllowWorkloadDisruption,
		BandwidthPerMigration:   bandwidth(s.BandwidthPerMigration),
		CompletionTimeoutPerGiB: seconds(s.CompletionTimeoutPerGiB),
		MaxDowntime:             millis(s.MaxDowntimeMs),
		Experimental:            s.Experimental.overrides(),
	}}
	if !p.NoSelectors {
		q.Selectors = &migration.Selectors{VM: p.VMISelector, Namespace: p.NamespaceSelector}
	}
	return q
}

func (e *recordedExperimental) overrides() *migration.Experimental {
	if e == nil {
		return nil
	}
	x := &migration.Experimental{Compression: e.Compression}
	if d := e.StallDetector; d != nil {
		x.StallDetector = &migration.StallDetectorOverrides{
			StallMargin:               d.StallMargin,
			EWMAAlpha:                 factor(d.EWMAAlpha),
			StallProgressTimeout:      seconds(d.StallProgressTimeout),
			SwitchoverTimeout:         seconds(d.SwitchoverTimeout),
			PrecopyPossibleFactor:     factor(d.PrecopyPossibleFactor),
			PatienceWindowDecayFactor: factor(d.PatienceWindowDecayFactor),
			SearchLocalMinima:         d.SearchLocalMinima,
			CompletionTimeoutFactor:   factor(d.CompletionTimeoutFactor),
		}
	}
	if d := e.DowntimeTuning; d != nil {
		x.DowntimeTuning = &migration.DowntimeTuningOverrides{
			Initial:             millis(d.InitialMs),
			Steps:               d.Steps,
			StartAfterIteration: d.StartAfterIteration,
			Cooldown:            seconds(d.CooldownSeconds),
		}
	}
	return x
}

func (c recordedConfig) cluster() migration.ClusterOverrides {
	return migration.ClusterOverrides{
		ParallelMigrationsPerCluster:      c.ParallelMigrationsPerCluster,
		ParallelOutboundMigrationsPerNode: c.ParallelOutboundMigrationsPerNode,
		NodeDrainTaintKey:                 c.NodeDrainTaintKey,
		BandwidthPerMigration:             bandwidth(c.BandwidthPerMigration),
		ProgressTimeout:                   seconds(c.ProgressTimeout),
		CompletionTimeoutPerGiB:           seconds(c.CompletionTimeoutPerGiB),
		MaxDowntime:                       millis(c.MaxDowntimeMs),
		UtilityVolumesTimeout:             seconds(c.UtilityVolumesTimeout),
		UnsafeMigrationOverride:           c.UnsafeMigrationOverride,
		AllowAutoConverge:                 c.AllowAutoConverge,
		AllowPostCopy:                     c.AllowPostCopy,
		AllowWorkloadDisruption:           c.AllowWorkloadDisruption,
		DisableTLS:                        c.DisableTLS,
		Network:                           c.Network,
		MatchSELinuxLevelOnMigration:      c.MatchSELinuxLevelOnMigration,
	}
}

func value[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

func seconds(n *int64) *time.Duration { return times(n, time.Second) }
func millis(n *int64) *time.Duration  { return times(n, time.Millisecond) }

// times returns n units, or the nearest duration that there is.
func times(n *int64, unit time.Duration) *time.Duration {
	if n == nil {
		return nil
	}
	most := math.MaxInt64 / int64(unit)
	return new(time.Duration(min(max(*n, -most), most)) * unit)
}

func bandwidth(text *string) *hypervisor.Bandwidth {
	if text == nil {
		return nil
	}
	r := quantity(*text)
	up := new(big.Int).Sub(r.Denom(), big.NewInt(1)) // Kubernetes rounds up
	n := new(big.Int).Div(up.Add(up, r.Num()), r.Denom())
	return new(hypervisor.Bandwidth(n.Int64()))
}

func factor(text *string) *float64 {
	if text == nil {
		return nil
	}
	f, _ := quantity(*text).Float64()
	return &f
}

// quantity reads a Kubernetes quantity: a decimal number with an exponent or
// with one of the suffixes.
func quantity(text string) *big.Rat {
	suffixes := []struct{ name, factor string }{
		{"Ki", "0x1p10"}, {"Mi", "0x1p20"}, {"Gi", "0x1p30"}, {"Ti", "0x1p40"},
		{"Pi", "0x1p50"}, {"Ei", "0x1p60"}, {"n", "1e-9"}, {"u", "1e-6"}, {"m", "1e-3"},
		{"k", "1e3"}, {"M", "1e6"}, {"G", "1e9"}, {"T", "1e12"}, {"P", "1e15"}, {"E", "1e18"},
	}
	number, scale := text, "1"
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(text, s.name); ok {
			number, scale = rest, s.factor
			break
		}
	}
	n, ok1 := new(big.Rat).SetString(number)
	f, ok2 := new(big.Rat).SetString(scale)
	if !ok1 || !ok2 {
		panic(fmt.Sprintf("not a quantity: %q", text))
	}
	return n.Mul(n, f)
}

func TestQuantitiesAreReadAsKubernetesDoes(t *testing.T) {
	for text, want := range map[string]hypervisor.Bandwidth{
		"0": 0, "0Mi": 0, "64Mi": 64 << 20, "1Gi": 1 << 30, "1.5Ki": 1536, "1e3": 1000,
		"2M": 2e6, "1500m": 2, "-1": -1, "-1500m": -1, "1E": 1e18,
	} {
		if got := *bandwidth(&text); got != want {
			t.Errorf("%s is %d bytes per second, want %d", text, got, want)
		}
	}
}
