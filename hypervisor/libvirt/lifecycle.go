//go:build linux && libvirt_dlopen

package libvirt

// This file does what may be asked of a VM on its host: start, stop, pause,
// reboot, resize, snapshot, plug disks in and out. It waits for no guest: what takes
// time is noted, and done in later steps.

import (
	"context"
	"errors"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// A guest is a domain of which something is asked.
type guest struct{ *domain }

// command changes the life of one VM. The caller holds the domain's lock.
func command(ctx context.Context, of *domain, c hypervisor.Command) error {
	d := guest{of}
	f, err := d.Find(ctx)
	if err != nil {
		return err
	}
	if f.State == hypervisor.Absent {
		if err := d.Renamed(ctx); err != nil {
			return err
		}
	}
	if m := f.Moving(); m.Active() && backend.ChangesDisks(c) {
		return m.Conflict()
	}
	defer d.Trigger()
	return backend.Do(ctx, commands{d, move{of}}, f, f.State != hypervisor.Absent, c)
}

// commands are what may be asked of a domain.
type commands struct {
	guest
	move
}

// Start runs a VM from its disks, or from the state that it was saved in, if that is not outdated.
func (d guest) Start(ctx context.Context, f found, c hypervisor.Start) error {
	vm := c.VM.Started()
	switch {
	case vm.ID != d.ID:
		return backend.Errorf(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	case f.State == hypervisor.Starting || f.State == hypervisor.Running ||
		f.State == hypervisor.Rebooting:
		return nil
	case f.Unresolved():
		return backend.Errorf(hypervisor.Conflict, "it may run elsewhere: libvirt, or job %s, has "+
			"moved it away: abandon or release it with evidence first", f.Observed.Mark.Job)
	case f.State != hypervisor.Absent && !f.State.Rests(), f.Job != nil && f.Job.Stage.Live():
		return f.Conflict()
	}
	s := start{VM: vm, Boot: c.Boot, Saved: continues(f.boot(), c.Boot)}
	f, err := d.noteBoot(f, s)
	if err != nil {
		return err
	}
	if err := d.Node.Check(vm); err != nil {
		return err
	}
	if vm.Hardware != nil {
		if err := declared(vm.Hardware.Disks...); err != nil {
			return err
		}
	}
	if f, err = d.chooseDisk(ctx, f, vm); err != nil {
		return err
	}
	if err := d.Node.Reserve(ctx, vm); err != nil {
		return err
	}
	if f.Job != nil && f.Job.Unborn { // from now on it has run
		if err := d.PutJob(true, func(j *jobRecord) { j.Unborn = false }); err != nil {
			return err
		}
	}
	return d.begin(ctx, f, s)
}

// A start is a start of a VM.
type start struct {
	VM    hypervisor.VM
	Boot  int  // as hypervisor.Start counts
	Saved bool // a state that was saved may be continued
}

// boot is the start after which a state of the domain may have been saved.
func (f found) boot() int {
	if f.Rec != nil {
		return f.Rec.Boot
	}
	return f.Observed.Mark.Boot // the journal knows nothing of it
}

// noteBoot notes a start that may continue what was saved, before it may be refused: the next one
// follows it then.
func (d guest) noteBoot(f found, s start) (found, error) {
	if f.Rec == nil || !s.Saved || s.Boot == 0 {
		return f, nil
	}
	err := d.Put(false, func(r *domainRecord) { r.Boot = s.Boot })
	f.Rec = d.Record()
	return f, err
}

// begin notes a start, and has libvirt perform it. The caller has reserved its room.
func (d guest) begin(ctx context.Context, f found, s start) error {
	before := f.Rec
	err := d.Put(true, func(r *domainRecord) {
		if f.State == hypervisor.Absent { // whatever was here is no more
			*r = domainRecord{Name: d.Name, Move: r.Move}
		}
		r.VM, r.Ran, r.Doing, r.By = s.VM, true, hypervisor.Starting, time.Time{}
		if r.Boot = s.Boot; !s.Saved {
			r.Boot = unsure
		}
	})
	if err == nil {
		err = makeDisks(ctx, d.Node, d.Name, s.VM)
	}
	if err == nil {
		err = d.boot(ctx, f, s)
	}
	if err != nil {
		if backend.KindOf(err) == hypervisor.Unknown {
			return err // it may have started: the worker looks at what libvirt shows
		}
		d.Node.Unreserve(d.ID)
		if before == nil { // nothing was kept of it: it is another client's, or it was not here
			return errors.Join(err, d.Remove())
		}
		return errors.Join(err, d.Put(true, func(r *domainRecord) { *r = *before }))
	}
	d.Node.Unreserve(d.ID) // what runs has taken its room
	return d.Put(false, func(r *domainRecord) { r.Doing, r.Crashed, r.Boot = hypervisor.Absent, false, s.Boot })
}

// boot defines the domain where it is not, or where another one is wanted, and starts
// it. What cannot be started is not left defined.
func (d guest) boot(ctx context.Context, f found, s start) error {
	xml, err := d.definition(f, s)
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	flags := libvirt.DOMAIN_NONE
	if !s.Saved {
		flags |= libvirt.DOMAIN_START_FORCE_BOOT
	}
	return d.Node.Conn.Act(ctx, func(c *conn.Connect) error {
		if err := clearTombstone(c, d.Name); err != nil {
			return err
		}
		if xml != "" {
			dom, err := c.DomainDefineXML(xml)
			if err != nil {
				return err
			}
			_ = dom.Free()
		}
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return err
		}
		defer func() { _ = dom.Free() }()
		if err = disableAutostart(dom); err == nil {
			err = dom.CreateWithFlags(flags)
		}
		if err != nil && f.State == hypervisor.Absent {
			err = errors.Join(err, dom.Undefine())
		}
		return err
	})
}

// definition is what is to be defined before a start; "" is nothing.
func (d guest) definition(f found, s start) (string, error) {
	switch {
	case f.State == hypervisor.Absent:
		settings := d.Node.Settings
		settings.DebugSocket = d.Node.DebugSocket(d.Name)
		return domxml.Build(s.VM, settings, domxml.Mark{VM: s.VM, Boot: s.Boot})
	case s.VM.Equal(f.VM):
		return "", nil
	}
	xml, err := domxml.Resize(f.Observed.XML, s.VM)
	if err != nil {
		return "", err
	}
	mark := f.Observed.Mark // also what a journal that is lost would know
	mark.VM = s.VM
	return domxml.SetMark(xml, mark)
}

// Stop asks the guest to shut down, and gives it time. A second Stop may shorten
// the grace.
func (d guest) Stop(ctx context.Context, f found, grace time.Duration) error {
	by := time.Now().Add(max(0, grace))
	switch backend.Stop(f.State, f.kept(), by) {
	case backend.Refuse:
		return f.Conflict()
	case backend.Nothing:
		return nil
	case backend.Shorten:
		return d.doing(hypervisor.Stopping, by)
	}
	if err := d.doing(hypervisor.Stopping, by); err != nil {
		return err
	}
	return d.Press(ctx)
}

// doing notes what was asked of a VM that runs.
func (d guest) doing(what hypervisor.DomainState, by time.Time) error {
	return d.Put(true, func(r *domainRecord) { r.Doing, r.By, r.Ran = what, by, true })
}

// Kill stops the VM now.
func (d guest) Kill(ctx context.Context, f found) error {
	switch backend.Kill(f.State) {
	case backend.Nothing:
		return nil
	case backend.Refuse:
		return f.Conflict()
	}
	if err := d.doing(hypervisor.Stopping, time.Now()); err != nil {
		return err
	}
	err := d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Destroy() })
	if errors.Is(err, hypervisor.Conflict) { // it has ended by itself
		err = nil
	}
	if err != nil {
		return err
	}
	s, err := d.See(ctx)
	if err == nil && s.Run.Rests() && !f.Job.Sends() {
		return d.Reap(found{Observed: s})
	}
	return err
}

