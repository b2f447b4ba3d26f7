package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/migration/placement"
)

// parseTaint reads "key:effect" or "key=value:effect".
func parseTaint(text string) (placement.Taint, error) {
	t, err := parseToleration(text)
	if err != nil || t.Key == "" || t.Effect == "" {
		return placement.Taint{}, fmt.Errorf(
			"%q is no taint; write key:NoSchedule or key=value:NoExecute", text)
	}
	return placement.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}, nil
}

// parseToleration reads "key", "key:effect", "key=value:effect", "key=value" or "*".
func parseToleration(text string) (placement.Toleration, error) {
	if text == "*" {
		return placement.Toleration{Exists: true}, nil
	}
	word, effect, hasEffect := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(word, "=")
	effects := []placement.Effect{
		placement.NoSchedule, placement.PreferNoSchedule, placement.NoExecute,
	}
	e := placement.Effect(effect)
	if key == "" || hasEffect && !slices.Contains(effects, e) {
		return placement.Toleration{}, fmt.Errorf(
			"%q is no toleration; write key, key:NoSchedule or key=value:NoExecute", text)
	}
	return placement.Toleration{Key: key, Value: value, Exists: !hasValue, Effect: e}, nil
}

// checkRequirement: an operator that exists, with as many values as it takes.
func checkRequirement(r placement.Requirement) error {
	takes := "no values"
	ok := len(r.Values) == 0
	switch r.Operator {
	case placement.In, placement.NotIn:
		takes, ok = "values", len(r.Values) > 0
	case placement.Gt, placement.Lt:
		takes, ok = "one value", len(r.Values) == 1
	case placement.Exists, placement.DoesNotExist:
	default:
		return fmt.Errorf("unknown operator %q; use In, NotIn, Exists, DoesNotExist, Gt or Lt",
			r.Operator)
	}
	if r.Key == "" || !ok {
		return fmt.Errorf("a requirement has a key, and with %s it takes %s", r.Operator, takes)
	}
	return nil
}
