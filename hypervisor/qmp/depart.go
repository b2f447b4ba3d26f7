//go:build linux

package qmp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// migrate begins to send a VM. It answers Transient when the target's host cannot
// be reached, and Conflict for a VM that cannot be sent now. One that is Shutoff
// moves cold. The caller holds the domain's lock.
func migrate(ctx context.Context, of *domain, out hypervisor.Outgoing) error {
	d := move{of}
	h := d.Node
	if out.Job == "" {
		return qemu.Refuse(hypervisor.Invalid, "the job has no name")
	}
	if err := h.QEMU.CheckOptions(out.Options); err != nil {
		return err
	}
	if old := h.Job(out.Job); old != nil {
		if old.Role == backend.Source && old.VM.ID == out.VM {
			return nil
		}
		return qemu.Refuse(hypervisor.Conflict, "job %s is another migration", out.Job)
	}
	rec, job, vm := d.Present()
	if rec == nil {
		return qemu.Refuse(hypervisor.NotFound, "no such VM")
	}
	if rec.Hotplug != nil && vm != nil && !vm.Ended() { // its target must have what it has
		if err := d.hotplugged(ctx, vm); err != nil {
			return err
		}
		rec, job, vm = d.Present()
	}
	l, _, err := d.Look(ctx)
	if err != nil {
		return qemu.Observing(err)
	}
	state := stateOf(rec, job, l)
	switch {
	case rec.Move.Active():
		return rec.Move.Conflict()
	case rec.Unresolved:
		return qemu.Refuse(hypervisor.Conflict, "it may run at the target of job %s", rec.Job)
	case state == hypervisor.Paused && l.Run == qemu.PostMigrate:
		return qemu.Refuse(hypervisor.Conflict,
			"it rests since another job: QEMU sends it again when it was unpaused")
	case job != nil && job.Role == backend.Source && (job.Stage == stageSending ||
		job.Stage == stageMirroring):
		return qemu.Refuse(hypervisor.Conflict, "job %s is under way", job.ID)
	case state == hypervisor.Shutoff:
		return d.migrateCold(ctx, out)
	case state == hypervisor.Running || state == hypervisor.Paused ||
		state == hypervisor.Rebooting:
		return d.migrateLive(ctx, out, vm, state == hypervisor.Paused)
	}
	return qemu.Refuse(hypervisor.Conflict, "it is %v", state)
}

// newJob is what is kept of a job that this host sends.
func (d move) newJob(out hypervisor.Outgoing) *jobRecord {
	now := time.Now().UTC()
	return &jobRecord{Job: backend.Job[stage]{ID: out.Job, VM: d.Record().VM, Role: backend.Source,
		Stage: stageSending, Started: now, Target: out.Target, Address: out.Address,
		Options: out.Options, Last: hypervisor.Progress{Job: out.Job, Started: now,
			Total: d.Record().VM.Memory, Disks: d.Record().VM.LocalSize()}}}
}

// migrateLive agrees with the target's host how it will be done, and begins.
func (d move) migrateLive(ctx context.Context, out hypervisor.Outgoing, vm *qemu.Instance,
	paused bool) error {
	copies := len(d.Record().VM.LocalDisks()) > 0
	m, err := vm.QueryMigrate(ctx)
	if err == nil {
		out.Options, err = vm.Within(ctx, out.Options)
	}
	switch {
	case err != nil:
		return qemu.Observing(err)
	case len(m.Blocked) > 0:
		return qemu.Refuse(hypervisor.Conflict,
			"QEMU cannot move it: %s", strings.Join(m.Blocked, "; "))
	}
	var own errgroup.Group // meanwhile: it is ours, and does no harm if they disagree
	own.Go(func() error { return vm.Configure(ctx, out.Options, qemu.AtSource, copies) })
	answer, err := d.agree(ctx, out, message{Paused: paused || out.Options.StartPaused})
	if configured := own.Wait(); err == nil {
		err = configured
	}
	if err != nil {
		d.HangUp()
		return err
	}
	job := d.newJob(out)
	job.Prepared = &prepared{Options: out.Options, URI: answer.URI, Disks: answer.Disks}
	if copies {
		job.Stage = stageMirroring
	}
	if d.Record().Paused != paused { // it was to be paused, and is not, or cannot go on
		if err := d.Put(true, func(r *domainRecord) { r.Paused = paused }); err != nil {
			return err
		}
	}
	if err := d.enlist(job); err != nil {
		return err
	}
	if copies {
		err = vm.Mirror(ctx, d.Record().VM, answer.Disks, out.Options.Bandwidth)
	} else {
		err = d.transfer(ctx, vm, answer.URI)
	}
	if err == nil || qemu.Classify(err) == hypervisor.Unknown {
		d.Trigger()
		return err
	}
	return errors.Join(err, d.giveUp(ctx, vm, hypervisor.JobFailed))
}

