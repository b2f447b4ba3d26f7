package migration

import "cmp"

// A PolicyMatcher finds the policy for a VM. The zero value is godwit's own way, which
// [ResolveOptions] and [ExplainPolicy] use.
type PolicyMatcher struct {
	// Compatible decides as KubeVirt does, bugs included: with VM labels that
	// are nil, every policy that has selectors matches, with no labels. The
	// package's documentation lists the differences. Default false.
	Compatible bool
}

// ResolveOptions returns the options of a migration and the name of the policy that
// shaped them, "" when none matched. It allocates only for what is experimental.
func ResolveOptions(c Cluster, policies []Policy, vm, namespace Labels) (Options, string) {
	return PolicyMatcher{}.Resolve(c, policies, vm, namespace)
}

// Match returns the policy for a VM with these labels in a namespace with those,
// or nil when none matches. The result points into policies. Their order does
// not matter as long as their names differ.
// Source: KubeVirt v1.9.0 migrationpolicy.go:44 (matchPolicy).
func (m PolicyMatcher) Match(policies []Policy, vm, namespace Labels) *Policy {
	var best match
	for i := range policies {
		c, ok := m.candidate(&policies[i], vm)
		if !ok || best.policy != nil && bySpecificity(c, best) >= 0 {
			continue // it loses even if it matches, so its labels need no look
		}
		if m.selects(c.policy.Selectors, vm, namespace) {
			best = c
		}
	}
	return best.policy
}

// Resolve is [ResolveOptions] in the way that m says.
func (m PolicyMatcher) Resolve(c Cluster, policies []Policy, vm, namespace Labels) (Options, string) {
	winner := m.Match(policies, vm, namespace)
	if winner == nil {
		return c.Options(), ""
	}
	return winner.Apply(c.Options()), winner.Name
}

// A match is a policy with the labels that it selects on.
type match struct {
	policy      *Policy
	onVM        int
	onNamespace int
}

// candidate returns the match that p is if its labels fit. Since all of them
// must fit, the score is known before any of them is compared.
func (m PolicyMatcher) candidate(p *Policy, vm Labels) (match, bool) {
	switch {
	case p.Selectors == nil:
		return match{}, false
	case m.ignores(vm):
		return match{policy: p}, true
	}
	return match{p, len(p.Selectors.VM), len(p.Selectors.Namespace)}, true
}

// selects reports whether all labels that s asks for are there.
func (m PolicyMatcher) selects(s *Selectors, vm, namespace Labels) bool {
	return m.ignores(vm) || contains(vm, s.VM) && contains(namespace, s.Namespace)
}

// ignores reports whether no label is looked at. KubeVirt tests the VM's labels
// for nil where it means the namespace's, so that both selectors depend on them.
// Source: KubeVirt v1.9.0 migrationpolicy.go:113 (countMatchingLabels).
func (m PolicyMatcher) ignores(vm Labels) bool { return m.Compatible && vm == nil }

// bySpecificity orders the policies that match a VM, best first.
// Source: KubeVirt v1.9.0 migrationpolicy.go:20 (greaterThan), :69 (names).
func bySpecificity(a, b match) int {
	return cmp.Or(
		cmp.Compare(b.onVM+b.onNamespace, a.onVM+a.onNamespace), // more labels in all
		cmp.Compare(b.onVM, a.onVM),                             // then more on the VM
		cmp.Compare(a.policy.Name, b.policy.Name),               // then the smaller name
	)
}

// contains reports whether labels has every label of selector. A label with an
// empty value is not the same as no label.
func contains(labels, selector Labels) bool {
	if len(selector) > len(labels) {
		return false
	}
	for name, need := range selector {
		if have, ok := labels[name]; !ok || have != need {
			return false
		}
	}
	return true
}
