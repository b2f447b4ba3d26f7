package migration_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/migration"
)

var (
	benchVM = labels{"app": "db", "tier": "gold", "team": "a", "os": "linux",
		"kubevirt.io/nodeName": "n1"}
	benchNamespace = labels{"env": "prod", "kubernetes.io/metadata.name": "shop"}
)

// hundred returns a hundred policies, of which select returns the selectors.
func hundred(selectors func(i int) migration.Selectors) []migration.Policy {
	policies := make([]migration.Policy, 100)
	for i := range policies {
		s := selectors(i)
		policies[i] = migration.Policy{Name: fmt.Sprintf("policy-%02d", i), Selectors: &s,
			OptionsOverrides: migration.OptionsOverrides{AllowPostCopy: new(true)}}
	}
	return policies
}

// mixed matches in some places; most policies differ in one label of three.
func mixed(i int) migration.Selectors {
	s := migration.Selectors{VM: labels{"app": "db", "tier": fmt.Sprint("t", i%10)},
		Namespace: labels{"env": "prod"}}
	if i%7 == 0 {
		s.VM["tier"] = "gold"
	}
	return s
}

// equal matches everywhere, each as well as the other.
func equal(int) migration.Selectors {
	return migration.Selectors{VM: labels{"app": "db", "tier": "gold"},
		Namespace: labels{"env": "prod"}}
}

// missing asks for as many labels as mixed; the last of them is never there.
func missing(int) migration.Selectors {
	return migration.Selectors{VM: labels{"app": "db", "tier": "gold"},
		Namespace: labels{"env": "test"}}
}

func BenchmarkResolve(b *testing.B) {
	falling := hundred(equal) // the smallest name last: every policy beats the one before
	slices.Reverse(falling)
	for _, bb := range []struct {
		name     string
		policies []migration.Policy
	}{
		{"some of 100 match", hundred(mixed)},
		{"all 100 tie", hundred(equal)},
		{"all 100 tie, the winner is last", falling},
		{"none of 100 matches", hundred(missing)},
		{"no policies", nil},
	} {
		b.Run("prepared/"+bb.name, func(b *testing.B) {
			c, set := migration.DefaultCluster(), migration.PolicyMatcher{}.Prepare(bb.policies)
			b.ReportAllocs()
			for b.Loop() {
				set.Resolve(c, benchVM, benchNamespace)
			}
		})
		b.Run(bb.name, func(b *testing.B) {
			c := migration.DefaultCluster()
			b.ReportAllocs()
			for b.Loop() {
				migration.ResolveOptions(c, bb.policies, benchVM, benchNamespace)
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	policies := hundred(mixed)
	b.ReportAllocs()
	for b.Loop() {
		migration.ExplainPolicy(policies, benchVM, benchNamespace)
	}
}

func TestResolveDoesNotAllocateWithoutExperiments(t *testing.T) {
	policies, c := hundred(mixed), migration.DefaultCluster()
	got := testing.AllocsPerRun(100, func() {
		migration.ResolveOptions(c, policies, benchVM, benchNamespace)
	})
	if got != 0 {
		t.Errorf("Resolve allocates %.0f times, want none", got)
	}
}
