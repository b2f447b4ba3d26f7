package policy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration/policy"
)

// nan lets two drawn numbers that are none be equal.
var nan = cmpopts.EquateNaNs()

// same fails when got differs from want.
func same(t *rapid.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, nan); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func drawMatcher(t *rapid.T) policy.Matcher {
	return policy.Matcher{Compatible: rapid.Bool().Draw(t, "compatible")}
}

func TestCompatibleResolvesAsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		config, name := oracleResolve(w.cluster, w.policies, w.vm, w.namespace)
		m := policy.Matcher{Compatible: true}
		got, winner := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		same(t, "the winner", name, winner)
		same(t, "the options", config.options(w.cluster), got)
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
		winner := policy.Match(w.policies, w.vm, w.namespace)
		got := slices.IndexFunc(w.policies, func(p policy.Policy) bool {
			return winner != nil && winner.Name == p.Name
		})
		same(t, "the winner's place", want, got)
	})
}

func TestModesAgreeWhenNoLabelsAreNil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKnownWorld(t)
		m := policy.Matcher{Compatible: true}
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, winner := policy.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		same(t, "the winner", name, winner)
		same(t, "the options", want, got)
		same(t, "the explanation", m.Explain(w.policies, w.vm, w.namespace),
			policy.Explain(w.policies, w.vm, w.namespace))
	})
}

func TestResolvingTwiceGivesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, again := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		same(t, "the winner", name, again)
		same(t, "the options", want, got)
	})
}

func TestTheOrderOfPoliciesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		other := rapid.Permutation(w.policies).Draw(t, "another order")
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, winner := m.Resolve(w.cluster, other, w.vm, w.namespace)
		same(t, "the winner", name, winner)
		same(t, "the options", want, got)
		same(t, "the explanation", m.Explain(w.policies, w.vm, w.namespace),
			m.Explain(other, w.vm, w.namespace))
		same(t, "the overlaps", policy.Overlaps(w.policies), policy.Overlaps(other))
	})
}

func TestAPolicyThatSelectsOnEveryLabelWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKnownWorld(t)
		best := selecting("zzz", w.vm, w.namespace) // the largest name: it needs its labels
		rivals := slices.DeleteFunc(w.policies, func(p policy.Policy) bool {
			return p.Selectors != nil && len(p.Selectors.VM) >= len(w.vm) &&
				len(p.Selectors.Namespace) >= len(w.namespace)
		})
		winner := policy.Match(append(rivals, best), w.vm, w.namespace)
		same(t, "the winner", "zzz", nameOf(winner))
	})
}

func TestNoMatchingPolicyBeatsTheWinner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawKnownWorld(t)
		winner := policy.Match(w.policies, w.vm, w.namespace)
		for _, p := range w.policies {
			if nameOf(policy.Match([]policy.Policy{p}, w.vm, w.namespace)) == "" {
				continue
			}
			pair := []policy.Policy{p, *winner}
			same(t, "the winner over "+p.Name, winner.Name,
				nameOf(policy.Match(pair, w.vm, w.namespace)))
		}
	})
}

func TestALoserMayBeTakenAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		fewer := slices.DeleteFunc(slices.Clone(w.policies), func(p policy.Policy) bool {
			return p.Name != name && rapid.Bool().Draw(t, "take away "+p.Name)
		})
		got, winner := m.Resolve(w.cluster, fewer, w.vm, w.namespace)
		same(t, "the winner", name, winner)
		same(t, "the options", want, got)
	})
}

func TestExplainAgreesWithResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := drawWorld(t), drawMatcher(t)
		_, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		e := m.Explain(w.policies, w.vm, w.namespace)
		same(t, "the winner", name, e.Winner)
		same(t, "the number of verdicts", len(w.policies), len(e.Verdicts))
		for _, v := range e.Verdicts {
			i := slices.IndexFunc(w.policies, func(p policy.Policy) bool {
				return p.Name == v.Policy
			})
			alone := m.Match(w.policies[i:i+1], w.vm, w.namespace)
			same(t, v.Policy+" matches", alone != nil, v.Matched())
			same(t, v.Policy+" won", v.Policy == name && name != "", v.Outcome == policy.Won)
			same(t, v.Policy+" differs", v.Outcome == policy.LabelsDiffer, v.Differences != nil)
			same(t, v.Policy+" compares", v.Against == "", v.By == policy.Nothing)
		}
	})
}

func TestApplyingTwiceIsApplyingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, base := drawOverrides(t), drawCluster(t).Options()
		once := o.Apply(base)
		same(t, "the options", once, o.Apply(once))
	})
}

