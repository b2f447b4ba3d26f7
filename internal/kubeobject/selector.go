package kubeobject

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A LabelSelector chooses objects by their labels, as it is written.
type LabelSelector struct {
	MatchLabels      map[string]string          `json:"matchLabels"`
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions"`
}

// LabelSelectorRequirement is one condition of a LabelSelector.
type LabelSelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// A Selector is a LabelSelector that has been checked. A nil one matches nothing.
type Selector struct {
	conditions []condition // all of which hold; by key
}

// condition is one condition of a Selector. In with one value from matchLabels is Equals.
type condition struct {
	LabelSelectorRequirement
	equals bool
}

// Compile checks a selector. A nil one gives a nil Selector, which matches nothing, an empty one
// matches everything.
// Source: Kubernetes v1.34 apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).
func (l *LabelSelector) Compile() (*Selector, error) {
	if l == nil {
		return nil, nil
	}
	s := &Selector{}
	for _, key := range slices.Sorted(maps.Keys(l.MatchLabels)) {
		s.conditions = append(s.conditions, condition{LabelSelectorRequirement{
			Key: key, Operator: "In", Values: []string{l.MatchLabels[key]}}, true})
	}
	for _, e := range l.MatchExpressions {
		s.conditions = append(s.conditions, condition{e, false})
	}
	for _, c := range s.conditions {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.conditions, func(a, b condition) int { return cmp.Compare(a.Key, b.Key) })
	return s, nil
}

func (c *condition) check() error {
	switch c.Operator {
	case "In", "NotIn":
		if len(c.Values) == 0 {
			return fmt.Errorf("values: Invalid value: []: for 'in', 'notin' operators, values set " +
				"can't be empty")
		}
	case "Exists", "DoesNotExist":
		if len(c.Values) > 0 {
			return fmt.Errorf("values: Invalid value: %q: values set must be empty for exists and "+
				"does not exist", c.Values)
		}
	default:
		return fmt.Errorf("%q is not a valid label selector operator", c.Operator)
	}
	if !isLabelKey(c.Key) {
		return fmt.Errorf("key: Invalid value: %q: it is no name of a label", c.Key)
	}
	for i, v := range c.Values {
		if len(v) > maxLabel || v != "" && !labelText.MatchString(v) {
			return fmt.Errorf("values[%d][%s]: Invalid value: %q: it is no value of a label", i, c.Key, v)
		}
	}
	return nil
}

// What labels are called, and what their values may be.
// Source: Kubernetes v1.34 apimachinery/pkg/util/validation/validation.go (IsQualifiedName).
const (
	maxLabel     = 63
	maxSubdomain = 253
)

var (
	labelText = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

func isLabelKey(key string) bool {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		name = prefix
	} else if len(prefix) > maxSubdomain || !subdomain.MatchString(prefix) {
		return false
	}
	return len(name) <= maxLabel && labelText.MatchString(name)
}

// Matches reports whether labels are chosen.
func (s *Selector) Matches(labels map[string]string) bool {
	return s != nil && !slices.ContainsFunc(s.conditions, func(c condition) bool {
		return !c.holds(labels)
	})
}

func (c *condition) holds(labels map[string]string) bool {
	value, found := labels[c.Key]
	switch c.Operator {
	case "In":
		return found && slices.Contains(c.Values, value)
	case "NotIn":
		return !found || !slices.Contains(c.Values, value)
	case "Exists":
		return found
	}
	return !found
}

// Label returns a label that all objects have which are chosen, or two empty strings.
func (s *Selector) Label() (key, value string) {
	if s == nil {
		return "", ""
	}
	for _, c := range s.conditions {
		if c.Operator == "In" && len(c.Values) == 1 {
			return c.Key, c.Values[0]
		}
	}
	return "", ""
}

// String returns the selector as kubectl writes it: "app=db,tier in (a,b),!old".
func (s *Selector) String() string {
	if s == nil {
		return ""
	}
	var all []string
	for _, c := range s.conditions {
		values := strings.Join(slices.Sorted(slices.Values(c.Values)), ",")
		switch {
		case c.equals:
			all = append(all, c.Key+"="+values)
		case c.Operator == "In":
			all = append(all, c.Key+" in ("+values+")")
		case c.Operator == "NotIn":
			all = append(all, c.Key+" notin ("+values+")")
		case c.Operator == "Exists":
			all = append(all, c.Key)
		default:
			all = append(all, "!"+c.Key)
		}
	}
	return strings.Join(all, ",")
}
