package simtest

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// several is how many questions are looked at closely at first: several transfers may begin
// before one is looked at again.
const several = 8

// CheckConvergence guards a convergence policy: what it asks for must be allowed.
func CheckConvergence(b *PolicyCheck, name string, p convergence.Policy) convergence.Policy {
	q, asked := &look{name: name}, 0
	return func(c convergence.Config, s convergence.State, o hypervisor.Progress, now time.Time,
	) (convergence.State, convergence.Decision) {
		if b.found != nil {
			return s, convergence.Decision{}
		}
		q.config, q.state, q.progress, q.now, q.closely = c, s, o, now, false
		if asked++; asked <= several || sampled(asked) {
			q.config, q.state, q.closely = copied(c), copied(s), true
		}
		next, says := q.ask(b, p, c, s)
		if b.found != nil {
			return s, convergence.Decision{}
		}
		return next, says
	}
}

// ask asks twice, and judges the answer. c and s are what the policy is shown, the question
// has copies of them.
func (l *look) ask(b *PolicyCheck, p convergence.Policy, c convergence.Config, s convergence.State,
) (convergence.State, convergence.Decision) {
	var next, again convergence.State
	var says, saysAgain convergence.Decision
	if !b.ask(l.name, l, func() { next, says = p(c, s, l.progress, l.now) }) ||
		!b.ask(l.name, l, func() { again, saysAgain = p(c, s, l.progress, l.now) }) {
		return s, convergence.Decision{}
	}
	if l.closely && !(reflect.DeepEqual(l.config, c) && reflect.DeepEqual(l.state, s)) {
		b.note(l.name, Meddles, l, "the state and the configuration are replaced, never written")
	}
	if wrong := nonsense(next, says); wrong != "" {
		b.note(l.name, Nonsense, l, "%s", wrong)
	}
	if wrong := forbidden(l.config, says); wrong != "" {
		b.note(l.name, Forbidden, l, "%v: %s", says, wrong)
	}
	if says != saysAgain || l.closely && !reflect.DeepEqual(next, again) {
		b.note(l.name, Fickle, l, "first %v and %s, then %v and %s", says, words(next), saysAgain,
			words(again))
	}
	return next, says
}

// look is the question: one look at a transfer.
type look struct {
	name     string
	config   convergence.Config
	state    convergence.State
	progress hypervisor.Progress
	now      time.Time
	closely  bool // config and state are copies, to be compared
}

func (l *look) String() string {
	return fmt.Sprintf("%s(%s, %s, %s, %v)", l.name, words(l.config), words(l.state),
		words(l.progress), l.now)
}

// nonsense says why an answer is none.
func nonsense(s convergence.State, v convergence.Decision) string {
	switch {
	case v.Action > convergence.Abort:
		return fmt.Sprintf("there is no action %d", v.Action)
	case v.Action == convergence.SetDowntime && v.Limit < time.Millisecond:
		return fmt.Sprintf("a downtime of %v is none: one millisecond at least", v.Limit)
	case v.Action != convergence.SetDowntime && v.Limit != 0:
		return fmt.Sprintf("%v has a limit, %v, that only SetDowntime has", v.Action, v.Limit)
	case math.IsNaN(s.Bandwidth) || math.IsInf(s.Bandwidth, 0) || s.Bandwidth < 0:
		return fmt.Sprintf("the state has a bandwidth of %v", s.Bandwidth)
	}
	return ""
}

// maxDowntime is what a configuration that says nothing allows.
const maxDowntime = 900 * time.Millisecond

// forbidden says why a configuration does not allow what is asked for.
func forbidden(c convergence.Config, v convergence.Decision) string {
	most := c.MaxDowntime
	if most <= 0 {
		most = maxDowntime
	}
	switch {
	case v.Action == convergence.StartPostCopy && c.VFIO:
		return "a VM with passed-through devices has no post-copy"
	case v.Action == convergence.StartPostCopy && !c.AllowPostCopy:
		return "AllowPostCopy is not set"
	case c.AllowWorkloadDisruption:
		return ""
	case v.Action == convergence.Pause:
		return "AllowWorkloadDisruption is not set"
	case v.Action == convergence.SetDowntime && v.Limit > most:
		return fmt.Sprintf("MaxDowntime is %v, and AllowWorkloadDisruption is not set", most)
	}
	return ""
}