// enlist notes that the domain takes part in a job, before it does. The job comes
// last: one that is known is one that will be ended.
func (d move) enlist(job *jobRecord) error {
	err := d.Put(true, func(r *domainRecord) {
		r.Own, r.Job, r.Unresolved = true, job.ID, false
	})
	if err != nil {
		return err
	}
	d.Unexpect() // how the job before has ended
	err = d.Node.PutJob(job, true)
	d.Node.Changed(d.ID)
	return err
}

// agree tells the target's host what will come, and returns where it is to go.
func (d move) agree(ctx context.Context, out hypervisor.Outgoing, m message,
) (*handoverAnswer, error) {
	d.HangUp()
	conn, answer, err := d.ask(ctx, d.Record().VM, out, m)
	d.Link = conn
	return answer, err
}

// ask is agree without the domain's lock, for a VM as it is here. The caller closes the connection.
func (d move) ask(ctx context.Context, vm hypervisor.VM, out hypervisor.Outgoing, m message,
) (*peerConn, *handoverAnswer, error) {
	m.Say, m.Job, m.VM, m.Options = verbPrepare, out.Job, out.VM, out.Options
	m.From = d.Node.Name
	m.Machine = digest(d.Node.QEMU.Resolved(vm))
	conn, err := d.Node.Reach(ctx, out.Address)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.Node.Timeout)
	defer cancel()
	answer, err := conn.Ask(ctx, &m)
	if err != nil { // the target can be asked again: nothing has begun
		conn.Close()
		return nil, nil, qemu.Refuse(hypervisor.Transient, "ask the target's host: %v", err)
	}
	if err := errors.Join(answer.Err(), place(answer.URI), place(answer.Disks)); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, answer, nil
}

// place refuses what is no place for QEMU to connect to: it can also run programs.
func place(uri string) error {
	if uri == "" || strings.HasPrefix(uri, "tcp:") || strings.HasPrefix(uri, "unix:") {
		return nil
	}
	return qemu.Refuse(hypervisor.Invalid, "the target's host listens at %q: only tcp and unix "+
		"are connected to", uri)
}

// transfer makes QEMU connect and send.
func (d move) transfer(ctx context.Context, vm *qemu.Instance, uri string) error {
	if err := d.vacant(ctx, vm); err != nil {
		return err
	}
	line, err := d.connect(ctx, uri)
	if err != nil {
		return err
	}
	if line != nil {
		defer line.Close() // QEMU has its own copy
	}
	return d.over(ctx, vm, uri, line, false)
}

// connect connects to where the target's QEMU listens, with a Dial of the caller's. Nil is that QEMU connects.
func (d move) connect(ctx context.Context, uri string) (*os.File, error) {
	if !d.Node.QEMU.Passed {
		return nil, nil
	}
	network, where, _ := strings.Cut(uri, ":")
	conn, err := d.Node.Dial(ctx, network, where)
	if err != nil {
		return nil, qemu.Refuse(hypervisor.Transient, "connect to the target: %v", err)
	}
	defer conn.Close() // the file is a copy
	f, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, qemu.Refuse(hypervisor.Unsupported,
			"a connection of type %T cannot be passed on", conn)
	}
	file, err := f.File()
	if err != nil {
		return nil, qemu.Refuse(hypervisor.Transient, "pass on the connection: %v", err)
	}
	return file, nil
}

