package placement

import (
	"slices"
	"strconv"
)

// Repels reports whether one of the taints keeps a VM with these tolerations from being started
// on the host that carries them.
func Repels(taints []Taint, tolerations []Toleration) (*Taint, bool) {
	for i := range taints {
		if repels(&taints[i], tolerations) {
			return &taints[i], true
		}
	}
	return nil, false
}

// repels reports whether a taint keeps away a VM with these tolerations.
// PreferNoSchedule keeps no VM away.
// Source: Kubernetes v1.34.1 plugins/helper/taint.go:23 (DoNotScheduleTaintsFilterFunc).
func repels(t *Taint, tolerations []Toleration) bool {
	if t.Effect != NoSchedule && t.Effect != NoExecute {
		return false
	}
	for i := range tolerations {
		if tolerations[i].Tolerates(t) {
			return false
		}
	}
	return true
}

// Tolerates reports whether a VM with this toleration may be on a host with
// this taint.
// Source: Kubernetes v1.34.1 api/core/v1/toleration.go:38 (ToleratesTaint).
func (l *Toleration) Tolerates(t *Taint) bool {
	switch {
	case l.Effect != "" && l.Effect != t.Effect:
		return false
	case l.Key != "" && l.Key != t.Key:
		return false
	}
	return l.Exists || l.Value == t.Value
}

// holdAll reports whether every requirement of a list holds. An empty list
// holds for no host.
// Source: Kubernetes v1.34.1 nodeaffinity.go:62 (isEmptyNodeSelectorTerm).
func holdAll(all []Requirement, labels Labels) bool {
	for i := range all {
		if !all[i].Holds(labels) {
			return false
		}
	}
	return len(all) > 0
}

// Holds reports whether labels satisfy r. A requirement with the wrong number
// of values, or an unknown operator, never holds.
// Source: Kubernetes v1.34.1 apimachinery/pkg/labels/selector.go:246 (Matches)
// and :184 (NewRequirement, which refuses the wrong number of values).
func (r *Requirement) Holds(labels Labels) bool {
	have, ok := labels[r.Key]
	switch n := len(r.Values); r.Operator {
	case In:
		return ok && slices.Contains(r.Values, have)
	case NotIn:
		return n > 0 && !(ok && slices.Contains(r.Values, have))
	case Exists:
		return n == 0 && ok
	case DoesNotExist:
		return n == 0 && !ok
	case Gt:
		return n == 1 && ok && lessNumber(r.Values[0], have)
	case Lt:
		return n == 1 && ok && lessNumber(have, r.Values[0])
	}
	return false
}

// lessNumber reports whether both texts are whole numbers and a is the smaller.
func lessNumber(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x < y
}
