package migration_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration"
)

// nan lets two drawn numbers that are none be equal.
var nan = cmpopts.EquateNaNs()

// policySame fails when got differs from want.
func policySame(t *rapid.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, nan); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func drawMatcher(t *rapid.T) migration.PolicyMatcher {
	return migration.PolicyMatcher{Compatible: rapid.Bool().Draw(t, "compatible")}
}

func TestCompatibleResolvesAsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		config, name := oracleResolve(w.cluster, w.policies, w.vm, w.namespace)
		m := migration.PolicyMatcher{Compatible: true}
		got, winner := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		policySame(t, "the winner", name, winner)
		policySame(t, "the options", config.options(w.cluster), got)
	})
}

func TestOurOwnMatcherIsTheOracleWithEmptyMapsForNil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		known := maps.Clone(w.vm)
		if known == nil {
			known = labels{}
		}
		want := oracleMatch(w.policies, known, w.namespace)
		winner := migration.PolicyMatcher{}.Match(w.policies, w.vm, w.namespace)
		got := slices.IndexFunc(w.policies, func(p migration.Policy) bool {
			return winner != nil && winner.Name == p.Name
		})
		policySame(t, "the winner's place", want, got)
	})
}

func TestModesAgreeWhenNoLabelsAreNil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKnownWorld(t)
		m := migration.PolicyMatcher{Compatible: true}
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, winner := migration.ResolveOptions(w.cluster, w.policies, w.vm, w.namespace)
		policySame(t, "the winner", name, winner)
		policySame(t, "the options", want, got)
		policySame(t, "the explanation", m.Explain(w.policies, w.vm, w.namespace),
			migration.ExplainPolicy(w.policies, w.vm, w.namespace))
	})
}

func TestResolvingTwiceGivesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, again := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		policySame(t, "the winner", name, again)
		policySame(t, "the options", want, got)
	})
}

func TestTheOrderOfPoliciesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		other := rapid.Permutation(w.policies).Draw(t, "another order")
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, winner := m.Resolve(w.cluster, other, w.vm, w.namespace)
		policySame(t, "the winner", name, winner)
		policySame(t, "the options", want, got)
		policySame(t, "the explanation", m.Explain(w.policies, w.vm, w.namespace),
			m.Explain(other, w.vm, w.namespace))
		policySame(t, "the overlaps", migration.OverlappingPolicies(w.policies), migration.OverlappingPolicies(other))
	})
}

func TestAPolicyThatSelectsOnEveryLabelWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKnownWorld(t)
		best := selecting("zzz", w.vm, w.namespace) // the largest name: it needs its labels
		rivals := slices.DeleteFunc(w.policies, func(p migration.Policy) bool {
			return p.Selectors != nil && len(p.Selectors.VM) >= len(w.vm) &&
				len(p.Selectors.Namespace) >= len(w.namespace)
		})
		winner := migration.PolicyMatcher{}.Match(append(rivals, best), w.vm, w.namespace)
		policySame(t, "the winner", "zzz", nameOf(winner))
	})
}

func TestNoMatchingPolicyBeatsTheWinner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKnownWorld(t)
		winner := migration.PolicyMatcher{}.Match(w.policies, w.vm, w.namespace)
		for _, p := range w.policies {
			if nameOf(migration.PolicyMatcher{}.Match([]migration.Policy{p}, w.vm, w.namespace)) == "" {
				continue
			}
			pair := []migration.Policy{p, *winner}
			policySame(t, "the winner over "+p.Name, winner.Name,
				nameOf(migration.PolicyMatcher{}.Match(pair, w.vm, w.namespace)))
		}
	})
}

func TestALoserMayBeTakenAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		fewer := slices.DeleteFunc(slices.Clone(w.policies), func(p migration.Policy) bool {
			return p.Name != name && rapid.Bool().Draw(t, "take away "+p.Name)
		})
		got, winner := m.Resolve(w.cluster, fewer, w.vm, w.namespace)
		policySame(t, "the winner", name, winner)
		policySame(t, "the options", want, got)
	})
}

func TestExplainAgreesWithResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		_, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		e := m.Explain(w.policies, w.vm, w.namespace)
		policySame(t, "the winner", name, e.Winner)
		policySame(t, "the number of verdicts", len(w.policies), len(e.Results))
		for _, v := range e.Results {
			i := slices.IndexFunc(w.policies, func(p migration.Policy) bool {
				return p.Name == v.Policy
			})
			alone := m.Match(w.policies[i:i+1], w.vm, w.namespace)
			policySame(t, v.Policy+" matches", alone != nil, v.Outcome == migration.Won || v.Outcome == migration.Lost)
			policySame(t, v.Policy+" won", v.Policy == name && name != "", v.Outcome == migration.Won)
			policySame(t, v.Policy+" differs", v.Outcome == migration.LabelsDiffer, v.Differences != nil)
			policySame(t, v.Policy+" compares", v.Against == "", v.By == migration.Nothing)
		}
	})
}

func TestApplyingTwiceIsApplyingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, base := drawOverrides(t), drawCluster(t).Options()
		once := o.Apply(base)
		policySame(t, "the options", once, o.Apply(once))
	})
}

