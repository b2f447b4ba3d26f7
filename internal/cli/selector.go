package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// rack is the label of hosts that share a rack, as inventories write it.
const rack = "rack"

// operators are how a selector writes conditions, the longer ones first.
var operators = []struct {
	text string
	is   placement.Operator
}{{"!=", placement.NotIn}, {"=", placement.In}, {">", placement.Gt}, {"<", placement.Lt}}

// selector reads conditions on labels, such as app=db,tier!=test,priority>5,gold,!test: all
// of them hold.
func selector(text string) ([]placement.Requirement, error) {
	if text == "" {
		return nil, nil
	}
	var all []placement.Requirement
	for part := range strings.SplitSeq(text, ",") {
		r, err := requirement(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func requirement(text string) (placement.Requirement, error) {
	r := placement.Requirement{Key: text, Operator: placement.Exists}
	if key, not := strings.CutPrefix(text, "!"); not {
		r.Key, r.Operator = key, placement.DoesNotExist
	}
	for _, o := range operators {
		if key, value, found := strings.Cut(text, o.text); found {
			r = placement.Requirement{Key: key, Operator: o.is, Values: []string{value}}
			break
		}
	}
	number := r.Operator == placement.Gt || r.Operator == placement.Lt
	if r.Key == "" || strings.ContainsAny(r.Key, "!=<> ") || number && !isNumber(r.Values[0]) {
		return r, fmt.Errorf("%q is not a condition on labels; write app=db,tier!=test,priority>5,"+
			"gold,!test", text)
	}
	return r, nil
}

func isNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// holds reports whether labels satisfy all conditions.
func holds(all []placement.Requirement, labels placement.Labels) bool {
	return !slices.ContainsFunc(all, func(r placement.Requirement) bool { return !r.Holds(labels) })
}

// labelled refuses a label that no host has: all hosts would fail alone, and a label that is
// misspelt would be answered as if there were no domains.
func labelled(f *plan.Fleet, label string) error {
	has := func(h placement.Host) bool { _, has := h.Labels[label]; return has }
	if label == "" || slices.ContainsFunc(f.Hosts, has) {
		return nil
	}
	return fmt.Errorf("no host has the label %q: name a label whose hosts fail together",
		label)
}