func (d guest) Reboot(ctx context.Context, f found) error {
	switch backend.Reboot(f.State) {
	case backend.Nothing:
		return nil
	case backend.Act:
		d.SetRebooted(false)
		err := d.doing(hypervisor.Rebooting, time.Now().Add(backend.RebootTimeout))
		if err != nil {
			return err
		}
		return d.Press(ctx)
	}
	return f.Conflict()
}

// sends refuses to pause a VM that moves: libvirt lets it run at the target whatever
// its operator wants, and has it resume only when it has arrived.
func sends(f found) error {
	if f.Job.Sends() || f.Observed.Sends {
		return backend.Errorf(hypervisor.Conflict,
			"libvirt is moving it, and would let it run at the target: cancel that first")
	}
	return nil
}

// Pause stops the guest's CPUs.
func (d guest) Pause(ctx context.Context, f found) error {
	if f.State != hypervisor.Running && f.State != hypervisor.Paused {
		return f.Conflict()
	}
	if err := sends(f); err != nil {
		return err
	}
	if f.Observed.Run == runPausedUser {
		return nil
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Suspend() })
}

func (d guest) Unpause(ctx context.Context, f found) error {
	switch backend.Unpause(f.State) {
	case backend.Nothing:
		return nil
	case backend.Refuse:
		return f.Conflict()
	}
	if err := sends(f); err != nil {
		return err
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error { return dom.Resume() })
}

// Measure begins to measure how fast the guest writes memory.
func (d guest) Measure(ctx context.Context, f found, window time.Duration) error {
	answer, window, err := backend.Measure(f.State, f.kept(), window)
	switch {
	case err != nil || answer == backend.Nothing:
		return err
	case answer == backend.Refuse:
		return f.Conflict()
	}
	seconds := int(window / time.Second)
	err = d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.StartDirtyRateCalc(seconds, libvirt.DOMAIN_DIRTYRATE_MODE_PAGE_SAMPLING)
	})
	if err != nil {
		return err
	}
	until := time.Now().Add(window)
	return d.Put(false, func(r *domainRecord) { r.VM, r.Measuring, r.Ran = f.VM, until, true })
}

// Forget removes a VM that rests. The files of its disks stay. A saved state is the VM's memory, unless it
// is outdated: libvirt refuses to remove the definition that it belongs to.
func (d guest) Forget(ctx context.Context, f found, c hypervisor.Forget) error {
	if !f.State.Rests() || f.Job != nil && f.Job.Stage.Live() || f.Unresolved() {
		return f.Conflict()
	}
	if err := d.Erase(ctx, f.Observed, c.Outdated); err != nil {
		return err
	}
	return d.Remove()
}

// DeleteSnapshot removes a snapshot; one that is not there is removed already.
func (d guest) DeleteSnapshot(ctx context.Context, f found, c hypervisor.DeleteSnapshot) error {
	return d.onSnapshot(ctx, f, c.Name, false, func(s *libvirt.DomainSnapshot) error {
		return s.Delete(0)
	})
}

// RevertSnapshot sets the VM's disks back.
func (d guest) RevertSnapshot(ctx context.Context, f found, c hypervisor.RevertSnapshot) error {
	return d.onSnapshot(ctx, f, c.Name, true, func(s *libvirt.DomainSnapshot) error {
		return s.RevertToSnapshot(0)
	})
}
