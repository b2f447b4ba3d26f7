package migration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/migration"
)

var explaining = []struct {
	name          string
	matcher       migration.PolicyMatcher
	policies      []migration.Policy
	vm, namespace labels
	want          []string
}{
	{
		name: "there is nothing to explain without policies",
		want: []string{"there are no policies"},
	},
	{
		name:     "the only policy that matches wins",
		policies: []migration.Policy{selecting("gold", labels{"a": "1"}, nil)},
		vm:       labels{"a": "1"},
		want: []string{
			"gold wins, as the only one that matches: matches 1 on the VM and 0 on the namespace",
		},
	},
	{
		name: "every label that differs is named",
		policies: []migration.Policy{
			selecting("gold", labels{"tier": "gold", "app": "web"}, labels{"env": "prod"}),
		},
		vm:        labels{"tier": "silver"},
		namespace: labels{"env": ""},
		want: []string{`gold does not match: VM label app: needs "web", has no such label; ` +
			`VM label tier: needs "gold", has "silver"; ` +
			`namespace label env: needs "prod", has ""`},
	},
	{
		name: "the order is best first, then those that do not match by name",
		policies: []migration.Policy{
			{Name: "void"},
			selecting("other", labels{"a": "2"}, nil),
			selecting("b", nil, nil),
			selecting("a", nil, nil),
			selecting("on-namespace", nil, labels{"x": "1"}),
			selecting("on-vm", labels{"a": "1"}, nil),
			selecting("both", labels{"a": "1"}, labels{"x": "1"}),
		},
		vm:        labels{"a": "1"},
		namespace: labels{"x": "1"},
		want: []string{
			"both wins over on-vm, by labels in all: matches 1 on the VM and 1 on the namespace",
			"on-vm loses to both, by labels in all: matches 1 on the VM and 0 on the namespace",
			"on-namespace loses to both, by labels in all: " +
				"matches 0 on the VM and 1 on the namespace",
			"a loses to both, by labels in all: matches 0 on the VM and 0 on the namespace",
			"b loses to both, by labels in all: matches 0 on the VM and 0 on the namespace",
			`other does not match: VM label a: needs "2", has "1"`,
			"void matches no VM: it has no selectors",
		},
	},
	{
		name: "a label on the VM decides",
		policies: []migration.Policy{
			selecting("a", nil, labels{"x": "1"}), selecting("z", labels{"a": "1"}, nil)},
		vm:        labels{"a": "1"},
		namespace: labels{"x": "1"},
		want: []string{
			"z wins over a, by labels on the VM: matches 1 on the VM and 0 on the namespace",
			"a loses to z, by labels on the VM: matches 0 on the VM and 1 on the namespace",
		},
	},
	{
		name:     "the name decides",
		policies: []migration.Policy{selecting("b", nil, nil), selecting("a", nil, nil)},
		want: []string{
			"a wins over b, by name: matches 0 on the VM and 0 on the namespace",
			"b loses to a, by name: matches 0 on the VM and 0 on the namespace",
		},
	},
	{
		name:     "the place in the list decides between equal names",
		policies: []migration.Policy{selecting("a", nil, nil), selecting("a", nil, nil)},
		want: []string{
			"a wins over a, by its place in the list: matches 0 on the VM and 0 on the namespace",
			"a loses to a, by its place in the list: matches 0 on the VM and 0 on the namespace",
		},
	},
	{
		name:     "a compatible matcher says which selectors it ignored",
		matcher:  migration.PolicyMatcher{Compatible: true},
		policies: []migration.Policy{selecting("b", nil, nil), selecting("a", labels{"a": "1"}, nil)},
		want: []string{
			"a wins over b, by name: its selectors were ignored, because the VM's labels are nil",
			"b loses to a, by name: matches 0 on the VM and 0 on the namespace",
		},
	},
}

func TestExplain(t *testing.T) {
	for _, tt := range explaining {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.matcher.Explain(tt.policies, tt.vm, tt.namespace).String()
			if diff := cmp.Diff(tt.want, strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainIsData(t *testing.T) {
	policies := []migration.Policy{
		selecting("low", nil, nil),
		selecting("high", labels{"a": "1"}, labels{"x": "1", "y": "1"}),
		selecting("not", labels{"a": "2"}, nil),
	}
	want := migration.PolicyExplanation{Winner: "high", Results: []migration.PolicyResult{
		{Policy: "high", Outcome: migration.Won, OnVM: 1, OnNamespace: 2, Against: "low",
			By: migration.ByLabels},
		{Policy: "low", Outcome: migration.Lost, Against: "high", By: migration.ByLabels},
		{Policy: "not", Outcome: migration.LabelsDiffer, Differences: []migration.PolicyProblem{
			{Field: "VM label a", Need: `"2"`, Have: `"1"`}}},
	}}
	got := migration.ExplainPolicy(policies, labels{"a": "1"}, labels{"x": "1", "y": "1"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
