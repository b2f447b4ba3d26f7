package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// CheckRetry guards a retry policy: it waits, or not, and never until before what it was told of.
func CheckRetry(b *PolicyCheck, name string, r migration.Retry) migration.Retry {
	return func(self migration.ID, attempts []migration.Attempt) time.Time {
		if b.found != nil {
			return time.Time{}
		}
		q := &again{name, self, slices.Clone(attempts)}
		var first, second time.Time
		if !b.ask(name, q, func() { first = r(self, attempts) }) ||
			!b.ask(name, q, func() { second = r(self, attempts) }) {
			return time.Time{}
		}
		failed := q.failedAt()
		switch {
		case !slices.Equal(q.attempts, attempts):
			b.note(name, Meddles, q, "the attempts are now %s", words(attempts))
		case !first.Equal(second):
			b.note(name, Fickle, q, "first %v, then %v", first, second)
		case !first.IsZero() && first.Before(failed):
			b.note(name, Nonsense, q, "it waits until %v, and the last attempt failed at %v", first,
				failed)
		}
		return first
	}
}

// again is the question: when may this attempt begin?
type again struct {
	name     string
	self     migration.ID
	attempts []migration.Attempt
}

func (a *again) String() string {
	return fmt.Sprintf("%s(%s, %s)", a.name, a.self, words(a.attempts))
}

// failedAt returns when the youngest attempt that has failed did so, which is before others by
// a clock that was set back; zero when that is not known.
func (a *again) failedAt() (last time.Time) {
	for i := range a.attempts {
		at := &a.attempts[i]
		if at.Phase == migration.Failed && at.FailedAt.IsZero() {
			return time.Time{}
		}
		if !at.FailedAt.IsZero() {
			last = at.FailedAt
		}
	}
	return last
}