// over makes QEMU send, or go on with sending, over a line that it is given, or that it makes itself.
func (d move) over(ctx context.Context, vm *qemu.Instance, uri string, line *os.File, resume bool) error {
	d.Expect(vm, backend.Source)
	if line == nil {
		return vm.Migrate(ctx, uri, resume)
	}
	if err := vm.Client.SendFile(ctx, "migration", line); err != nil {
		return err
	}
	return vm.Migrate(ctx, "fd:migration", resume)
}

// vacant waits until QEMU has cleaned up after the migration before. QEMU says that one has
// failed before it has; another that begins then it refuses, and takes it for begun ever
// after, or it dies.
// Source: QEMU 7.2 migration/migration.c (qmp_migrate calls migrate_init before
// yank_register_instance).
func (d move) vacant(ctx context.Context, vm *qemu.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, d.Node.Timeout)
	defer cancel()
	for {
		busy, err := vm.Migrating(ctx)
		if errors.Is(err, qemu.CommandNotFound) {
			return nil // a monitor of the caller's that does not offer it
		}
		if ctx.Err() == nil && (err != nil || !busy) {
			return err
		}
		select {
		case <-ctx.Done():
			return qemu.Refuse(hypervisor.Transient, "QEMU has not cleaned up after the "+
				"migration before: if it never does, restart the VM")
		case <-time.After(time.Millisecond):
		}
	}
}

// send begins with the memory when the disks are copied. Cold, there is none.
func (d move) send(ctx context.Context, vm *qemu.Instance) error {
	if err := d.PutJob(false, func(j *jobRecord) { j.Stage = stageSending }); err != nil {
		return err
	}
	job := d.Node.Job(d.Record().Job)
	if job.Cold {
		return nil
	}
	return d.transfer(ctx, vm, job.Prepared.URI)
}

// keep notes that the transfer has ended and the VM stays here.
func (d move) keep(ctx context.Context, vm *qemu.Instance, m qemu.Migration) error {
	d.HangUp()
	rec, job, _ := d.Present()
	if len(rec.VM.LocalDisks()) > 0 {
		if err := vm.DropMirrors(ctx, d.Record().VM); err != nil {
			return err
		}
	}
	if err := d.goOn(ctx, vm, d.Seen().Run); err != nil {
		return err
	}
	last := progress(job, m, d.Node.QEMU.Encrypts(job.Options) != nil)
	last.Status = statusOf(rec, job, d.Seen())
	if !last.Status.Final() { // what completed was another migration
		last.Status, last.Error = hypervisor.JobFailed, "the migration did not begin"
	}
	err := d.PutJob(true, func(j *jobRecord) { j.Stage, j.Last = stageKept, last })
	if err == nil {
		d.tellKept(job)
	}
	return err
}

// goOn lets a guest have its life on here. One that stood before the switch-over does not run on
// by itself; one that has shut down is not to.
func (d move) goOn(ctx context.Context, vm *qemu.Instance, run qemu.RunState) error {
	rec := d.Record()
	switch {
	case rec.Paused || run != qemu.Paused && run != qemu.PostMigrate:
		return nil
	case d.Off() && rec.Doing == hypervisor.Rebooting:
		return vm.SystemReset(ctx) // then it is let run
	case d.Off():
		return d.Put(false, func(r *domainRecord) { r.Ending = true })
	}
	d.Unexpect()
	return vm.Cont(ctx)
}

// tellKept tells the target's host, if it can be told, that nothing more comes.
// A target that had received everything would wait for ever to be discarded.
func (d move) tellKept(job *jobRecord) {
	m := &message{Say: verbKept, Job: job.ID, VM: d.ID}
	d.Node.Running.Go(func() {
		_ = d.tell(d.Node.Life, nil, m, job.Address) // it is a kindness
	})
}

