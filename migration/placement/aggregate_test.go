package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration/placement"
)

// TestMatch has the rows of Nova's tests/unit/scheduler/filters/
// test_extra_specs_ops.py, and what Nova answers with an exception.
func TestMatch(t *testing.T) {
	for _, row := range []struct {
		name, value, want string
		matches           bool
	}{
		{"equal texts match without an operator", "1", "1", true},
		{"an empty text matches itself", "", "", true},
		{"other texts do not", "3", "1", false},
		{"a text that begins like another does not", "2", "222", false},
		{"= means at least: equal", "123", "= 123", true},
		{"= means at least: more", "124", "= 123", true},
		{"= means at least: less", "34", "= 234", false},
		{"= compares numbers, not texts", "9", "= 10", false},
		{"= without a number asks for nothing that is there", "34", "=", false},
		{"== is equality of numbers", "123.0", "== 123", true},
		{"== of other numbers", "1234", "== 123", false},
		{"!= holds for another number", "123", "!= 124", true},
		{"!= fails for the same number", "123", "!= 123", false},
		{">= holds for the same number", "123", ">= 123", true},
		{">= fails for a smaller one", "122", ">= 123", false},
		{"<= holds for a smaller number", "99", "<= 100", true},
		{"<= fails for a larger one", "101", "<= 100", false},
		{"s== compares texts", "123", "s== 123", true},
		{"s== tells 123 from 123.0", "123.0", "s== 123", false},
		{"s== looks at the first word", "2", "s== 2 3", true},
		{"s!= holds for another text", "1", "s!= 2", true},
		{"s!= fails for the same text", "2", "s!= 2", false},
		{"s< orders texts", "1000", "s< 2", true},
		{"s< is strict", "2", "s< 2", false},
		{"s<= includes the same text", "2", "s<= 2", true},
		{"s<= fails for a later text", "3", "s<= 2", false},
		{"s> orders texts", "2", "s> 1000", true},
		{"s> is strict", "2", "s> 2", false},
		{"s>= includes the same text", "2", "s>= 2", true},
		{"s>= fails for an earlier text", "1", "s>= 2", false},
		{"<in> holds for a part of the text", "12311321", "<in> 11", true},
		{"<in> holds for the whole text", "12311321", "<in> 12311321", true},
		{"<in> looks at the first word only", "12311321", "<in> 12311321 <in> 9", true},
		{"<in> fails without the part", "12310321", "<in> 11", false},
		{"<all-in> wants every word", "aes mmx aux", "<all-in> aes mmx", true},
		{"<all-in> fails for one missing word", "aes mmx aux", "<all-in> aes txt", false},
		{"<all-in> of nothing fails", "aes", "<all-in>", false},
		{"<or> holds for the first", "12", "<or> 11 <or> 12", true},
		{"<or> holds for the last", "12", "<or> 12 <or>", true},
		{"<or> fails for another", "13", "<or> 11 <or> 12", false},
		{"<or> skips every second word", "12", "<or> 11 12", false},
		{"<or> of nothing fails", "12", "<or>", false},
		{"an unknown operator is a text", "~= 1", "~= 1", true},
		{"an unknown operator compares nothing", "1", "~= 1", false},
		{"a number that is none does not match", "many", ">= 1", false},
		{"a want that is no number does not match", "1", ">= few", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := placement.MatchAggregate(row.value, row.want); got != row.matches {
				t.Errorf("Match(%q, %q) = %v", row.value, row.want, got)
			}
		})
	}
}

func TestSpecsSpeakOfAggregates(t *testing.T) {
	slow := placement.NewAggregate("slow", map[string]string{"ssd": "false", "gen": "1, 4"})
	fast := placement.NewAggregate("fast", map[string]string{"ssd": "true"})
	for _, row := range []struct {
		name  string
		specs map[string]string
		want  bool
	}{
		{"a key without a scope", map[string]string{"ssd": "true"}, true},
		{"some value of some aggregate is enough", map[string]string{"gen": "= 3"}, true},
		{"no value is enough", map[string]string{"gen": "= 5"}, false},
		{"a missing key fails", map[string]string{"gpu": "true"}, false},
		{"a missing key fails whatever is asked", map[string]string{"gpu": "!= 1"}, false},
		{"a key with the scope", map[string]string{
			"aggregate_instance_extra_specs:ssd": "<or> no <or> true"}, true},
		{"another scope is not looked at", map[string]string{"hw:cpu_policy": "dedicated"}, true},
		{"every key counts", map[string]string{"ssd": "true", "gen": "= 5"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := true
			for _, w := range placement.ParseWant(row.specs) {
				got = got && w.Satisfied([]*placement.Aggregate{slow, fast})
			}
			if got != row.want {
				t.Errorf("satisfied: %v, want %v", got, row.want)
			}
		})
	}
}

func TestTenantsHaveHostsForThemselves(t *testing.T) {
	open := placement.NewAggregate("open", map[string]string{"ssd": "true"})
	shop := placement.NewAggregate("shop", map[string]string{"filter_tenant_id": "shop, bank"})
	more := placement.NewAggregate("more", map[string]string{"filter_tenant_id2": "mill"})
	if diff := cmp.Diff([]string{"shop", "bank"}, shop.Tenants); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
	for _, row := range []struct {
		name   string
		all    []*placement.Aggregate
		tenant string
		want   bool
	}{
		{"no aggregates admit every tenant", nil, "mill", true},
		{"an aggregate without tenants admits every tenant", []*placement.Aggregate{open}, "", true},
		{"its tenants are admitted", []*placement.Aggregate{open, shop}, "bank", true},
		{"others are not", []*placement.Aggregate{shop, open}, "mill", false},
		{"a VM without a tenant is not", []*placement.Aggregate{shop}, "", false},
		{"any key with the prefix names tenants", []*placement.Aggregate{shop, more}, "mill", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := placement.Admits(row.all, row.tenant); got != row.want {
				t.Errorf("Admits = %v, want %v", got, row.want)
			}
		})
	}
}

// TestAggregateOppositeOperators: of two numbers, == and != are opposites, and = is >=.
func TestAggregateOppositeOperators(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "1", "2", "10", "x", "<or>", "=", "1 2", "1e400"})
	rapid.Check(t, func(t *rapid.T) {
		value, want := words.Draw(t, "value"), words.Draw(t, "want")
		if placement.MatchAggregate(value, "= "+want) != placement.MatchAggregate(value, ">= "+want) {
			t.Fatal("= is not >=")
		}
		if placement.MatchAggregate(value, "== "+want) && placement.MatchAggregate(value, "!= "+want) {
			t.Fatal("both equal and different")
		}
		if placement.MatchAggregate(value, "s== "+want) && placement.MatchAggregate(value, "s!= "+want) {
			t.Fatal("both the same text and another")
		}
	})
}
