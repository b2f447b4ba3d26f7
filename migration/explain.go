package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// An Explanation says why a VM gets the policy that it gets: every policy, best
// first, then those that do not match, by name.
type PolicyExplanation struct {
	Winner  string // "" when no policy matches
	Results []PolicyResult
}

// A PolicyResult is what became of one policy.
type PolicyResult struct {
	Policy  string
	Outcome PolicyOutcome
	// OnVM and OnNamespace are how many labels the policy matched with. They
	// are 0 when it did not match.
	OnVM, OnNamespace int
	// Against is the policy that a loser lost to and that the winner was
	// nearest to losing to; "" when there is none.
	Against string
	// By is the comparison that decided between this policy and Against.
	By PolicyRule
	// Ignored says that labels were not looked at: only a compatible [PolicyMatcher]
	// does that, when the VM's labels are nil.
	Ignored bool
	// Differences are all labels that do not fit, those of the VM first, by
	// name; none when the policy matches.
	Differences []PolicyProblem
}

// A PolicyOutcome is what a result comes to.
type PolicyOutcome uint8

// The outcomes. Won and Lost are those of policies that match.
const (
	Won          PolicyOutcome = iota // matches, and no other matches better
	Lost                              // matches, and another matches better
	LabelsDiffer                      // a label that it asks for is missing or another
	NoSelectors                       // has no selectors, and so matches no VM
)

var outcomes = [...]string{"won", "lost", "labels-differ", "no-selectors"}

