package store

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration"
)

// Plan is a plan that the controller carries out: moves in waves. The moves of a wave may run at the
// same time; the next wave begins when all of them are settled. Plans are carried out one after
// another, the oldest first.
type Plan struct {
	Version Version

	// Written once, by the operator who applies it.
	Name    string
	Created time.Time
	By      string `json:",omitempty"`
	// Hosts are those that the moves empty.
	Hosts []hypervisor.HostName `json:",omitempty"`
	// Strict says that no move goes to another target than planned: the plan kept more than the
	// conditions of placement, as room for failures.
	Strict bool `json:",omitempty"`
	// Moves are in order of their waves. The controller writes how far each of them is.
	Moves []PlannedMove

	// Wish is what its operators want; written by them.
	Wish PlanWish `json:",omitempty"`

	// Written by the controller.
	Wave  int       `json:",omitempty"` // that is carried out
	Ended time.Time `json:",omitzero"`  // every move is settled since then
}

// A PlannedMove is a move of a plan, and how far it is.
type PlannedMove struct {
	VM     hypervisor.VMID
	Source hypervisor.HostName
	Target hypervisor.HostName
	Wave   int `json:",omitempty"` // the first is 0

	// Written by the controller.
	State MoveState `json:",omitempty"`
	// Asked is how often a migration was requested. The last has the name [Plan.Migration].
	Asked int `json:",omitempty"`
	// Failed is how many of them failed in a row.
	Failed int `json:",omitempty"`
	// Late says that the target took the VM in vain, or not at all: after all waves the VM goes to any
	// host that takes it.
	Late bool `json:",omitempty"`
	// Again is when it is requested again at the earliest.
	Again time.Time `json:",omitzero"`
	// Since is since when another migration of the VM is in its way.
	Since time.Time `json:",omitzero"`
	// Host is where the VM has gone.
	Host hypervisor.HostName `json:",omitempty"`
	// Because is why it was skipped, is late, or waits.
	Because string `json:",omitempty"`
}

// A PlanWish is what operators want of a plan.
type PlanWish uint8

// The wishes.
const (
	RunPlan PlanWish = iota
	// PausePlan requests no further migrations, and takes back those that have not begun.
	PausePlan
	// AbortPlan does the same, and ends the plan. Migrations that have begun finish.
	AbortPlan
)

var planWishes = [...]string{"run", "pause", "abort"}

// String returns the word of the wish.
func (w PlanWish) String() string { return humanize.String(w, planWishes[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (w PlanWish) MarshalText() ([]byte, error) {
	return humanize.Text(w, planWishes[:], "wish about a plan")
}

// UnmarshalText reads a word that MarshalText wrote.
func (w *PlanWish) UnmarshalText(text []byte) error {
	return humanize.Parse(w, planWishes[:], "wish about a plan", text)
}

// A MoveState is how far a move of a plan is.
type MoveState uint8

// The states of a move.
const (
	MoveWaits MoveState = iota
	// MoveAsked: its migration is requested. Stored before that is.
	MoveAsked
	// MoveWithdrawn: its migration is to be cancelled, because the plan was paused or aborted.
	MoveWithdrawn
	MoveDone    // the VM has left Source
	MoveSkipped // it is not carried out: see Because
)

var moveStates = [...]string{"waits", "asked", "withdrawn", "done", "skipped"}

// String returns the word of the state.
func (s MoveState) String() string { return humanize.String(s, moveStates[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (s MoveState) MarshalText() ([]byte, error) {
	return humanize.Text(s, moveStates[:], "state of a move")
}

// UnmarshalText reads a word that MarshalText wrote.
func (s *MoveState) UnmarshalText(text []byte) error {
	return humanize.Parse(s, moveStates[:], "state of a move", text)
}

// Settled reports whether nothing more is done about the move.
func (s MoveState) Settled() bool { return s >= MoveDone }

// Migration returns the name of the migration that was requested last for a move. It follows from the
// plan, so that a controller which begins anew requests no second one.
func (p *Plan) Migration(move int) migration.ID {
	m := &p.Moves[move]
	return migration.ID(fmt.Sprintf("%s#p%x.%d.%d", m.VM, p.Created.UnixNano(), move, m.Asked))
}

// Waves is how many waves there are.
func (p *Plan) Waves() int {
	if len(p.Moves) == 0 {
		return 0
	}
	return p.Moves[len(p.Moves)-1].Wave + 1
}

// Key implements Record.
func (p *Plan) Key() Key { return Key{PlanKind, p.Name} }

// RecordVersion implements Record.
func (p *Plan) RecordVersion() Version { return p.Version }

// WithVersion implements Record.
func (p *Plan) WithVersion(v Version) Record { c := *p; c.Version = v; return &c }

// RelatedHosts implements Record: agents read the migrations only.
func (p *Plan) RelatedHosts() []hypervisor.HostName { return nil }

// PlanNamed reads a plan's record; nil is none.
func PlanNamed(ctx context.Context, s Store, name string) (*Plan, error) {
	r, err := s.Get(ctx, Key{Kind: PlanKind, Name: name})
	p, _ := r.(*Plan)
	return p, err
}
