package simtest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
)

// CheckEvacuation guards an order and limit policy: its order must be one, whatever it is asked
// about.
func CheckEvacuation(b *PolicyCheck, name string, p evacuation.Policy) evacuation.Policy {
	e := &evacuationGuard{policyCheck: b, policy: p}
	e.order.name, e.open.name = name+".Compare", name+".Admit"
	return e
}

type evacuationGuard struct {
	policyCheck *PolicyCheck
	policy      evacuation.Policy
	order       comparison
	open        opening
	seen        evacuation.EvacuatingVM // the first of the last comparison
	asked       int
}

// comparison and opening are the two questions.
type comparison struct {
	name string
	link hypervisor.Bandwidth
	a, b evacuation.EvacuatingVM
	says int
}

func (c *comparison) String() string {
	return fmt.Sprintf("%s(%v, %s, %s)", c.name, c.link, words(c.a), words(c.b))
}

type opening struct {
	name   string
	link   hypervisor.Bandwidth
	next   evacuation.EvacuatingVM
	others []evacuation.EvacuatingVM
	says   bool
}

func (o *opening) String() string {
	return fmt.Sprintf("%s(%v, %s, %s)", o.name, o.link, words(o.next), words(o.others))
}

// Compare implements [evacuation.Policy].
func (e *evacuationGuard) Compare(link hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	if e.policyCheck.found != nil {
		return 0
	}
	forth, ok := e.compare(link, a, b)
	again, same := e.compare(link, a, b)
	switch {
	case !ok || !same:
		return 0
	case forth != again:
		e.policyCheck.note(e.order.name, Fickle, &e.order, "first %d, then %d", forth, again)
		return 0
	}
	back, ok := e.compare(link, b, a)
	if ok && back != -forth {
		e.policyCheck.note(e.order.name, Nonsense, &e.order, "no order: it is %d, and %d the other way "+
			"round", back, forth)
		return 0
	}
	if e.asked++; sampled(e.asked) && e.seen.VM != "" {
		e.cycle(link, [3]evacuation.EvacuatingVM{a, b, e.seen})
	}
	e.seen = a
	return forth
}

// compare asks once. Only the sign of the answer counts.
func (e *evacuationGuard) compare(link hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) (int, bool) {
	e.order.link, e.order.a, e.order.b = link, a, b
	ok := e.policyCheck.ask(e.order.name, &e.order, func() { e.order.says = e.policy.Compare(link, a, b) })
	return cmp.Compare(e.order.says, 0), ok
}

// cycle looks for three that have no order: x before y, y before z, and z before x.
func (e *evacuationGuard) cycle(link hypervisor.Bandwidth, all [3]evacuation.EvacuatingVM) {
	var sign [3][3]int
	for i := range all {
		for k := range all {
			var ok bool
			if sign[i][k], ok = e.compare(link, all[i], all[k]); !ok {
				return
			}
		}
	}
	for _, p := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		x, y, z := p[0], p[1], p[2]
		if sign[x][y] <= 0 && sign[y][z] <= 0 && sign[x][z] > 0 {
			e.policyCheck.note(e.order.name, Nonsense, &e.order, "no order: %s is not after %s, %s not "+
				"after %s, and yet %s after %s", all[x].VM, all[y].VM, all[y].VM, all[z].VM,
				all[x].VM, all[z].VM)
			return
		}
	}
}

// Admit implements [evacuation.Policy].
func (e *evacuationGuard) Admit(link hypervisor.Bandwidth, next evacuation.EvacuatingVM,
	others []evacuation.EvacuatingVM) bool {
	if e.policyCheck.found != nil {
		return true
	}
	before := slices.Clone(others)
	e.open.link, e.open.next, e.open.others = link, next, before
	ask := func() { e.open.says = e.policy.Admit(link, next, others) }
	if !e.policyCheck.ask(e.open.name, &e.open, ask) {
		return true
	}
	first := e.open.says
	if !e.policyCheck.ask(e.open.name, &e.open, ask) {
		return true
	}
	switch {
	case !slices.Equal(before, others):
		e.policyCheck.note(e.open.name, Meddles, &e.open, "the others are now %s", words(others))
	case first != e.open.says:
		e.policyCheck.note(e.open.name, Fickle, &e.open, "first %v, then %v", first, e.open.says)
	}
	return first
}
