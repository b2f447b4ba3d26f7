//go:build linux

package qmp_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// How a round ended.
const (
	succeeded = "Succeeded"       // it runs at the target
	failed    = "Failed"          // it runs on at the source, as the source said
	cancelled = "Cancelled"       // the same, because its operator lost patience
	activated = "Unknown, moved"  // not known for a while; it runs at the target
	resumed   = "Unknown, stayed" // not known; with evidence it runs on at the source
	crashed   = "Crashed"         // with its QEMU; visible, and started anew
)

var results = []string{succeeded, failed, cancelled, activated, resumed, crashed}

// An outcome is both sides of a migration, at about one time, the target first.
type outcome struct {
	here, there hypervisor.Domain
	sent        hypervisor.Progress // as the source says
}

func (v outcome) String() string {
	return fmt.Sprintf("at the source %v, at the target %v; the source says %v (%s), unresolved %t",
		v.here.State, v.there.State, v.sent.Status, v.sent.Error, v.here.Unresolved)
}

func (r *round) see() (v outcome, err error) {
	there, err := r.domain(target, r.vm.ID)
	sent, failed := r.progress(source, r.job)
	here, absent := r.domain(source, r.vm.ID)
	return outcome{here, there, sent}, errors.Join(err, failed, absent)
}

// An operator brings a migration to its end with what both sides say.
type operator struct {
	*round
	unknown   bool // the source has said that it does not know
	cancelled bool
	resumed   bool
	moved     bool // the target was activated
	began     time.Time
	stood     time.Time // since when the guest stands
	forced    bool
}

// settle waits until the crash is done and brings the migration to its end. It
// returns how it ended and where the VM is.
func (r *round) settle() (result string, where name, err error) {
	o := &operator{round: r, began: time.Now()}
	deadline := time.Now().Add(testutil.Limit(testutil.DefaultLimit))
	var v outcome
	for time.Now().Before(deadline) {
		done := o.done() // what is seen is newer
		if v, err = r.see(); err != nil {
			return "", "", fmt.Errorf("%w; %v", err, v)
		}
		if done {
			result, where, err = o.judge(v)
		} else {
			err = o.wait(v)
		}
		if err != nil || result != "" {
			return result, where, err
		}
		time.Sleep(4 * time.Millisecond)
	}
	return "", "", fmt.Errorf("it has no end: %v", v)
}

// done reports whether the crash is.
func (o *operator) done() bool {
	select {
	case <-o.struck:
		return true
	default:
		return false
	}
}

// wait lets the crash happen. One whose moment has not come when the migration has
// ended is done then.
func (o *operator) wait(v outcome) error {
	if v.sent.Status == hypervisor.JobBroken && !o.done() {
		return fmt.Errorf("the outcome is unknown though nothing was done: %v", v)
	}
	over := v.there.State.Executes() || v.sent.Status.Final()
	if over && !o.forced && time.Since(o.began) > 300*time.Millisecond {
		o.forced = true
		close(o.force)
	}
	return nil
}

// judge does what is to be done next. It answers "" while there is something.
func (o *operator) judge(v outcome) (result string, where name, err error) {
	late := time.Since(o.began) > 4*time.Second
	if v.here.Unresolved || v.sent.Status == hypervisor.JobBroken {
		o.unknown = true
	}
	s, t := v.here.State, v.there.State
	switch {
	case t.Executes():
		return o.arrived()
	case s.Executes() && (v.sent.Status == hypervisor.JobNone || v.sent.Status.Final()):
		return o.stayed(v)
	case s.Executes() && late && !o.cancelled:
		err := backendtest.Persist(func() error {
			return o.hosts[source].Adjust(o.ctx, o.job, hypervisor.Cancel{})
		})
		o.cancelled = !errors.Is(err, hypervisor.Conflict)
		return "", "", nil
	case t == hypervisor.Crashed:
		return o.lostThere(v)
	case s == hypervisor.Crashed:
		return o.lostHere(v, late)
	case o.unknown && (o.bold || o.over()), o.stands(s):
		return "", "", o.recall()
	}
	return "", "", nil
}

// stands reports whether the guest of a source stands because of a link that drops
// everything, and its operator does not wait for better days.
func (o *operator) stands(s hypervisor.DomainState) bool {
	if s != hypervisor.HandingOver || o.victim != linkCut || !o.bold {
		return false
	}
	if o.stood.IsZero() {
		o.stood = time.Now()
	}
	return time.Since(o.stood) > 50*time.Millisecond
}

// over reports whether what can be mended has been for a while.
func (o *operator) over() bool {
	select {
	case <-o.healed:
		return time.Since(o.began) > 2*time.Second
	default:
		return false
	}
}

func (o *operator) about(p hypervisor.Proof, n name) hypervisor.Evidence {
	return hypervisor.Evidence{Proof: p, VM: o.vm.ID, Host: n, Job: o.job, By: "test"}
}

// arrived removes the source of a VM that runs at its target.
func (o *operator) arrived() (result string, where name, err error) {
	err = o.do(source, o.vm.ID, hypervisor.Release{Job: o.job,
		Moved: o.about(hypervisor.RunsAtTarget, target)})
	switch {
	case errors.Is(err, hypervisor.Conflict):
		return "", "", nil // its QEMU has not ended the switch-over yet
	case err != nil:
		return "", "", err
	case o.unknown || o.moved:
		return activated, target, nil
	}
	return succeeded, target, nil
}

