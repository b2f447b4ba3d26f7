package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/migration/policy"
)

var (
	benchVM = labels{"app": "db", "tier": "gold", "team": "a", "os": "linux",
		"kubevirt.io/nodeName": "n1"}
	benchNamespace = labels{"env": "prod", "kubernetes.io/metadata.name": "shop"}
)

// hundred returns a hundred policies, of which select returns the selectors.
func hundred(selectors func(i int) policy.Selectors) []policy.Policy {
	policies := make([]policy.Policy, 100)
	for i := range policies {
		s := selectors(i)
		policies[i] = policy.Policy{Name: fmt.Sprintf("policy-%02d", i), Selectors: &s,
			Overrides: policy.Overrides{AllowPostCopy: new(true)}}
	}
	return policies
}

// mixed matches in some places; most policies differ in one label of three.
func mixed(i int) policy.Selectors {
	s := policy.Selectors{VM: labels{"app": "db", "tier": fmt.Sprint("t", i%10)},
		Namespace: labels{"env": "prod"}}
	if i%7 == 0 {
		s.VM["tier"] = "gold"
	}
	return s
}

// equal matches everywhere, each as well as the other.
func equal(int) policy.Selectors {
	return policy.Selectors{VM: labels{"app": "db", "tier": "gold"},
		Namespace: labels{"env": "prod"}}
}

// missing asks for as many labels as mixed; the last of them is never there.
func missing(int) policy.Selectors {
	return policy.Selectors{VM: labels{"app": "db", "tier": "gold"},
		Namespace: labels{"env": "test"}}
}

func BenchmarkResolve(b *testing.B) {
	falling := hundred(equal) // the smallest name last: every policy beats the one before
	slices.Reverse(falling)
	for _, bb := range []struct {
		name     string
		policies []policy.Policy
	}{
		{"some of 100 match", hundred(mixed)},
		{"all 100 tie", hundred(equal)},
		{"all 100 tie, the winner is last", falling},
		{"none of 100 matches", hundred(missing)},
		{"no policies", nil},
	} {
		b.Run("prepared/"+bb.name, func(b *testing.B) {
			c, set := policy.Default(), policy.Matcher{}.Prepare(bb.policies)
			b.ReportAllocs()
			for b.Loop() {
				set.Resolve(c, benchVM, benchNamespace)
			}
		})
		b.Run(bb.name, func(b *testing.B) {
			c := policy.Default()
			b.ReportAllocs()
			for b.Loop() {
				policy.Resolve(c, bb.policies, benchVM, benchNamespace)
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	policies := hundred(mixed)
	b.ReportAllocs()
	for b.Loop() {
		policy.Explain(policies, benchVM, benchNamespace)
	}
}

func TestResolveDoesNotAllocateWithoutExperiments(t *testing.T) {
	policies, c := hundred(mixed), policy.Default()
	got := testing.AllocsPerRun(100, func() {
		policy.Resolve(c, policies, benchVM, benchNamespace)
	})
	if got != 0 {
		t.Errorf("Resolve allocates %.0f times, want none", got)
	}
}
