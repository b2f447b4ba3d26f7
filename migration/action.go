package migration

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// An Action is something the world is asked to do. Its parameters are in the [State] that was
// stored before it. The set is closed; every action follows from what the observation lacks and
// may be repeated.
type Action uint8

// The actions.
const (
	CreateTarget     Action = iota // choose a host and let it make room
	CreateAttachment               // attach hot-plugged volumes to the target
	DeleteTarget                   // give the target up
	HandOff                        // let the VM's state name this migration
	RequestAbort                   // ask the source to abandon the transfer
	ReportFailed                   // let the VM's state say that this migration failed
	TellTarget                     // let the target know that the VM has arrived
	AbortBackup                    // ask the VM's backup to end
	numActions
)

var actionNames = [numActions]string{"createTarget", "createAttachment", "deleteTarget",
	"handOff", "requestAbort", "reportFailed", "tellTarget", "abortBackup"}

// String returns the action's name.
func (a Action) String() string { return word(actionNames[:], int(a)) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (a Action) MarshalText() ([]byte, error) { return humanize.Text(a, actionNames[:], "action") }

// UnmarshalText reads a word that MarshalText wrote.
func (a *Action) UnmarshalText(text []byte) error {
	return humanize.Parse(a, actionNames[:], "action", text)
}

// Actions is a set of actions.
type Actions uint16

// With returns the set with a.
func (as Actions) With(a Action) Actions { return as | 1<<a }

// Has reports whether a is in the set.
func (as Actions) Has(a Action) bool { return as&(1<<a) != 0 }

// String lists the actions, in the order in which they are to be performed: "handOff, tellTarget",
// or "none".
func (as Actions) String() string {
	if names := as.names(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "none"
}

func (as Actions) names() []string {
	names := []string{}
	for a := range as.All() {
		names = append(names, a.String())
	}
	return names
}

// MarshalJSON writes the names of the actions, in order.
func (as Actions) MarshalJSON() ([]byte, error) { return json.Marshal(as.names()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (as *Actions) UnmarshalJSON(text []byte) error {
	var all []Action
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("migration: actions: %w", err)
	}
	*as = 0
	for _, a := range all {
		*as = as.With(a)
	}
	return nil
}

// All yields the actions in the order in which they are to be performed.
func (as Actions) All() iter.Seq[Action] {
	return func(yield func(Action) bool) {
		for a := range numActions {
			if as.Has(a) && !yield(a) {
				return
			}
		}
	}
}

// A RequeueAfter asks for another look.
type RequeueAfter struct {
	After    time.Duration
	Priority Priority
}

// Decision is what one look came to.
type Decision struct {
	State   State
	Actions Actions
	Rule    string // the rule that decided; "" is normal progress
	Refused bool   // another migration of the VM is under way; nothing was done
	// Stuck says that an action cannot succeed: KubeVirt retries it for ever, and neither
	// collects nor requeues anything meanwhile. Only in compatible mode.
	Stuck bool

	notes             [6]Note
	requeues          [4]RequeueAfter
	nNotes, nRequeues uint8
}

// Notes lists what people are to be told, in order.
func (d *Decision) Notes() []Note { return d.notes[:d.nNotes] }

// Requeues lists when to look again, besides when something changes.
func (d *Decision) Requeues() []RequeueAfter { return d.requeues[:d.nRequeues] }

// decision is a Decision as JSON.
type decision struct {
	State   State
	Actions Actions
	Rule    string         `json:",omitempty"`
	Refused bool           `json:",omitempty"`
	Stuck   bool           `json:",omitempty"`
	Notes   []Note         `json:",omitempty"`
	Wakes   []RequeueAfter `json:",omitempty"`
}

// MarshalJSON writes all of the decision.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(decision{State: d.State, Actions: d.Actions, Rule: d.Rule,
		Refused: d.Refused, Stuck: d.Stuck, Notes: d.Notes(), Wakes: d.Requeues()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Decision) UnmarshalJSON(text []byte) error {
	var all decision
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("migration: a decision: %w", err)
	}
	*d = Decision{State: all.State, Actions: all.Actions, Rule: all.Rule, Refused: all.Refused,
		Stuck: all.Stuck}
	if len(all.Notes) > len(d.notes) || len(all.Wakes) > len(d.requeues) {
		return fmt.Errorf("migration: a decision has %d notes and %d wakes at most, not %d and %d",
			len(d.notes), len(d.requeues), len(all.Notes), len(all.Wakes))
	}
	d.nNotes, d.nRequeues = uint8(copy(d.notes[:], all.Notes)), uint8(copy(d.requeues[:], all.Wakes))
	return nil
}

// String says what was decided, in a line.
func (d Decision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "phase %q", d.State.Phase)
	for _, part := range [...]struct {
		said bool
		text string
	}{
		{d.Rule != "", "by rule " + d.Rule}, {d.Refused, "refused"}, {d.Stuck, "stuck"},
		{d.Actions != 0, "do " + d.Actions.String()},
		{d.nNotes > 0, fmt.Sprint("tell ", d.Notes())},
	} {
		if part.said {
			b.WriteString("; " + part.text)
		}
	}
	for _, w := range d.Requeues() {
		fmt.Fprintf(&b, "; look again in %v", w.After)
	}
	return b.String()
}

func (d *Decision) note(n Note) {
	if int(d.nNotes) < len(d.notes) {
		d.notes[d.nNotes] = n
		d.nNotes++
	}
}

func (d *Decision) requeue(after time.Duration, p Priority) {
	if int(d.nRequeues) < len(d.requeues) {
		d.requeues[d.nRequeues] = RequeueAfter{after, p}
		d.nRequeues++
	}
}

func (d *Decision) do(a Action) { d.Actions = d.Actions.With(a) }

// ask asks for an action and tells why.
func (d *Decision) ask(a Action, why Note) {
	d.do(a)
	d.note(why)
}