// stayed removes the target of a VM that runs at its source.
func (o *operator) stayed(v outcome) (result string, where name, err error) {
	err = o.do(target, o.vm.ID, hypervisor.Discard{Job: o.job})
	switch {
	case err != nil:
		return "", "", fmt.Errorf("the source runs, and the target is not discarded: %w; %v",
			err, v)
	case o.resumed:
		return resumed, source, nil
	case v.sent.Status == hypervisor.JobCancelled:
		return cancelled, source, nil
	case v.sent.Status == hypervisor.JobSucceeded:
		return "", "", fmt.Errorf("the source runs, and says that it has moved: %v", v)
	}
	return failed, source, nil
}

// lostThere gives up the source of a VM that ran at the target and died there.
func (o *operator) lostThere(v outcome) (result string, where name, err error) {
	if v.here.State != hypervisor.Crashed && v.here.State != hypervisor.Shutoff {
		err := o.do(source, o.vm.ID, hypervisor.Abandon{Job: o.job,
			Dead: o.about(hypervisor.ProcessReaped, target)})
		if errors.Is(err, hypervisor.Conflict) {
			err = nil // its QEMU is not through with it
		}
		return "", "", err
	}
	return crashed, target, nil
}

// lostHere starts the target of a VM whose source died after it had stopped for
// good, if the target has everything; otherwise it removes the target.
func (o *operator) lostHere(v outcome, late bool) (result string, where name, err error) {
	if o.unknown && v.there.State != hypervisor.Absent {
		err := o.do(target, o.vm.ID, hypervisor.Activate{Job: o.job,
			Stopped: o.about(hypervisor.ProcessReaped, source)})
		if err == nil {
			o.moved = true
			return "", "", nil
		}
		if errors.Is(err, hypervisor.NotFound) {
			return "", "", nil // it has ended since: its stream broke
		}
		if !errors.Is(err, hypervisor.Conflict) || !late {
			return "", "", ignore(err, hypervisor.Conflict)
		}
	}
	err = o.do(target, o.vm.ID, hypervisor.Discard{Job: o.job})
	if errors.Is(err, hypervisor.Conflict) {
		return "", "", nil // it runs
	}
	return crashed, source, err
}

func ignore(err error, kind hypervisor.Kind) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// recall discards a target and lets the source run again, with that as evidence.
func (o *operator) recall() error {
	err := o.do(target, o.vm.ID, hypervisor.Discard{Job: o.job})
	if err != nil {
		return ignore(err, hypervisor.Conflict) // it runs there
	}
	err = o.do(source, o.vm.ID, hypervisor.Resume{Job: o.job,
		NeverRan: o.about(hypervisor.TargetDiscarded, target)})
	if err == nil {
		o.resumed = true
	}
	return ignore(err, hypervisor.Conflict) // its QEMU is not through with it
}

// prove shows that the VM is where it is said to be, whole, and nowhere else; then
// it ends it.
func (r *round) prove(result string, where name) error {
	other := map[name]name{source: target, target: source}[where]
	if result == crashed {
		if err := r.anew(where, other); err != nil {
			return fmt.Errorf("%s on %s: %w", result, where, err)
		}
	} else if err := r.sound(where); err != nil {
		return fmt.Errorf("%s on %s: %w", result, where, err)
	}
	gone, err := r.domain(other, r.vm.ID)
	if err != nil || gone.State != hypervisor.Absent {
		return fmt.Errorf("%s on %s, but on %s it is %v, %v", result, where, other,
			gone.State, err)
	}
	err = r.do(where, r.vm.ID, hypervisor.Kill{})
	if err == nil {
		err = r.do(where, r.vm.ID, hypervisor.Forget{})
	}
	if err == nil {
		err = r.idle()
	}
	return err
}

// sound checks that the guest beats there, has lived without a break and a
// repetition, and that all of its memory is right.
func (r *round) sound(where name) error {
	process := fmt.Sprintf("%s#%d", where, r.pids[where])
	beats := r.pulse.Log().Beats
	err := r.pulse.Wait(r.ctx, func(h guest.HeartbeatLog) bool {
		return h.Beats > beats+3 && h.From == process
	})
	if err != nil {
		return fmt.Errorf("it does not beat there: %w; the last was %s", err,
			r.pulse.Log().From)
	}
	if err := r.inspect(r.ctx, where, r.observers[where]); err != nil {
		return err
	}
	h := r.pulse.Log()
	if err := h.Check(); err != nil {
		return err
	}
	if h.From != process || h.Boots > 1 {
		return fmt.Errorf("it beats in %s after %d boots", h.From, h.Boots)
	}
	return nil
}

// anew starts a VM that has crashed, once it is seen to have, from its disks.
func (r *round) anew(where, other name) error {
	if err := r.pulse.Log().Check(); err != nil {
		return err
	}
	list, err := r.domains(where)
	if err != nil {
		return err
	}
	p, err := r.progress(where, r.job)
	if err != nil {
		return err
	}
	began := p.Status != hypervisor.JobNone
	seen := slices.ContainsFunc(list, func(d hypervisor.Domain) bool {
		return d.VM.Equal(r.vm) && d.State == hypervisor.Crashed && (d.Job == r.job || !began)
	})
	if !seen {
		return fmt.Errorf("it is not seen there: %+v", list)
	}
	if where == target { // the source was abandoned
		if err := r.do(other, r.vm.ID, hypervisor.Forget{}); err != nil {
			return err
		}
	}
	beats := r.pulse.Log().Beats
	r.pulse.Close()
	if r.pulse, err = guest.NewHeartbeatListener(); err != nil {
		return err
	}
	defer r.pulse.Close()
	if err := r.boot(where); err != nil {
		return fmt.Errorf("start it anew after %d beats: %w", beats, err)
	}
	return r.sound(where)
}
