package controller

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Say is Set, for those who keep no accounts.
func (b *reservations) Say(id hypervisor.VMID, s usage) {
	b.Set(id, b.account(id), s)
}

// Prolong is Extend, for those who keep no accounts.
func (b *reservations) Prolong(id hypervisor.VMID, move hypervisor.JobID, deadline time.Time) {
	b.Extend(b.account(id), move, deadline)
}

func (b *reservations) account(id hypervisor.VMID) *allocation {
	if i := slices.IndexFunc(b.allocations, func(e *allocation) bool { return e.id == id }); i >= 0 {
		return b.allocations[i]
	}
	return &allocation{}
}

// Together is together, for the tests.
var Together = together

// WhyAnew is Why without what is remembered.
func (b *reservations) WhyAnew(r *placement.Request) []placement.Reason {
	if b.index.Len() <= fewHosts || b.detailed || !plain(r) || b.config.Placement.Filters != nil {
		return together(elsewhere(b.Refusals(r), r.Source))
	}
	anywhere := *r
	anywhere.Source = ""
	return without(together(b.Refusals(&anywhere)), r.Source)
}

// Allowed is allowed.
func (c *FailoverConfig) Allowed(hosts int) int { return c.allowed(hosts) }

// String returns a verdict in words.
func (v failoverDecision) String() string {
	return [...]string{"leave", "welcome", "distrust", "withdraw", "refuse", "recover", "believe", "call lost", "admit",
		"delay", "fence"}[v]
}

// GoBy has a queue order those who wait for a source.
func (q *queue[T]) GoBy(longer func(T) hypervisor.Bytes) { q.longer = longer }

type (
	Drain              = drainEntry
	DrainScheduler     = drainScheduler
	FailoverDecision   = failoverDecision
	HostObservation    = hostObservation
	Move               = reservedMove
	Queue[T item]      = queue[T]
	QueueEntry         = queueEntry
	Reservations       = reservations
	ReservationsConfig = reservationsConfig
	SourceState        = sourceState
	Usage              = usage
)

const (
	Blocked = sourceBlocked
	Busy    = sourceBusy
	Idle    = sourceIdle

	Admit    = verdictAdmit
	Believe  = verdictBelieve
	CallLost = verdictCallLost
	Delay    = verdictDelay
	Distrust = verdictDistrust
	Fence    = verdictFence
	Leave    = verdictLeave
	Recover  = verdictRecover
	Refuse   = verdictRefuse
	Welcome  = verdictWelcome
	Withdraw = verdictWithdraw
)

var (
	ByStrategy      = byStrategy
	DecideHost      = decideHost
	Fills           = fills
	Name            = migrationName
	NewReservations = newReservations
	Sends           = sends
)

// The names that tests call these by.
type (
	MoveObservation = moveObservation
	PlanStep        = planStep
	Resolver        = resolver
)

var (
	DecidePlan  = decidePlan
	NewResolver = newResolver
)
