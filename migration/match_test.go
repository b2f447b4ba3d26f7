package migration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/migration"
)

type labels = migration.Labels

// selecting returns a policy that overrides nothing.
func selecting(name string, vm, namespace labels) migration.Policy {
	return migration.Policy{Name: name, Selectors: &migration.Selectors{VM: vm, Namespace: namespace}}
}

// nameOf returns the name of p, or "" when there is none.
func nameOf(p *migration.Policy) string {
	if p == nil {
		return ""
	}
	return p.Name
}

var matching = []struct {
	name          string
	policies      []migration.Policy
	vm, namespace labels
	want          string
	compatible    string // what KubeVirt decides
}{
	{
		name: "without policies nothing matches",
		vm:   labels{"a": "1"},
	},
	{
		name:     "a policy without selectors matches no VM",
		policies: []migration.Policy{{Name: "p"}},
		vm:       labels{"a": "1"},
	},
	{
		name:       "selectors without labels match every VM",
		policies:   []migration.Policy{selecting("p", nil, labels{})},
		vm:         labels{},
		want:       "p",
		compatible: "p",
	},
	{
		name:     "one label that differs is enough not to match",
		policies: []migration.Policy{selecting("p", labels{"a": "1", "b": "1"}, nil)},
		vm:       labels{"a": "1", "b": "2"},
	},
	{
		name:     "an empty value is not a missing label",
		policies: []migration.Policy{selecting("p", labels{"a": ""}, nil)},
		vm:       labels{"b": ""},
	},
	{
		name:       "an empty value matches an empty value",
		policies:   []migration.Policy{selecting("p", labels{"a": ""}, nil)},
		vm:         labels{"a": ""},
		want:       "p",
		compatible: "p",
	},
	{
		name:      "both selectors must match",
		policies:  []migration.Policy{selecting("p", labels{"a": "1"}, labels{"x": "1"})},
		vm:        labels{"a": "1"},
		namespace: labels{"x": "2"},
	},
	{
		name: "more labels in all win over more on the VM",
		policies: []migration.Policy{
			selecting("a", labels{"a": "1", "b": "1"}, nil),
			selecting("z", nil, labels{"x": "1", "y": "1", "z": "1"}),
		},
		vm:         labels{"a": "1", "b": "1"},
		namespace:  labels{"x": "1", "y": "1", "z": "1"},
		want:       "z",
		compatible: "z",
	},
	{
		name: "among as many labels those on the VM win",
		policies: []migration.Policy{
			selecting("a", nil, labels{"x": "1"}),
			selecting("z", labels{"a": "1"}, nil),
		},
		vm:         labels{"a": "1"},
		namespace:  labels{"x": "1"},
		want:       "z",
		compatible: "z",
	},
	{
		name: "among equals the name wins that is smaller byte by byte",
		policies: []migration.Policy{
			selecting("p-2", nil, nil), selecting("p-10", nil, nil), selecting("q", nil, nil),
		},
		vm:         labels{},
		want:       "p-10",
		compatible: "p-10",
	},
	{
		name: "a policy that matches all loses to any label",
		policies: []migration.Policy{
			selecting("a", nil, nil), selecting("z", labels{"a": "1"}, nil)},
		vm:         labels{"a": "1"},
		want:       "z",
		compatible: "z",
	},
	{
		name:       "only a compatible matcher ignores selectors when the VM's labels are nil",
		policies:   []migration.Policy{selecting("p", labels{"a": "1"}, labels{"x": "1"})},
		compatible: "p",
	},
	{
		name: "only a compatible matcher forgets the labels that a namespace matched with",
		policies: []migration.Policy{
			selecting("a", nil, nil), selecting("z", nil, labels{"x": "1"}),
		},
		namespace:  labels{"x": "1"},
		want:       "z",
		compatible: "a",
	},
	{
		name:     "namespace labels that are nil match no label",
		policies: []migration.Policy{selecting("p", nil, labels{"x": "1"})},
		vm:       labels{},
	},
	{
		name:       "namespace labels that are nil match a selector without labels",
		policies:   []migration.Policy{selecting("p", nil, labels{})},
		vm:         labels{},
		want:       "p",
		compatible: "p",
	},
}

func TestMatch(t *testing.T) {
	for _, tt := range matching {
		t.Run(tt.name, func(t *testing.T) {
			got := nameOf(migration.PolicyMatcher{}.Match(tt.policies, tt.vm, tt.namespace))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("our own matcher (-want +got):\n%s", diff)
			}
			m := migration.PolicyMatcher{Compatible: true}
			got = nameOf(m.Match(tt.policies, tt.vm, tt.namespace))
			if diff := cmp.Diff(tt.compatible, got); diff != "" {
				t.Errorf("the compatible matcher (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchPointsIntoTheList(t *testing.T) {
	policies := []migration.Policy{selecting("a", labels{"a": "1"}, nil), selecting("b", nil, nil)}
	if got := (migration.PolicyMatcher{}).Match(policies, nil, nil); got != &policies[1] {
		t.Errorf("Match returned %p, want the second of the list, %p", got, &policies[1])
	}
}

func TestOfTwoPoliciesWithOneNameTheFirstInTheListWins(t *testing.T) {
	policies := []migration.Policy{selecting("p", nil, nil), selecting("p", nil, nil)}
	if got := (migration.PolicyMatcher{}).Match(policies, nil, nil); got != &policies[0] {
		t.Errorf("Match returned %p, want the first of the list, %p", got, &policies[0])
	}
}
