package convergence

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Decision is what is to be done about a transfer. The zero value is to carry
// on. Verdicts are comparable.
type Decision struct {
	Action Action
	// Limit is the downtime that SetDowntime allows, in whole milliseconds; zero
	// for every other action.
	Limit time.Duration
	// Why says which rule spoke; NoReason for Continue.
	Why Reason
}

// Adjustment returns v as a command to the hypervisor that runs the source; it
// reports false when there is nothing to do.
func (v Decision) Adjustment() (hypervisor.Adjustment, bool) {
	switch v.Action {
	case SetDowntime:
		return hypervisor.SetDowntime{Limit: v.Limit}, true
	case StartPostCopy:
		return hypervisor.StartPostCopy{}, true
	case Pause:
		return hypervisor.PauseGuest{}, true
	case Abort:
		return hypervisor.Cancel{}, true
	}
	return nil, false
}

// String says what is to be done and why: "SetDowntime 450ms (tuning)".
func (v Decision) String() string {
	switch v.Action {
	case Continue:
		return v.Action.String()
	case SetDowntime:
		return v.Action.String() + " " + v.Limit.String() + " (" + v.Why.String() + ")"
	}
	return v.Action.String() + " (" + v.Why.String() + ")"
}

// An Action is what a verdict asks for. The set is closed.
type Action uint8

// The actions.
const (
	// Continue: leave the transfer alone.
	Continue Action = iota
	// SetDowntime: change the downtime allowed.
	SetDowntime
	// StartPostCopy: let the target run and fetch the rest. There is no way back.
	StartPostCopy
	// Pause: stop the guest at the source so that the transfer ends.
	Pause
	// Abort: cancel the transfer; the source keeps the VM.
	Abort
)

var actions = [...]string{"Continue", "SetDowntime", "StartPostCopy", "Pause", "Abort"}

// String returns the action's word.
func (a Action) String() string {
	return word(actions[:], int(a))
}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (a Action) MarshalText() ([]byte, error) {
	return store("action", actions[:], int(a))
}

// UnmarshalText reads a word that MarshalText wrote.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := load("action", actions[:], text)
	*a = Action(i)
	return err
}

// A Reason says which rule gave a verdict.
type Reason uint8

// The reasons.
const (
	// NoReason: there is nothing to do.
	NoReason Reason = iota
	// Tuning: the downtime allowed is set or raised within MaxDowntime.
	Tuning
	// Stuck: no data has moved for longer than ProgressTimeout.
	Stuck
	// Stalled: data moves, but the backlog no longer reaches a new low.
	Stalled
	// LastMoment: what is left still fits into the budget, but not for long.
	LastMoment
	// OverBudget: the completion budget is used up.
	OverBudget
	// Downtime: the transfer has stalled, and to stop the guest would take
	// longer than is allowed.
	Downtime
	// NoBandwidth: the budget is used up and no speed was ever measured.
	NoBandwidth
)

var reasons = [...]string{"", "tuning", "stuck", "stalled", "last-moment", "over-budget",
	"downtime", "no-bandwidth"}

// String returns the reason's word; NoReason is the empty word.
func (r Reason) String() string {
	return word(reasons[:], int(r))
}

// storedDowntime is the word that stores have for Downtime: agents and controllers of the first
// release read no other.
const storedDowntime = "blackout"

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (r Reason) MarshalText() ([]byte, error) {
	if r == Downtime {
		return []byte(storedDowntime), nil
	}
	return store("reason", reasons[:], int(r))
}

// UnmarshalText reads a word that MarshalText or String wrote.
func (r *Reason) UnmarshalText(text []byte) error {
	if string(text) == storedDowntime {
		*r = Downtime
		return nil
	}
	i, err := load("reason", reasons[:], text)
	*r = Reason(i)
	return err
}

// word returns words[i], and says so when i is out of range.
func word(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return "invalid"
	}
	return words[i]
}

// store returns words[i] as stored text.
func store(what string, words []string, i int) ([]byte, error) {
	if i < 0 || i >= len(words) {
		return nil, fmt.Errorf("convergence: no %s has the number %d", what, i)
	}
	return []byte(words[i]), nil
}

// load finds stored text among words.
func load(what string, words []string, text []byte) (int, error) {
	for i, w := range words {
		if w == string(text) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("convergence: unknown %s %q", what, text)
}