func TestWhatIsNotSetInherits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawOverrides(t).Apply(drawCluster(t).Options())
		policySame(t, "the options", base, migration.OptionsOverrides{}.Apply(base))
		empty := migration.OptionsOverrides{Experimental: &migration.Experimental{}}
		policySame(t, "the options without experiments", base, empty.Apply(base))
	})
}

func TestWhatIsSetOverridesAlsoWithZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, base := drawOverrides(t), drawCluster(t).Options()
		got := o.Apply(base)
		policySame(t, "auto-converge", value(o.AllowAutoConverge, base.AllowAutoConverge),
			got.AllowAutoConverge)
		policySame(t, "post-copy", value(o.AllowPostCopy, base.AllowPostCopy), got.AllowPostCopy)
		policySame(t, "disruption", value(o.AllowWorkloadDisruption,
			value(o.AllowPostCopy, base.AllowWorkloadDisruption)), got.AllowWorkloadDisruption)
		policySame(t, "bandwidth", value(o.BandwidthPerMigration, base.Bandwidth), got.Bandwidth)
		policySame(t, "completion", value(o.CompletionTimeoutPerGiB, base.CompletionTimeoutPerGiB),
			got.CompletionTimeoutPerGiB)
		policySame(t, "downtime", value(o.MaxDowntime, base.MaxDowntime), got.MaxDowntime)
	})
}

func TestLaterOverridesInheritFromEarlierFieldByField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, first := migration.DefaultCluster().Options(), experimental(drawStall(t))
		margin, alpha := maybe(t, counts, "margin"), maybe(t, factors, "alpha")
		before := first.Apply(base)
		want := *before.StallDetector
		want.StallMargin = value(margin, want.StallMargin)
		want.EWMAAlpha = value(alpha, want.EWMAAlpha)
		second := experimental(stall{StallMargin: margin, EWMAAlpha: alpha})
		policySame(t, "the detector", &want, second.Apply(before).StallDetector)

		tuned := experimental(drawTuning(t)).Apply(base)
		wantTuning := *tuned.DowntimeTuning
		wantTuning.Steps = 3
		policySame(t, "the tuning", &wantTuning,
			experimental(tuning{Steps: new(3)}).Apply(tuned).DowntimeTuning)
	})
}

func TestArgumentsAreNeverChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := drawOverrides(t), drawOverrides(t)
		base := p.Apply(drawCluster(t).Options())
		detector, tuned := value(base.StallDetector, migration.StallDetector{}),
			value(base.DowntimeTuning, migration.DowntimeTuning{})
		got := o.Apply(base)
		policySame(t, "the base's detector", detector, value(base.StallDetector, migration.StallDetector{}))
		policySame(t, "the base's tuning", tuned, value(base.DowntimeTuning, migration.DowntimeTuning{}))
		if e := o.Experimental; e != nil && e.StallDetector != nil {
			again := o.Apply(base)
			got.StallDetector.StallMargin += 1000
			policySame(t, "another's margin", got.StallDetector.StallMargin-1000,
				again.StallDetector.StallMargin)
		}
	})
}

// unset takes away what a problem blames.
func unset(o *migration.OptionsOverrides, field string) {
	switch {
	case field == "bandwidthPerMigration":
		o.BandwidthPerMigration = nil
	case field == "completionTimeoutPerGiB":
		o.CompletionTimeoutPerGiB = nil
	case field == "maxDowntimeMs":
		o.MaxDowntime = nil
	case strings.HasPrefix(field, "experimental."):
		o.Experimental = nil
	}
}

func TestWithoutWhatIsBlamedAPolicyIsValidAndItsOptionsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := migration.Policy{Name: "p", OptionsOverrides: drawOverrides(t)}
		for _, q := range p.Validate() {
			if q.Need == "" || q.Have == "" {
				t.Fatalf("the problem %+v is not complete", q)
			}
			unset(&p.OptionsOverrides, q.Field)
		}
		policySame(t, "what is left to blame", []migration.PolicyProblem(nil), p.Validate())
		o, c := p.Apply(migration.DefaultCluster().Options()), migration.DefaultCluster()
		c.BandwidthPerMigration, c.MaxDowntime = o.Bandwidth, o.MaxDowntime
		c.CompletionTimeoutPerGiB = o.CompletionTimeoutPerGiB
		policySame(t, "what is wrong with the options", []migration.PolicyProblem(nil), c.Validate())
	})
}

func TestValidatingAClusterNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		policySame(t, "the problems, asked again", c.Validate(), c.Validate())
	})
}

func TestAnOverlapIsATieThatTheFirstNameWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := drawPolicies(t)
		overlapping := map[string]bool{}
		for _, q := range migration.OverlappingPolicies(policies) {
			overlapping[q.Field] = true
		}
		for _, p := range policies {
			if p.Selectors == nil {
				continue
			}
			winner := migration.PolicyMatcher{}.Match(policies, p.Selectors.VM, p.Selectors.Namespace)
			policySame(t, p.Name+" overlaps", winner.Name != p.Name,
				overlapping["selectors of "+p.Name])
		}
	})
}

func TestAPreparedSetDecidesAsItsPolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		m := migration.PolicyMatcher{Compatible: rapid.Bool().Draw(t, "compatible")}
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, winner := m.Prepare(w.policies).Resolve(w.cluster, w.vm, w.namespace)
		policySame(t, "the winner", name, winner)
		policySame(t, "the options", want, got)
	})
}
