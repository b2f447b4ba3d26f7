package migration_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// A situation is everything that Step looks at.
type situation struct {
	config *migration.Config
	spec   migration.Spec
	state  migration.State
	seen   migration.Observation
}

var (
	byDefault  = migration.Config{}.Complete()
	compatible = migration.Config{Compatible: true}.Complete()
)

// healthy is a migration with nothing wrong, in Pending.
func healthy(config *migration.Config) situation {
	return situation{
		config: config,
		spec:   migration.Spec{ID: "m0", VM: "vm0", Created: ago(60)},
		state: migration.State{Phase: migration.Pending, Source: "n1", Target: "n2",
			Budget: time.Minute, Entered: ago(30), Deadline: now.Add(time.Minute)},
		seen: migration.Observation{Now: now, Running: true, Instances: 1,
			Gate: migration.Open, VM: migration.VMStatus{Exists: true, Running: true}},
	}
}

func (s *situation) step() migration.Decision {
	return s.config.Step(&s.spec, &s.state, &s.seen)
}

// A dial is one thing that may be in one of a few ways.
type dial struct {
	name string
	n    int
	turn func(*situation, int)
}

// bits is a dial over every combination of some facts.
func bits(name string, facts ...func(*situation) *bool) dial {
	return dial{name, 1 << len(facts), func(s *situation, v int) {
		for i, f := range facts {
			*f(s) = v>>i&1 == 1
		}
	}}
}

// The facts that are combined.
var (
	vmExists       = func(s *situation) *bool { return &s.seen.VM.Exists }
	vmFinal        = func(s *situation) *bool { return &s.seen.VM.Final }
	vmDeleting     = func(s *situation) *bool { return &s.seen.VM.Deleting }
	vmRunning      = func(s *situation) *bool { return &s.seen.VM.Running }
	vmStopping     = func(s *situation) *bool { return &s.seen.VM.Stopping }
	hotplug        = func(s *situation) *bool { return &s.seen.VM.Hotplug }
	utilityVolumes = func(s *situation) *bool { return &s.seen.VM.UtilityVolumes }
	backup         = func(s *situation) *bool { return &s.seen.VM.Backup }
	cpuChange      = func(s *situation) *bool { return &s.seen.VM.CPUChange }
	memoryChange   = func(s *situation) *bool { return &s.seen.VM.MemoryChange }
	moveRequired   = func(s *situation) *bool { return &s.seen.VM.MoveRequired }
	peerFailure    = func(s *situation) *bool { return &s.seen.VM.PeerFailure }
	targetNamed    = func(s *situation) *bool { return &s.seen.Report.TargetNamed }
	address        = func(s *situation) *bool { return &s.seen.Report.Address }
	began          = func(s *situation) *bool { return &s.seen.Report.Began }
	started        = func(s *situation) *bool { return &s.seen.Report.Started }
	completed      = func(s *situation) *bool { return &s.seen.Report.Completed }
	reportedFailed = func(s *situation) *bool { return &s.seen.Report.Failed }
	aborting       = func(s *situation) *bool { return &s.seen.Report.Aborting }
	postCopy       = func(s *situation) *bool { return &s.seen.Report.PostCopy }
	hasArrived     = func(s *situation) *bool { return &s.seen.Report.Arrived }
	unresolved     = func(s *situation) *bool { return &s.seen.Report.Unresolved }
	lost           = func(s *situation) *bool { return &s.seen.Report.Lost }
	impossible     = func(s *situation) *bool { return &s.seen.Impossible }
	isReplaced     = func(s *situation) *bool { return &s.seen.Replaced }
	canceled       = func(s *situation) *bool { return &s.seen.Canceled }
	handedOff      = func(s *situation) *bool { return &s.seen.HandedOff }
	running        = func(s *situation) *bool { return &s.seen.Running }
	queued         = func(s *situation) *bool { return &s.seen.Queued }
	attachment     = func(s *situation) *bool { return &s.seen.Attachment.Exists }
	attached       = func(s *situation) *bool { return &s.seen.Attachment.Ready }
	attachmentDown = func(s *situation) *bool { return &s.seen.Attachment.Down }
)

// phases is a dial over some phases.
func phases(some ...migration.Phase) dial {
	return dial{"phase", len(some), func(s *situation, v int) { s.state.Phase = some[v] }}
}

var claims = dial{"claim", 4, func(s *situation, v int) { s.seen.Ownership = migration.Ownership(v) }}

// targets are the ways in which an instance may be, the last ones by age.
var targets = []migration.Instance{
	{},
	{Exists: true},
	{Exists: true, Ready: true},
	{Exists: true, Down: true},
	{Exists: true, Ready: true, Deleting: true},
	{Exists: true, Pending: true, Created: ago(10)},
	{Exists: true, Pending: true, Unschedulable: true, Created: ago(10)},
	{Exists: true, Ready: true, Told: true},
	{Exists: true, Pending: true, Created: ago(1000)},
	{Exists: true, Pending: true, Unschedulable: true, Created: ago(400)},
	{Exists: true, Pending: true, Unschedulable: true, Created: ago(1000)},
	{Exists: true, Pending: true, Deleting: true, Created: ago(1000)},
}

func target(n int) dial {
	return dial{"target", n, func(s *situation, v int) { s.seen.Target = targets[v] }}
}

var abort = dial{"abort: none, asked, unanswered, unknown", 4, func(s *situation, v int) {
	s.state.Conditions, s.state.AbortBy, s.state.Because = migration.Conditions{}, time.Time{}, ""
	if v == 0 {
		return
	}
	s.state.Conditions = s.state.Conditions.With(migration.AbortRequested)
	s.state.Because = "canceled"
	s.state.AbortBy = now.Add(time.Minute)
	if v > 1 {
		s.state.AbortBy = ago(1)
	}
	if v == 3 {
		s.state.Conditions = s.state.Conditions.With(migration.OutcomeUnknown)
	}
}}

var deadline = dial{"deadline: ahead, passed", 2, func(s *situation, v int) {
	s.state.Deadline = now.Add(time.Minute)
	if v == 1 {
		s.state.Deadline = ago(1)
	}
}}

// String describes a situation so that it can be repeated.
func (s *situation) String() string {
	return fmt.Sprintf("phase %q conditions %v because %q\ndeadline in %s, abort by %s\n%+v",
		s.state.Phase, s.state.Conditions.Words(), s.state.Because,
		s.state.Deadline.Sub(s.seen.Now), s.state.AbortBy.Sub(s.seen.Now), s.seen)
}
