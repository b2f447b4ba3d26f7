//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// How a round ended.
const (
	endSucceeded = "Succeeded"       // it runs at the target
	endFailed    = "Failed"          // it runs on at the source, as the source said
	endCancelled = "Cancelled"       // the same, because its operator lost patience
	endUnbegun   = "Not begun"       // the source never took the job
	endMoved     = "Unknown, moved"  // not known for a while; it runs at the target
	endStayed    = "Unknown, stayed" // not known; with evidence it runs on at the source
	endByHand    = "By a human"      // who knew what no hypervisor does: it ran, or not
	endCrashed   = "Crashed"         // with its QEMU; visible, and started anew
)

var endings = []string{endSucceeded, endFailed, endCancelled, endUnbegun, endMoved, endStayed,
	endByHand, endCrashed}

// longestCut bounds how long a link is cut that is mended again, beyond 300 ms.
func longestCut() time.Duration {
	if testutil.InLongTier() {
		return 7700 * time.Millisecond
	}
	return 2 * time.Second
}

// An operator brings a migration to its end.
type operator struct {
	*round
	unknown   bool // a host has said that it does not know
	cancelled bool
	byHand    bool
	began     time.Time
	said      error  // the last that Resolve answered
	diary     string // the last page of it
}

// settle brings the migration to its end, and returns how it ended and where the VM is.
func (r *round) settle() (result string, where name, err error) {
	o := &operator{round: r, began: time.Now()}
	for time.Since(o.began) < testutil.Limit(testutil.DefaultLimit) {
		o.write()
		if result, where = o.try(); result != "" {
			return result, where, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", "", fmt.Errorf("it has no end: %w", o.said)
}

// write adds what both sides say to the diary, if it is new.
func (o *operator) write() {
	text := ""
	for _, n := range []name{hosta, hostb} {
		d, err := o.hosts[n].Domain(o.ctx, o.vm.ID)
		p, errJob := o.hosts[n].Progress(o.ctx, o.job)
		ctx, cancel := context.WithTimeout(o.ctx, time.Second)
		state, errState := o.stateOf(ctx, n, o.vm.ID)
		cancel()
		if err = errors.Join(err, errJob, errState); err != nil {
			text += fmt.Sprintf("%s: %v; ", part(n), err)
			continue
		}
		text += fmt.Sprintf("%s: %v, unresolved %t, job %v (%s), libvirt %d; ", part(n), d.State,
			d.Unresolved, p.Status, p.Error, state)
	}
	if text += fmt.Sprintf("resolve: %v", o.said); text != o.diary {
		o.diary = text
		o.mu.Lock()
		defer o.mu.Unlock()
		o.pages = append(o.pages, fmt.Sprintf("%v: %s", time.Since(o.begun).Round(time.Millisecond),
			text))
	}
}

// try does what can be done now. It answers "" while it is not over.
func (o *operator) try() (result string, where name) {
	source, target := o.hosts[hosta], o.hosts[hostb]
	here, err := source.Domain(o.ctx, o.vm.ID)
	job, failure := source.Progress(o.ctx, o.job)
	_, twice := o.twice.length()
	o.unknown = o.unknown || twice || err == nil && here.Unresolved ||
		failure == nil && job.Status == hypervisor.JobBroken
	o.recall(here)
	out, err := libvirt.Resolve(o.ctx, source, target, o.vm.ID, o.job)
	switch o.said = err; {
	case errors.Is(err, hypervisor.NotFound):
		return o.neverBegun()
	case err != nil:
		if time.Since(o.began) > 8*time.Second {
			o.think(here)
		}
		return "", ""
	case o.byHand:
		return endByHand, out.Host
	case out.Evidence.Proof == hypervisor.NoProof && o.contradicted():
		return "", ""
	case out.Domain.State == hypervisor.Crashed:
		return endCrashed, out.Host
	case out.Host == hostb && (o.unknown || out.Evidence.Proof != hypervisor.RunsAtTarget):
		return endMoved, hostb
	case out.Host == hostb:
		return endSucceeded, hostb
	case out.Evidence.Proof != hypervisor.NoProof:
		return endStayed, hosta
	case o.cancelled:
		return endCancelled, hosta
	case o.gaveUp() != nil:
		return endUnbegun, hosta
	}
	return endFailed, hosta
}

// contradicted reports whether the source, of which Resolve has said that it kept the
// VM, now says that it does not know: Resolve had looked while its agent was noting that.
func (o *operator) contradicted() bool {
	d, err := o.hosts[hosta].Domain(o.ctx, o.vm.ID)
	if err != nil || !d.Unresolved {
		return false
	}
	o.misled++
	return true
}

// recall has a held target discarded whose process has ended, while its source has its
// memory still: otherwise the source would be taken for the one that is left behind.
func (o *operator) recall(here hypervisor.Domain) {
	there, err := o.hosts[hostb].Domain(o.ctx, o.vm.ID)
	dead := there.State == hypervisor.Crashed || there.State == hypervisor.Shutoff
	if err != nil || !dead || here.State != hypervisor.HandingOver || !here.Unresolved {
		return
	}
	err = o.hosts[hostb].Do(o.ctx, o.vm.ID, hypervisor.Discard{Job: o.job})
	if !o.strict && err == nil {
		o.fail("a target was discarded that may have run")
	}
}

// think is what a human does after a while: he gives up waiting. Of a source whose
// QEMU has died after it stopped, he knows what no hypervisor does: that it never ran
// again. The guest's heartbeats tell him.
func (o *operator) think(here hypervisor.Domain) {
	there, err := o.hosts[hostb].Domain(o.ctx, o.vm.ID)
	dead := here.State == hypervisor.Crashed || here.State == hypervisor.Shutoff
	switch {
	case err == nil && dead && there.State == hypervisor.Received && !o.ranOn():
		o.byHand = o.hosts[hostb].Do(o.ctx, o.vm.ID, hypervisor.Activate{Job: o.job,
			Stopped: hypervisor.Evidence{Proof: hypervisor.ProcessReaped, VM: o.vm.ID, Host: hosta,
				Job: o.job, By: "test"}}) == nil
	case !o.cancelled:
		o.cancelled = o.hosts[hosta].Adjust(o.ctx, o.job, hypervisor.Cancel{}) == nil
	}
}

// ranOn reports whether the guest beat at its source after that had stopped for the
// switch-over.
func (o *operator) ranOn() bool {
	stopped, heard := o.events.Heard("source suspended migrated")
	h := o.pulse.Log()
	return !heard || libvirttest.HostOf(h.From) == libvirttest.HostA &&
		h.Last.After(stopped.Add(50*time.Millisecond))
}

// gaveUp is why the migration was not asked for, if that is over.
func (o *operator) gaveUp() error {
	select {
	case <-o.asked:
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.refused
	default:
		return nil
	}
}

// neverBegun: the source knows nothing of the job, and will not be asked again.
func (o *operator) neverBegun() (result string, where name) {
	if o.gaveUp() == nil {
		return "", ""
	}
	d, err := o.hosts[hosta].Domain(o.ctx, o.vm.ID)
	switch {
	case err != nil:
		return "", ""
	case d.State == hypervisor.Crashed:
		return endCrashed, hosta
	}
	return endUnbegun, hosta
}

// soonest is how long two may run by a mistake of libvirt's, on the busiest of machines, before the source is paused.
// Usually it takes milliseconds.
const soonest = 10 * time.Second

// judgeOverlap: only by a mistake of libvirt's may two run, and not for long after libvirt takes orders again. It
// makes that one only where a libvirtd or the link was lost. Where the target's QEMU dies before libvirt has told its
// source that the guest runs, the source goes on from the switch-over, after the death: see docs/known-hypervisor-faults.md.
func (r *round) judgeOverlap() {
	d, ok := r.twice.length()
	lost := r.victim == sourceDaemon || r.victim == targetDaemon || r.victim == linkReset ||
		r.victim == linkCut || r.victim == targetQEMU || r.instead != nil
	switch {
	case !ok:
	case r.strict || !lost:
		r.fail("two copies ran for %v", d)
	case r.twice.stoppable() > testutil.Limit(soonest) && r.victim != sourceDaemon:
		r.fail("libvirt let two copies run, and they did for %v, %v of it when libvirt had ended the migration", d,
			r.twice.stoppable())
	}
}

// prove shows that the VM is where it is said to be, whole, and nowhere else; then it
// ends it.
func (r *round) prove(result string, where name) error {
	if err := r.clearTarget(where); err != nil {
		return fmt.Errorf("%s on %s: %w", result, where, err)
	}
	d, err := r.domainOn(where)
	if err == nil && d.State == hypervisor.Crashed { // perhaps just now
		err = r.anew(where)
	}
	if err == nil {
		err = r.sound(where)
	}
	if err != nil {
		return fmt.Errorf("%s on %s: %w", result, where, err)
	}
	other := map[name]name{hosta: hostb, hostb: hosta}[where]
	if gone, err := r.domainOn(other); err != nil || gone.State != hypervisor.Absent {
		return fmt.Errorf("%s on %s, but on %s it is %v, %w", result, where, other, gone.State,
			errors.Join(err, errLeft))
	}
	for _, c := range []hypervisor.Command{hypervisor.Kill{}, hypervisor.Forget{}} {
		err := backendtest.Persist(func() error { return r.hosts[where].Do(r.ctx, r.vm.ID, c) })
		if err != nil {
			return err
		}
	}
	return r.clears(true)
}

func (r *round) domainOn(n name) (d hypervisor.Domain, err error) {
	err = backendtest.Persist(func() (err error) {
		d, err = r.hosts[n].Domain(r.ctx,
			r.vm.ID)
		return err
	})
	return d, err
}

// clearTarget tells the target of a migration that ended before it came there, which
// nothing else does. Its libvirt may not have noticed yet.
func (r *round) clearTarget(where name) error {
	if where != hosta {
		return nil
	}
	return testutil.Poll(r.ctx, testutil.DefaultLimit, func() error {
		err := backendtest.Persist(func() error {
			return r.hosts[hostb].Do(r.ctx, r.vm.ID, hypervisor.Discard{Job: r.job})
		})
		if err != nil && !errors.Is(err, hypervisor.Conflict) {
			return testutil.Stop(err)
		}
		return err
	})
}

// sound checks that the guest beats there, has lived without a break, and that all of
// its memory is right.
func (r *round) sound(where name) error {
	beats := r.pulse.Log().Beats
	err := r.pulse.Wait(r.ctx, func(h guest.HeartbeatLog) bool {
		return h.Beats > beats+3 && libvirttest.HostOf(h.From) == string(where)
	})
	if err != nil {
		return fmt.Errorf("it does not beat there: %w; the last was %s", err, r.pulse.Log().From)
	}
	if err := r.quiet(where); err != nil {
		return err
	}
	if err := r.Verify(r.t, string(where), domainOf(r.vm.ID), r.load); err != nil {
		return err
	}
	h := r.pulse.Log()
	if _, twice := r.twice.length(); !twice {
		err = h.Check()
	} else if h.Errors+h.Unknown > 0 { // two have been heard, and neither is damaged
		err = fmt.Errorf("%+v", h)
	}
	if err == nil && h.Boots > 1 {
		err = fmt.Errorf("it has booted %d times", h.Boots)
	}
	return err
}

// quiet waits until libvirt does nothing with the VM. At the end of a migration it lets
// a guest run again that was stopped meanwhile.
func (r *round) quiet(where name) error {
	for {
		info, err := r.Virsh(r.ctx, string(where), "domjobinfo", domainOf(r.vm.ID))
		if err != nil || strings.Contains(info, "None") {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// anew starts a VM that has crashed from its disks.
func (r *round) anew(where name) error {
	if err := r.pulse.Log().Check(); err != nil && r.strict {
		return err
	}
	if err := r.boot(where); err != nil {
		return fmt.Errorf("start it anew: %w", err)
	}
	return nil
}

// runs reports whether libvirt says that a domain executes. A process that is being
// ended is "in shutdown" for a moment, whether its guest ran or stood.
func runs(s lv.DomainState) bool { return s == lv.DOMAIN_RUNNING || s == lv.DOMAIN_BLOCKED }

// holds reports whether the source's libvirtd is still at the migration. It has let the guest run again then, and pauses
// it only when it has cleared away: with a slow disk, seconds later.
// Source: libvirt v9.0.0 src/qemu/qemu_migration.c (qemuMigrationSrcPerformJob: qemuMigrationJobFinish comes last, and
// virDomainSuspend waits for it).
func (r *round) holds() bool {
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second)
	defer cancel()
	info, err := r.Virsh(ctx, string(hosta), "domjobinfo", domainOf(r.vm.ID))
	return err == nil && !strings.Contains(info, "None")
}

// sample looks all the time at what libvirt itself says: whether the VM runs twice, or
// is nowhere. In a round it moves one way only: what runs at the target and then,
// asked later, at the source, runs twice.
func (r *round) sample() {
	var since time.Time // of both running
	for {
		select {
		case <-r.judged:
			return
		case <-time.After(10 * time.Millisecond):
		}
		ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second)
		there, err := r.stateOf(ctx, hostb, r.vm.ID)
		here, failure := r.stateOf(ctx, hosta, r.vm.ID)
		again, later := r.stateOf(ctx, hostb, r.vm.ID)
		cancel()
		if errors.Join(err, failure, later) != nil {
			continue
		}
		switch {
		case here == lv.DOMAIN_NOSTATE && there == lv.DOMAIN_NOSTATE && again == there:
			r.fail("no libvirtd knows it any more")
			return
		case !runs(here) || !runs(there):
			since = time.Time{}
		case r.strict:
			r.fail("both libvirtds say that it runs")
			return
		case r.holds():
			r.twice.hold(time.Now())
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > testutil.Limit(soonest) && r.victim != sourceAgent:
			r.fail("both libvirtds say that it runs, and have for %v", time.Since(since))
			return
		}
	}
}
