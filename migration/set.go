package migration

import (
	"maps"
	"slices"
)

// A Set is a list of policies that was prepared once to be asked often. The first
// that fits, in order of precedence, is the winner: how specific a policy is
// does not depend on the VM.
type PolicySet struct {
	matcher  PolicyMatcher
	policies []Policy
	sorted   []prepared
}

// prepared is a policy with its selectors as lists: ranging over a list costs a
// tenth of ranging over a map.
type prepared struct {
	match
	vm, namespace []label
}

type label struct{ name, value string }

// Prepare returns the policies as a Set, which keeps and does not change them. It
// decides as m does.
func (m PolicyMatcher) Prepare(policies []Policy) *PolicySet {
	s := &PolicySet{matcher: m, policies: policies}
	for i := range policies {
		p := &policies[i]
		if p.Selectors == nil {
			continue
		}
		s.sorted = append(s.sorted, prepared{
			match: match{p, len(p.Selectors.VM), len(p.Selectors.Namespace)},
			vm:    asList(p.Selectors.VM), namespace: asList(p.Selectors.Namespace)})
	}
	slices.SortStableFunc(s.sorted, func(a, b prepared) int {
		return bySpecificity(a.match, b.match)
	})
	return s
}

// asList returns labels in order of their names.
func asList(labels Labels) []label {
	sorted := make([]label, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		sorted = append(sorted, label{name, labels[name]})
	}
	return sorted
}

// match returns the policy for a VM, as [PolicyMatcher.Match] does.
func (s *PolicySet) match(vm, namespace Labels) *Policy {
	if s.matcher.ignores(vm) {
		return s.matcher.Match(s.policies, vm, namespace)
	}
	for i := range s.sorted {
		p := &s.sorted[i]
		if hasAll(namespace, p.namespace) && hasAll(vm, p.vm) {
			return p.policy
		}
	}
	return nil
}

// Resolve returns the options and the policy's name, as [PolicyMatcher.Resolve] does.
func (s *PolicySet) Resolve(c Cluster, vm, namespace Labels) (Options, string) {
	winner := s.match(vm, namespace)
	if winner == nil {
		return c.Options(), ""
	}
	return winner.Apply(c.Options()), winner.Name
}

// hasAll reports whether labels has every label of a selector.
func hasAll(labels Labels, selector []label) bool {
	for i := range selector {
		if have, ok := labels[selector[i].name]; !ok || have != selector[i].value {
			return false
		}
	}
	return true
}