// giveUp ends a job whose transfer has not begun, or whose disks cannot be copied.
func (d move) giveUp(ctx context.Context, vm *qemu.Instance, as hypervisor.JobStatus) error {
	d.HangUp()
	job := d.Node.Job(d.Record().Job)
	if job.Cancelled {
		as = hypervisor.JobCancelled
	}
	var why string
	if len(job.VM.LocalDisks()) > 0 {
		ms, err := vm.Mirrors(ctx, job.VM)
		for _, m := range ms {
			if m.Error != "" {
				why += fmt.Sprintf("copy %s: %s ", m.ID, m.Error)
			}
		}
		if err = errors.Join(err, vm.DropMirrors(ctx, d.Record().VM)); err != nil {
			return err
		}
	}
	if job.Stage == stageSending && !job.Cold {
		if m, err := vm.QueryMigrate(ctx); err == nil && m.Status == qemu.PreSwitchover {
			return vm.MigrateCancel(ctx) // then stepKeepAtSource is next
		}
	}
	if job.GuestPaused && !d.Record().Paused {
		d.Unexpect()
		if err := vm.Cont(ctx); err != nil {
			return err
		}
	}
	err := d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last.Status, j.Last.Error = stageKept, as, why
	})
	if err == nil {
		d.tellKept(job)
	}
	if job.Cold {
		return errors.Join(err, d.endCold(ctx, vm))
	}
	return err
}

// announce tells the target's host that the guest has stopped for good, so long
// ago, until it has heard. The outcome counts as unknown when it cannot be told, and as known
// again when it can.
func (d move) announce(stood time.Duration) {
	rec, job, _ := d.Present()
	ctx, cancel := context.WithCancel(d.Node.Life)
	conn, began := d.Link, time.Now()
	d.Link, d.Announcing = nil, cancel
	m := &message{Say: verbStopped, Job: job.ID, VM: d.ID, Downtime: stood,
		Paused: rec.Paused || job.Options.StartPaused, Failed: strandedSource(job, d.Seen())}
	d.Node.Running.Go(func() {
		defer cancel()
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			err := d.tell(ctx, conn, m, job.Address)
			conn = nil
			if ctx.Err() != nil {
				return
			}
			m.Downtime = stood + time.Since(began)
			final := d.told(ctx, err, time.Since(began) > d.Node.TargetTimeout)
			if final {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
	})
}

// stood is for how long the guest has stood for the switch-over.
func (d move) stood(m qemu.Migration) time.Duration {
	told := time.Duration(m.Downtime) * time.Millisecond
	if _, job, _ := d.Present(); !job.Parked.IsZero() {
		return max(told, time.Since(job.Parked))
	}
	return told
}

// tell says it once, over conn if there is one.
func (d move) tell(ctx context.Context, conn *peerConn, m *message,
	address hypervisor.Address) error {
	ctx, cancel := context.WithTimeout(ctx, d.Node.Timeout)
	defer cancel()
	var err error
	if conn == nil {
		if conn, err = d.Node.Reach(ctx, address); err != nil {
			return err
		}
	}
	defer conn.Close()
	answer, err := conn.Ask(ctx, m)
	if err != nil {
		return qemu.Refuse(hypervisor.Transient, "tell the target's host: %v", err)
	}
	return answer.Err()
}

// told notes what has become of the announcement, and reports whether no other is
// needed.
func (d move) told(ctx context.Context, err error, late bool) (final bool) {
	_, release, held := d.Node.Lock(ctx, d.ID)
	if held != nil {
		return true
	}
	defer release()
	rec, job, _ := d.Present()
	refused := err != nil && qemu.Classify(err) == hypervisor.Conflict
	switch {
	case rec == nil || job == nil || job.Stage != stageSending || ctx.Err() != nil:
		return true
	case err == nil:
		l, m, _ := d.Look(ctx) // without it the figures are missing, nothing else
		last := progress(job, m, d.Node.QEMU.Encrypts(job.Options) != nil)
		mirrored(&last, job, l.Mirrors)
		last.Status = hypervisor.JobSucceeded
		if modeOf(job, d.Seen()) == hypervisor.PostCopy {
			last.Status = hypervisor.JobActive
		}
		err = d.PutJob(true, func(j *jobRecord) { j.Acknowledged, j.Last = true, last })
		if err == nil && rec.Unresolved {
			err = d.Put(true, func(r *domainRecord) { r.Unresolved = false })
		}
		d.Trigger()
		return err == nil
	case (refused || late) && !rec.Unresolved:
		_ = d.PutJob(true, func(j *jobRecord) { j.Last.Error = qemu.Text(err) }) // for people
		_ = d.Put(true, func(r *domainRecord) { r.Unresolved = true })           // tried again
	}
	return false
}
