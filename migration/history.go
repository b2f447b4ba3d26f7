package migration

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Attempt is one migration of a VM, as retries and collection see it.
type Attempt struct {
	ID       ID
	By       Creator
	Created  time.Time
	Phase    Phase
	Deleted  bool      // it was removed, or is being removed
	FailedAt time.Time // when it entered Failed; zero if that is not known
	Target   hypervisor.HostName
	Because  string // the rule that ended it: [State.Because]
	// What the VM's state said when it ended.
	ReportedFailed, ReportedCompleted bool
}

// A Retry decides when self, one of a VM's attempts, may create its target; an instant that has
// passed is now. attempts are all that are kept of the VM, oldest first. Only what the system
// repeats is asked about. It is pure, and answers with an instant, not a wait, so that a restart
// changes nothing. To give up it names one far away: the attempt waits, and says so, until it is
// cancelled, the VM need not move any more, or [Timeouts.Pending] has passed.
type Retry func(self ID, attempts []Attempt) time.Time

// RetryAt returns when self may create its target, by c.Retry or else by [Config.Backoff].
func (c *Config) RetryAt(self ID, attempts []Attempt) time.Time {
	c = c.completed()
	if c.Retry != nil {
		return c.Retry(self, attempts)
	}
	return c.Backoff(self, attempts)
}

// Backoff returns when self, one of a VM's attempts, may create its target; the zero time is
// now. Only what the system repeats backs off: after n failures in a row the wait is 2^(n-1)
// times the base, counted from the last failure, and at most the cap. A success ends the row;
// removed attempts do not count.
// Source: KubeVirt v1.9.0 migration.go:1049 (handleMigrationBackoff).
func (c *Config) Backoff(self ID, attempts []Attempt) time.Time {
	c = c.completed()
	row := slices.DeleteFunc(slices.Clone(attempts), func(a Attempt) bool {
		return a.By == User || a.Because == vmStopping || a.Because == replaced // people were in the way
	})
	slices.SortStableFunc(row, func(a, b Attempt) int { return b.Created.Compare(a.Created) })
	if len(row) < 2 || row[0].ID != self {
		return time.Time{}
	}
	wait := time.Duration(0)
	for _, a := range row[1:] {
		if a.Phase == Succeeded {
			break
		}
		if a.Deleted || a.Phase != Failed {
			continue
		}
		wait = c.longer(wait)
	}
	if wait == 0 {
		return time.Time{}
	}
	return row[1].FailedAt.Add(wait)
}

// Failures counts how many of a VM's attempts have failed since the last that succeeded;
// phase returns how far each has come, oldest first.
func Failures(attempts int, phase func(int) Phase) int {
	failed := 0
	for i := range attempts {
		switch phase(i) {
		case Failed:
			failed++
		case Succeeded:
			failed = 0
		}
	}
	return failed
}

// longer returns the wait after one more failure. The compatible mode knows no cap but what a
// duration can hold.
func (c *Config) longer(wait time.Duration) time.Duration {
	most := time.Duration(math.MaxInt64)
	if !c.Compatible {
		most = c.BackoffCap
	}
	switch {
	case wait == 0:
		return min(c.BackoffBase, most)
	case wait > most/2:
		return most
	}
	return 2 * wait
}

// Avoid lists the hosts that a new attempt should not try first: those to which a migration of
// the VM failed lately, through a fault of the target. KubeVirt forgets, and its scheduler may
// choose the same host for ever.
func (c *Config) Avoid(attempts []Attempt, now time.Time) []hypervisor.HostName {
	c = c.completed()
	var hosts []hypervisor.HostName
	for _, a := range attempts {
		if a.Phase == Failed && a.Target != "" && targetsFault[a.Because] &&
			now.Sub(a.FailedAt) < c.AvoidFor {
			hosts = append(hosts, a.Target)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// targetsFault holds the rules that speak against the target. A transfer that the source gave up
// speaks against the wire between the two: trying another target is the only cure in reach.
var targetsFault = map[string]bool{
	"target-down": true, "target-vanished": true, "target-expired": true,
	"attachment-down": true, Overdue: true, "source-kept-vm": true, "target-outdated": true,
}

// Overdue is the [State.Because] of a migration that used up the time of a phase.
const Overdue = "overdue"

// HostsFault reports whether the rule that ended a migration may speak against one of its hosts;
// the other rules are about the VM, what was asked for, or what was decided.
func HostsFault(because string) bool {
	return targetsFault[because] && because != "target-outdated"
}

// A Collection is a finished migration to be forgotten, and what may be left of it on the hosts.
type Collection struct {
	ID                         ID
	DeleteSource, DeleteTarget bool
}

// Collect lists a VM's finished attempts to be forgotten, oldest first: all but the newest
// [Config.Keep].
// Source: KubeVirt v1.9.0 migration.go:2251 (garbageCollectFinalizedMigrations).
func (c *Config) Collect(attempts []Attempt) []Collection {
	c = c.completed()
	done := slices.DeleteFunc(slices.Clone(attempts), func(a Attempt) bool {
		return !a.Phase.Final() || a.Deleted
	})
	slices.SortStableFunc(done, func(a, b Attempt) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	var gone []Collection
	for _, a := range done[:max(0, len(done)-max(0, c.Keep))] {
		gone = append(gone, Collection{ID: a.ID, DeleteTarget: a.ReportedFailed,
			DeleteSource: a.ReportedCompleted && !a.ReportedFailed})
	}
	return gone
}