// String returns the outcome's word.
func (o PolicyOutcome) String() string { return humanize.String(o, outcomes[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (o PolicyOutcome) MarshalText() ([]byte, error) { return humanize.Text(o, outcomes[:], "outcome") }

// UnmarshalText reads a word that MarshalText wrote.
func (o *PolicyOutcome) UnmarshalText(text []byte) error {
	return humanize.Parse(o, outcomes[:], "outcome", text)
}

// A Rule is one of the comparisons that decide between policies that match.
type PolicyRule uint8

// The rules, in the order in which they are asked.
const (
	Nothing    PolicyRule = iota // there was nothing to compare with
	ByLabels                     // more labels in all
	ByVMLabels                   // as many in all, more of them on the VM
	ByName                       // the same counts, the smaller name
	ByPosition                   // even the same name: the first in the list
)

var ruleNames = [...]string{"nothing", "labels", "vm-labels", "name", "position"}

// String returns the rule's word.
func (r PolicyRule) String() string { return humanize.String(r, ruleNames[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (r PolicyRule) MarshalText() ([]byte, error) { return humanize.Text(r, ruleNames[:], "rule") }

// UnmarshalText reads a word that MarshalText wrote.
func (r *PolicyRule) UnmarshalText(text []byte) error {
	return humanize.Parse(r, ruleNames[:], "rule", text)
}

// ExplainPolicy says for every policy whether it matches, and why it won or lost. It
// agrees with [ResolveOptions].
func ExplainPolicy(policies []Policy, vm, namespace Labels) PolicyExplanation {
	return PolicyMatcher{}.Explain(policies, vm, namespace)
}

// Explain is [ExplainPolicy] in the way that m says.
func (m PolicyMatcher) Explain(policies []Policy, vm, namespace Labels) PolicyExplanation {
	var matches []match
	var others []PolicyResult
	for i := range policies {
		p := &policies[i]
		if c, ok := m.candidate(p, vm); ok && m.selects(p.Selectors, vm, namespace) {
			matches = append(matches, c)
		} else {
			others = append(others, refusal(p, vm, namespace))
		}
	}
	slices.SortStableFunc(matches, bySpecificity)
	slices.SortStableFunc(others, func(a, b PolicyResult) int { return cmp.Compare(a.Policy, b.Policy) })
	var e PolicyExplanation
	for i, c := range matches {
		v := placed(matches, i)
		v.Ignored = m.ignores(vm) && !c.policy.Selectors.empty()
		e.Results = append(e.Results, v)
		e.Winner = e.Results[0].Policy
	}
	e.Results = append(e.Results, others...)
	return e
}

// placed returns the verdict on the policy at place i of those that match.
func placed(matches []match, i int) PolicyResult {
	c := matches[i]
	v := PolicyResult{Policy: c.policy.Name, OnVM: c.onVM, OnNamespace: c.onNamespace}
	switch {
	case i > 0:
		v.Outcome, v.Against = Lost, matches[0].policy.Name
		v.By = deciding(matches[0], c)
	case len(matches) > 1:
		v.Against = matches[1].policy.Name
		v.By = deciding(c, matches[1])
	}
	return v
}

// deciding returns the first comparison in which a and b differ. It repeats the
// order of bySpecificity, in words.
func deciding(a, b match) PolicyRule {
	switch {
	case a.onVM+a.onNamespace != b.onVM+b.onNamespace:
		return ByLabels
	case a.onVM != b.onVM:
		return ByVMLabels
	case a.policy.Name != b.policy.Name:
		return ByName
	}
	return ByPosition
}

// refusal returns the verdict on a policy that does not match.
func refusal(p *Policy, vm, namespace Labels) PolicyResult {
	if p.Selectors == nil {
		return PolicyResult{Policy: p.Name, Outcome: NoSelectors}
	}
	return PolicyResult{
		Policy:  p.Name,
		Outcome: LabelsDiffer,
		Differences: append(differences("VM label ", p.Selectors.VM, vm),
			differences("namespace label ", p.Selectors.Namespace, namespace)...),
	}
}

// differences returns the labels of selector that labels does not have.
func differences(whose string, selector, labels Labels) []PolicyProblem {
	var all []PolicyProblem
	for _, name := range slices.Sorted(maps.Keys(selector)) {
		need := selector[name]
		switch have, ok := labels[name]; {
		case !ok:
			all = append(all, PolicyProblem{whose + name, strconv.Quote(need), "no such label"})
		case have != need:
			all = append(all, PolicyProblem{whose + name, strconv.Quote(need), strconv.Quote(have)})
		}
	}
	return all
}

// String explains to people, one line for each policy.
func (e PolicyExplanation) String() string {
	if len(e.Results) == 0 {
		return "there are no policies"
	}
	lines := make([]string, len(e.Results))
	for i, v := range e.Results {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}

// String says in one line what became of the policy, and why.
func (v PolicyResult) String() string {
	switch v.Outcome {
	case NoSelectors:
		return v.Policy + " matches no VM: it has no selectors"
	case LabelsDiffer:
		return v.Policy + " does not match: " + list(v.Differences)
	case Lost:
		return fmt.Sprintf("%s loses to %s, %s: %s", v.Policy, v.Against, v.By.asked(), v.labels())
	}
	if v.Against == "" {
		return fmt.Sprintf("%s wins, as the only one that matches: %s", v.Policy, v.labels())
	}
	return fmt.Sprintf("%s wins over %s, %s: %s", v.Policy, v.Against, v.By.asked(), v.labels())
}

func (v PolicyResult) labels() string {
	if v.Ignored {
		return "its selectors were ignored, because the VM's labels are nil"
	}
	return fmt.Sprintf("matches %d on the VM and %d on the namespace", v.OnVM, v.OnNamespace)
}

// asked returns what decided, as a person says it.
func (r PolicyRule) asked() string {
	switch r {
	case ByLabels:
		return "by labels in all"
	case ByVMLabels:
		return "by labels on the VM"
	case ByName:
		return "by name"
	case ByPosition:
		return "by its place in the list"
	}
	return "by nothing"
}

// empty reports whether s asks for no label.
func (s *Selectors) empty() bool { return len(s.VM)+len(s.Namespace) == 0 }

func list(problems []PolicyProblem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}
