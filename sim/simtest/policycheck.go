package simtest

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// A Kind is a way in which a decision is none.
type Kind string

// The kinds.
const (
	Panics    Kind = "panics"
	Nonsense  Kind = "answers nonsense"
	Fickle    Kind = "answers differently when asked the same again"
	Forbidden Kind = "asks for what is not allowed"
	Meddles   Kind = "writes what it was only shown"
	Hangs     Kind = "does not return"
	Quits     Kind = "ends the goroutine that asked it"
)

// A Finding is a decision that was none.
type Finding struct {
	Policy string // its name, and what was asked of it
	Kind   Kind
	Call   string // the question, with its arguments
	Detail string
}

// Name is what the same fault has in common wherever it is found.
func (f *Finding) Name() string { return f.Policy + " " + string(f.Kind) }

// Why says what was wrong, and what was asked; not by which participant.
func (f *Finding) Why() string {
	if f.Detail == "" {
		return "asked: " + f.Call
	}
	return f.Detail + "\nasked: " + f.Call
}

// String says all of it.
func (f *Finding) String() string { return f.Name() + ": " + f.Why() }

// A question is a call of a policy: its arguments, to be written when something is wrong.
type question interface{ String() string }

// A PolicyCheck keeps what the guards find in one world after the other. Its zero value is ready.
// [PolicyCheck.Pulse] and [PolicyCheck.Abandon] may be called from another goroutine, all else not.
type PolicyCheck struct {
	found  *Finding
	policy string
	asked  question
	// pulse is odd while a policy is being asked, and goes up with every question and
	// answer; abandoned is for ever.
	pulse atomic.Int64
}

const abandoned = -1

// Finding returns the first thing that was wrong; nil is nothing.
func (b *PolicyCheck) Finding() *Finding { return b.found }

// Reset forgets what was found.
func (b *PolicyCheck) Reset() { b.found = nil }

// Pulse returns a number that changes with every question and every answer, and whether a
// policy is being asked now.
func (b *PolicyCheck) Pulse() (count int64, asking bool) {
	n := b.pulse.Load()
	return n, n%2 == 1
}

// Abandon gives up the call that Pulse counted, and says which it is; nil when it has
// returned meanwhile. Should it ever return, its goroutine ends.
func (b *PolicyCheck) Abandon(count int64) *Finding {
	if count%2 != 1 || !b.pulse.CompareAndSwap(count, abandoned) {
		return nil
	}
	return &Finding{Policy: b.policy, Kind: Hangs, Call: b.asked.String()}
}

// Interrupted returns the question whose answer never came because the goroutine ended; nil
// when there is none. The goroutine must have ended.
func (b *PolicyCheck) Interrupted() *Finding {
	if b.pulse.Load()%2 != 1 {
		return nil
	}
	return &Finding{Policy: b.policy, Kind: Quits, Call: b.asked.String(),
		Detail: "did it call FailNow of a test?"}
}

// ask lets a policy answer. It reports false when there was no answer.
func (b *PolicyCheck) ask(policy string, q question, answer func()) (answered bool) {
	b.policy, b.asked = policy, q
	n := b.pulse.Add(1)
	defer func() {
		if answered {
			b.done(n)
		} else if r := recover(); r != nil {
			b.done(n)
			b.note(policy, Panics, q, "%v", r)
		}
	}()
	answer()
	return true
}

// done counts an answer. One that comes after the call was abandoned is dropped.
func (b *PolicyCheck) done(n int64) {
	if !b.pulse.CompareAndSwap(n, n+1) {
		runtime.Goexit()
	}
}

// note keeps the first finding.
func (b *PolicyCheck) note(policy string, k Kind, q question, format string, args ...any) {
	if b.found == nil {
		b.found = &Finding{Policy: policy, Kind: k, Call: q.String(),
			Detail: fmt.Sprintf(format, args...)}
	}
}

// sampled reports whether the n-th question in a world is one at which what is costly is
// looked at.
func sampled(n int) bool { return n <= 3 || n%64 == 0 }
