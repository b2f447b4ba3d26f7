package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
)

// Together returns the questions that NodeEvacuations ask which are active at once, and share KubeVirt's limits. Each
// is about the nodes of those with the same terms, while all nodes are emptied, on these terms too. Of the
// NodeEvacuations of one node the oldest counts.
func Together(all []v1alpha1.NodeEvacuation) (questions []Question) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b v1alpha1.NodeEvacuation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	first := map[string]bool{}
	all = slices.DeleteFunc(all, func(e v1alpha1.NodeEvacuation) bool {
		later := first[e.Spec.NodeName]
		first[e.Spec.NodeName] = true
		return later
	})
	slices.SortFunc(all, func(a, b v1alpha1.NodeEvacuation) int {
		return cmp.Or(deadline(&a).Compare(deadline(&b)), cmp.Compare(a.Spec.NodeName, b.Spec.NodeName))
	})
	var active []Active
	byTerms := map[string]int{}
	for i := range all {
		q := Of(&all[i])
		active = append(active, Active{all[i].Spec.NodeName, q.Targets})
		terms := fmt.Sprint(q.Unmovable, q.Grace, q.Outbound, q.Order)
		at, known := byTerms[terms]
		if !known {
			byTerms[terms] = len(questions)
			questions = append(questions, q)
			continue
		}
		questions[at].Nodes = append(questions[at].Nodes, q.Nodes...)
	}
	for i := range questions {
		questions[i].Targets, questions[i].Active = nil, active
	}
	return questions
}

// deadline returns that of a NodeEvacuation; without one it is after all others.
func deadline(e *v1alpha1.NodeEvacuation) time.Time {
	if e.Spec.Deadline == nil {
		return time.Unix(1<<40, 0)
	}
	return e.Spec.Deadline.Time
}
