package migration

import "slices"

// Act is the acting half of Step alone.
func (c *Config) Act(m *Spec, s *State, o *Observation) Decision {
	d := Decision{State: *s}
	c.act(m, s, o, &d)
	return d
}

// Judge is the deciding half of Step alone.
func (c *Config) Judge(m *Spec, s *State, o *Observation) Decision {
	d := Decision{State: *s}
	c.judge(m, s, o, &d)
	return d
}

// Undisturbed reports whether none of godwit's rules holds.
func Undisturbed(s *State, o *Observation) bool { return undisturbed(s, o) }

// RuleHolds is the table's own answer to Undisturbed, the other way round.
func RuleHolds(s *State, o *Observation) bool {
	return slices.ContainsFunc(rules[:], func(r rule) bool { return r.holds(s, o) })
}

// OnVM reports whether KubeVirt records the note on the VM, not on the migration.
func (n Note) OnVM() bool { return n == noteMarkedFailed || n == noteBackoff }

// AllConditions lists the conditions in a fixed order.
func AllConditions() []Condition {
	all := make([]Condition, len(conditionNames))
	for i := range all {
		all[i] = 1 << i
	}
	return all
}

// The capacities of a decision. What exceeds them is lost.
const (
	MaxNotes = len(Decision{}.notes)
	MaxWakes = len(Decision{}.requeues)
)

// RuleRow is a rule as people see it.
type RuleRow struct{ Name, Verdict, Note string }

// RuleTable lists the rules of a mode in their order.
func RuleTable(compatible bool) []RuleRow {
	table := rules[:]
	if compatible {
		table = kubevirtRules[:]
	}
	verdicts := [...]string{release: "release", fail: "fail", abort: "give up",
		markAborting: "mark aborting", markUnknown: "mark unknown", skip: "go on"}
	var rows []RuleRow
	for _, r := range table {
		rows = append(rows, RuleRow{r.name, verdicts[r.verdict], string(r.note)})
	}
	return rows
}
