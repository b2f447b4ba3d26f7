package backend

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The rules about evidence. Each refuses evidence that does not prove what a command takes for true:
// by them a VM never runs twice.

// Given refuses no evidence at all.
func Given(e hypervisor.Evidence, what string) error {
	if e.Proof == hypervisor.NoProof {
		return Errorf(hypervisor.Invalid, "no evidence %s", what)
	}
	return nil
}

// Stopped refuses evidence that does not prove that the source of a job has stopped, or is dead:
// only then its target may let the VM run.
func Stopped(e hypervisor.Evidence, vm hypervisor.VMID, job hypervisor.JobID,
	source hypervisor.HostName) error {
	stopped := e.Proof == hypervisor.SourceStopped && e.VM == vm || e.Dead(vm, source)
	if !stopped || !e.About(job) || e.Host == "" || e.Host != source {
		return Errorf(hypervisor.Conflict,
			"%v about %s on %s does not prove that the source stopped", e.Proof, e.VM, e.Host)
	}
	return nil
}

// NeverRan refuses evidence that does not prove that a VM did not and will not run at the target of a
// job: only then its source may let it run again.
func NeverRan(e hypervisor.Evidence, vm hypervisor.VMID, job hypervisor.JobID,
	target hypervisor.HostName) error {
	if !e.NeverRan(vm, target, job) {
		return Errorf(hypervisor.Conflict,
			"%v about %s on %s does not prove that it never ran on %s", e.Proof, e.VM, e.Host,
			target)
	}
	return nil
}

// Dead refuses evidence that does not prove that a VM runs at the target of a job no more: only then
// the memory of its source is given up and the VM may be started anew.
func Dead(e hypervisor.Evidence, vm hypervisor.VMID, job hypervisor.JobID,
	target hypervisor.HostName) error {
	if !e.About(job) || !e.Dead(vm, target) {
		return Errorf(hypervisor.Conflict, "%v about %s on %s does not prove that %s is dead",
			e.Proof, e.VM, e.Host, target)
	}
	return nil
}

// Moved refuses evidence that does not prove that a VM has moved away from a host: only then what is
// left of it there is removed.
func Moved(e hypervisor.Evidence, vm hypervisor.VMID, job hypervisor.JobID,
	from hypervisor.HostName) error {
	if !e.About(job) || !e.Moved(vm, from) {
		return Errorf(hypervisor.Conflict, "%v about %s on %s does not prove that it moved",
			e.Proof, e.VM, e.Host)
	}
	return nil
}

// An Answer is what a rule says to a command on a VM in some state.
type Answer uint8

// The answers.
const (
	// Refuse: the state is in the way.
	Refuse Answer = iota
	// Nothing is to be done.
	Nothing
	// Act: it is to be done.
	Act
	// Shorten: it is being done, and has less time from now on.
	Shorten
)

// RebootTimeout is how long a guest that is asked to reboot may take to shut
// down before it is reset.
const RebootTimeout = 30 * time.Second

// Stop is the rule of a Stop that gives the guest until by. What is under way is d's; nil is nothing.
func Stop(s hypervisor.DomainState, d *Domain, by time.Time) Answer {
	switch s {
	case hypervisor.Shutoff, hypervisor.Crashed:
		return Nothing
	case hypervisor.Running, hypervisor.Starting, hypervisor.Rebooting:
		return Act
	case hypervisor.Stopping:
		if d == nil || d.By.IsZero() || by.Before(d.By) {
			return Shorten
		}
		return Nothing
	}
	return Refuse
}

// Kill is the rule of a Kill. Incoming domains are discarded and stopped sources
// released, never killed: they may be the last good copy.
func Kill(s hypervisor.DomainState) Answer {
	switch {
	case s.Rests():
		return Nothing
	case s.Executes() || s == hypervisor.Paused:
		return Act
	}
	return Refuse
}

// Reboot is the rule of a Reboot.
func Reboot(s hypervisor.DomainState) Answer {
	switch s {
	case hypervisor.Rebooting:
		return Nothing
	case hypervisor.Running:
		return Act
	}
	return Refuse
}

// Unpause is the rule of an Unpause.
func Unpause(s hypervisor.DomainState) Answer {
	switch s {
	case hypervisor.Running:
		return Nothing
	case hypervisor.Paused:
		return Act
	}
	return Refuse
}

// Measure is the rule of a MeasureDirtyRate: whether it is to begin, and for how long. Hypervisors
// measure whole seconds, 60 at most. The error is that the window makes no sense.
func Measure(s hypervisor.DomainState, d *Domain, window time.Duration) (Answer, time.Duration,
	error) {
	switch {
	case window <= 0:
		return Refuse, 0, Errorf(hypervisor.Invalid,
			"it takes some time to measure, not %v", window)
	case s != hypervisor.Running:
		return Refuse, 0, nil
	case d != nil && !d.Measuring.IsZero():
		return Nothing, 0, nil
	}
	window = min(window, time.Minute)
	return Act, (window + time.Second - 1).Truncate(time.Second), nil
}
