package store

import "time"

// What the tests in package store_test see of the inside.

// Leader returns the leader at the last look; nil is none, or not known.
func (e *Elector) Leader() *Leader { return e.seen }

// Signed returns when a heartbeat was last stored; the zero time is never.
func (e *Elector) Signed() time.Time { return e.beater.Last() }

// At is the revision of the last change.
func (l *ChangeLog) At() Revision { return l.at }