func TestWhatIsNotSetInherits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawOverrides(t).Apply(drawCluster(t).Options())
		same(t, "the options", base, policy.Overrides{}.Apply(base))
		empty := policy.Overrides{Experimental: &policy.Experimental{}}
		same(t, "the options without experiments", base, empty.Apply(base))
	})
}

func TestWhatIsSetOverridesAlsoWithZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, base := drawOverrides(t), drawCluster(t).Options()
		got := o.Apply(base)
		same(t, "auto-converge", value(o.AllowAutoConverge, base.AllowAutoConverge),
			got.AllowAutoConverge)
		same(t, "post-copy", value(o.AllowPostCopy, base.AllowPostCopy), got.AllowPostCopy)
		same(t, "disruption", value(o.AllowWorkloadDisruption,
			value(o.AllowPostCopy, base.AllowWorkloadDisruption)), got.AllowWorkloadDisruption)
		same(t, "bandwidth", value(o.BandwidthPerMigration, base.Bandwidth), got.Bandwidth)
		same(t, "completion", value(o.CompletionTimeoutPerGiB, base.CompletionTimeoutPerGiB),
			got.CompletionTimeoutPerGiB)
		same(t, "downtime", value(o.MaxDowntime, base.MaxDowntime), got.MaxDowntime)
	})
}

func TestLaterOverridesInheritFromEarlierFieldByField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, first := policy.Default().Options(), experimental(drawStall(t))
		margin, alpha := maybe(t, counts, "margin"), maybe(t, factors, "alpha")
		before := first.Apply(base)
		want := *before.StallDetector
		want.StallMargin = value(margin, want.StallMargin)
		want.EWMAAlpha = value(alpha, want.EWMAAlpha)
		second := experimental(stall{StallMargin: margin, EWMAAlpha: alpha})
		same(t, "the detector", &want, second.Apply(before).StallDetector)

		tuned := experimental(drawTuning(t)).Apply(base)
		wantTuning := *tuned.DowntimeTuning
		wantTuning.Steps = 3
		same(t, "the tuning", &wantTuning,
			experimental(tuning{Steps: new(3)}).Apply(tuned).DowntimeTuning)
	})
}

func TestArgumentsAreNeverChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := drawOverrides(t), drawOverrides(t)
		base := p.Apply(drawCluster(t).Options())
		detector, tuned := value(base.StallDetector, policy.StallDetector{}),
			value(base.DowntimeTuning, policy.DowntimeTuning{})
		got := o.Apply(base)
		same(t, "the base's detector", detector, value(base.StallDetector, policy.StallDetector{}))
		same(t, "the base's tuning", tuned, value(base.DowntimeTuning, policy.DowntimeTuning{}))
		if e := o.Experimental; e != nil && e.StallDetector != nil {
			again := o.Apply(base)
			got.StallDetector.StallMargin += 1000
			same(t, "another's margin", got.StallDetector.StallMargin-1000,
				again.StallDetector.StallMargin)
		}
	})
}

// unset takes away what a problem blames.
func unset(o *policy.Overrides, field string) {
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
		p := policy.Policy{Name: "p", Overrides: drawOverrides(t)}
		for _, q := range p.Validate() {
			if q.Need == "" || q.Have == "" {
				t.Fatalf("the problem %+v is not complete", q)
			}
			unset(&p.Overrides, q.Field)
		}
		same(t, "what is left to blame", []policy.Problem(nil), p.Validate())
		o, c := p.Apply(policy.Default().Options()), policy.Default()
		c.BandwidthPerMigration, c.MaxDowntime = o.Bandwidth, o.MaxDowntime
		c.CompletionTimeoutPerGiB = o.CompletionTimeoutPerGiB
		same(t, "what is wrong with the options", []policy.Problem(nil), c.Validate())
	})
}

func TestValidatingAClusterNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		same(t, "the problems, asked again", c.Validate(), c.Validate())
	})
}

func TestAnOverlapIsATieThatTheFirstNameWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := drawPolicies(t)
		overlapping := map[string]bool{}
		for _, q := range policy.Overlaps(policies) {
			overlapping[q.Field] = true
		}
		for _, p := range policies {
			if p.Selectors == nil {
				continue
			}
			winner := policy.Match(policies, p.Selectors.VM, p.Selectors.Namespace)
			same(t, p.Name+" overlaps", winner.Name != p.Name,
				overlapping["selectors of "+p.Name])
		}
	})
}

func TestAPreparedSetDecidesAsItsPolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		m := policy.Matcher{Compatible: rapid.Bool().Draw(t, "compatible")}
		want, name := m.Resolve(w.cluster, w.policies, w.vm, w.namespace)
		got, winner := m.Prepare(w.policies).Resolve(w.cluster, w.vm, w.namespace)
		same(t, "the winner", name, winner)
		same(t, "the options", want, got)
	})
}
