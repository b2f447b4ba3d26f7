package migration

import (
	"iter"
	"time"
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

// Actions is a set of actions.
type Actions uint16

// With returns the set with a.
func (as Actions) With(a Action) Actions { return as | 1<<a }

// Has reports whether a is in the set.
func (as Actions) Has(a Action) bool { return as&(1<<a) != 0 }

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

// A Wake asks for another look.
type Wake struct {
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
	// collects nor wakes anybody meanwhile. Only in compatible mode.
	Stuck bool

	notes          [6]Note
	wakes          [4]Wake
	nNotes, nWakes uint8
}

// Notes lists what people are to be told, in order.
func (d *Decision) Notes() []Note { return d.notes[:d.nNotes] }

// Wakes lists when to look again, besides when something changes.
func (d *Decision) Wakes() []Wake { return d.wakes[:d.nWakes] }

func (d *Decision) note(n Note) {
	if int(d.nNotes) < len(d.notes) {
		d.notes[d.nNotes] = n
		d.nNotes++
	}
}

func (d *Decision) wake(after time.Duration, p Priority) {
	if int(d.nWakes) < len(d.wakes) {
		d.wakes[d.nWakes] = Wake{after, p}
		d.nWakes++
	}
}

func (d *Decision) do(a Action) { d.Actions = d.Actions.With(a) }

// ask asks for an action and tells why.
func (d *Decision) ask(a Action, why Note) {
	d.do(a)
	d.note(why)
}
