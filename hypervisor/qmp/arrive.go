//go:build linux

package qmp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// receive opens a target. It answers Conflict for a VM that the host runs or
// keeps and for a job that it was told to discard, NoRoom when the VM does not
// fit, Invalid when QEMU does not take it. The caller holds the domain's lock.
func receive(ctx context.Context, of *domain, in hypervisor.Incoming,
) (hypervisor.Address, error) {
	d := move{of}
	h := d.Node
	if in.Job == "" || in.VM.ID == "" {
		return "", qemu.Refuse(hypervisor.Invalid, "a job and a VM must be named: %+v", in)
	}
	f, err := d.Find(ctx)
	if err != nil {
		return "", err
	}
	old, named := h.Job(in.Job), f.Rec != nil && f.Rec.Job == in.Job
	if old != nil && old.VM.ID == d.ID && old.Stage == stageListening && !named {
		old = nil // we died after noting the job and before its domain
	}
	switch {
	case old != nil && old.Refused:
		return "", qemu.Refuse(hypervisor.Conflict, "job %s was discarded", in.Job)
	case old != nil && (old.Role != backend.Target || !old.VM.Equal(in.VM) || old.Hold != in.Hold):
		return "", qemu.Refuse(hypervisor.Conflict, "job %s is another migration", in.Job)
	case old != nil && named && occupies(f.State):
		return d.address(old), nil
	case old != nil:
		return "", qemu.Refuse(hypervisor.Conflict, "job %s has ended here: %v", in.Job,
			old.Last.Status)
	case occupies(f.State):
		return "", qemu.Refuse(hypervisor.Conflict, "it is %v here", f.State)
	}
	return d.open(ctx, in)
}

// open starts a QEMU that waits for the VM.
func (d move) open(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	h := d.Node
	before := d.Record()
	if err := errors.Join(h.Check(in.VM), d.NoDisks(in.VM)); err != nil {
		return "", err
	}
	if err := h.Reserve(in.VM, nil); err != nil {
		return "", err
	}
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	job := &jobRecord{Job: backend.Job[stage]{ID: in.Job, VM: in.VM, Role: backend.Target,
		Stage: stageListening, Hold: in.Hold, Token: hex.EncodeToString(secret),
		Started: time.Now().UTC(), Last: hypervisor.Progress{Job: in.Job, Total: in.VM.Memory,
			Disks: in.VM.LocalSize()}}}
	rec := &domainRecord{Domain: backend.Domain{VM: in.VM, Job: in.Job}, Before: before,
		Rest: hypervisor.Shutoff, Boot: h.Boot}
	err := errors.Join(h.PutJob(job, true), d.Set(rec, true))
	if err == nil {
		err = d.MakeDisks(ctx, in.VM)
	}
	var vm *qemu.Instance
	if err == nil {
		vm, err = h.QEMU.Launch(ctx, in.VM, true)
	}
	if err != nil {
		return "", errors.Join(err, d.DropDisks(in.VM), h.ForgetJob(job.ID), d.Undo(before))
	}
	d.Attach(vm)
	return d.address(job), nil
}

// address returns where sources of a job find this host, and how they show that
// they are one.
func (d move) address(j *jobRecord) hypervisor.Address {
	u := d.Node.Here
	u.RawQuery = url.Values{"token": {j.Token}}.Encode()
	return hypervisor.Address(u.String())
}

// digest stands for a VM's description, to compare it across hosts.
func digest(vm hypervisor.VM) string {
	if vm.Hardware == nil {
		vm.Hardware = &hypervisor.Hardware{}
	}
	text, err := json.Marshal(vm)
	if err != nil {
		panic("qmp: a VM is nothing but words and numbers: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// hear answers what a source says about a job. The caller holds the domain's lock.
func hear(ctx context.Context, of *domain, m *message) (handoverAnswer, error) {
	var none handoverAnswer
	d := move{of}
	rec, job, vm := d.Present()
	j := d.Node.Job(m.Job)
	if m.Say == verbStopped && rec != nil && j != nil && j.Stage.MayHaveRun() {
		return none, nil // it was heard before
	}
	switch {
	case rec == nil || job == nil || job.ID != m.Job || job.Role != backend.Target ||
		!job.Stage.Live():
		if m.Say == verbPrepare {
			return none, qemu.Refuse(hypervisor.Transient,
				"nothing listens for job %s any more", m.Job)
		}
		return none, qemu.Refuse(hypervisor.Conflict, "the target's host expects it no more")
	case m.Say == verbStopped:
		return none, d.hearStopped(ctx, m)
	case m.Say == verbKept:
		return none, d.hearKept(ctx, job, vm)
	case vm == nil:
		return none, qemu.Refuse(hypervisor.Transient, "the target's QEMU is being looked for")
	case m.Say == verbPrepare:
		return d.prepare(ctx, m, vm)
	}
	return none, qemu.Refuse(hypervisor.Unsupported, "message %q is not known here", m.Say)
}

// hearStopped notes that the source has stopped for good, and performs the next steps
// then.
func (d move) hearStopped(ctx context.Context, m *message) error {
	job, vm := d.Node.Job(m.Job), d.Process()
	heard := func(j *jobRecord) {
		j.Stopped, j.Resting, j.Last.Downtime = true, m.Paused, m.Downtime
		j.Heard = time.Now()
	}
	switch {
	case job.Stopped:
	case m.Failed && !d.whole(ctx):
		return qemu.Refuse(hypervisor.Conflict, "not all of the VM is here, and its source can "+
			"send no more: discard this target, and the source can resume")
	case vm != nil && !vm.Ended() && !job.Hold && d.Seen().Complete():
		return d.letArrive(ctx, vm, heard) // the guest waits: no other look, no other note
	default:
		if err := d.PutJob(false, heard); err != nil {
			return err
		}
	}
	d.Settle(ctx)
	switch j := d.Node.Job(m.Job); {
	case j.Stage == stageDiscarded:
		return qemu.Refuse(hypervisor.Conflict, "the target ended before it ran: %s", j.Last.Error)
	case j.Stage == stageListening && !j.Hold && (j.Cold || d.Seen().Complete()):
		return qemu.Refuse(hypervisor.Transient, "that the VM is here could not be noted")
	}
	d.Trigger() // its deadline may have changed
	return nil
}

// whole reports whether an incoming QEMU has everything of its VM.
func (d move) whole(ctx context.Context) bool {
	l, _, err := d.Look(ctx)
	return err == nil && l.Complete()
}

// hearKept ends a target whose source has kept the VM. One that was told before
// that its source had stopped for good hears it no more.
func (d move) hearKept(ctx context.Context, job *jobRecord, vm *qemu.Instance) error {
	if job.Stage != stageListening || job.Stopped {
		return qemu.Refuse(hypervisor.Conflict, "the source has stopped for good")
	}
	err := d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Last.Status = stageDiscarded, hypervisor.JobFailed
		j.Last.Error = "the source kept the VM"
	})
	return errors.Join(err, d.vanish(ctx, vm))
}

// prepare makes the target's QEMU listen, or answers where it does already.
func (d move) prepare(ctx context.Context, m *message, vm *qemu.Instance,
) (handoverAnswer, error) {
	job := d.Node.Job(m.Job)
	answer := func(p *prepared) (handoverAnswer, error) {
		return handoverAnswer{URI: p.URI, Disks: p.Disks}, nil
	}
	now, err := vm.QueryMigrate(ctx)
	switch {
	case err != nil:
		return handoverAnswer{}, qemu.Observing(err)
	case m.Machine != digest(d.Node.QEMU.Resolved(job.VM)):
		return handoverAnswer{}, qemu.Refuse(hypervisor.Invalid,
			"the target was opened for another description of the VM: they must be equal")
	case job.Prepared != nil && postcopy(now.Status):
		return d.prepareAgain(ctx, vm, now.Status)
	case m.Cold && job.Hold:
		return handoverAnswer{}, qemu.Refuse(hypervisor.Conflict,
			"the target was opened to be held: a VM at rest has nothing to hold")
	case job.Prepared != nil && job.Prepared.Options != m.Options || job.Stopped:
		return handoverAnswer{}, qemu.Refuse(hypervisor.Conflict,
			"the target was prepared before")
	case job.Prepared != nil:
		return answer(job.Prepared)
	}
	p := &prepared{Options: m.Options}
	if m.Cold {
		err = vm.Encrypt(ctx, qemu.AtTarget, m.Options, nil)
	} else {
		p.URI, err = d.listenForMemory(ctx, vm, m.Options, now)
	}
	if err != nil {
		return handoverAnswer{}, err
	}
	p.Disks, err = vm.ListenForDisks(ctx, d.Record().VM, d.Node.Listen)
	if err != nil {
		return handoverAnswer{}, err
	}
	if p.Disks != "" {
		p.Disks = d.Node.Advertise(p.Disks)
	}
	err = d.PutJob(false, func(j *jobRecord) {
		j.Prepared, j.Cold, j.Resting, j.Source = p, m.Cold, m.Paused, m.From
	})
	if err != nil {
		return handoverAnswer{}, err
	}
	return answer(p)
}

// listenForMemory opens the migration's socket of a QEMU and returns where it is.
func (d move) listenForMemory(ctx context.Context, vm *qemu.Instance,
	o hypervisor.TransferOptions, now qemu.Migration) (string, error) {
	if err := vm.Configure(ctx, o, qemu.AtTarget, false); err != nil {
		return "", err
	}
	if len(now.Sockets) == 0 { // else it does so already, and we died before we noted it
		uri := "unix:" + qemu.MigrationSocket(d.Node.QEMU.Settings(d.ID))
		if d.Node.Listen != "" {
			uri = "tcp:" + net.JoinHostPort(d.Node.Listen, "0")
		}
		d.Expect(vm, backend.Target)
		err := vm.MigrateIncoming(ctx, uri)
		if err == nil {
			now, err = vm.QueryMigrate(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	return d.uri(now.Sockets)
}

// uri returns where QEMU said that it listens.
func (d move) uri(sockets []qemu.Socket) (string, error) {
	for _, s := range sockets {
		switch s.Type {
		case "inet":
			return d.Node.Advertise("tcp:" + net.JoinHostPort(d.Node.Listen, s.Port)), nil
		case "unix":
			return d.Node.Advertise("unix:" + s.Path), nil
		}
	}
	return "", qemu.Refuse(hypervisor.Unsupported,
		"the target's QEMU does not say where it listens")
}

// prepareAgain makes the QEMU of a broken post-copy listen for the rest of its
// memory.
func (d move) prepareAgain(ctx context.Context, vm *qemu.Instance, status qemu.MigrationStatus,
) (handoverAnswer, error) {
	if status == qemu.PostcopyActive { // its source knows better
		if err := d.breakOff(ctx, vm); err != nil {
			return handoverAnswer{}, err
		}
	}
	uri := "unix:" + qemu.MigrationSocket(d.Node.QEMU.Settings(d.ID))
	if listen := d.Node.Listen; listen != "" {
		port, err := qemu.FreePort(listen)
		if err != nil {
			return handoverAnswer{}, err
		}
		uri = "tcp:" + net.JoinHostPort(listen, strconv.Itoa(port))
	}
	err := vm.Client.ExecuteOOB(ctx, "migrate-recover", map[string]any{"uri": uri}, nil)
	if _, refused := errors.AsType[*qemu.Error](err); refused && broke(status) && status != qemu.PostcopyPaused {
		return handoverAnswer{}, qemu.Refuse(hypervisor.Conflict,
			"it is being recovered: %w", err)
	}
	return handoverAnswer{URI: d.Node.Advertise(uri)}, err
}

// findsOut is how long a target takes at most to find that its source has given the connection
// up, if it can hear that.
const findsOut = 2 * time.Second

// breakOff ends the connection of a post-copy whose source has given it up. The target finds out
// by itself, as a rule just now; then it must not be told: a QEMU that pauses by itself and by
// command at once crashes, with the only memory of its VM.
// Source: QEMU 7.2 migration/migration.c (qmp_migrate_pause), savevm.c (postcopy_pause_incoming).
func (d move) breakOff(ctx context.Context, vm *qemu.Instance) error {
	brief, cancel := context.WithTimeout(ctx, findsOut)
	defer cancel()
	if d.await(brief, vm, qemu.PostcopyPaused, true) == nil {
		return nil
	}
	return d.pausePostcopy(ctx, vm)
}

// letArrive lets the guest of a target run: it has everything, and its source has
// stopped for good. That it may run is written first, with what was heard.
func (d move) letArrive(ctx context.Context, vm *qemu.Instance, heard func(*jobRecord)) error {
	seen := d.Seen()
	// Of the few notes that must outlast a loss of power this one costs downtime: a
	// guest that ran must never count as one that did not.
	err := d.PutJob(true, func(j *jobRecord) {
		heard(j)
		j.Stage, j.Last.Status = stageActivating, hypervisor.JobSucceeded
		if !seen.Complete() {
			j.Last.Status, j.Last.Mode = hypervisor.JobActive, hypervisor.PostCopy
		}
	})
	if err != nil {
		return err
	}
	rests := d.Node.Job(d.Record().Job).Resting
	if len(d.Record().VM.LocalDisks()) > 0 {
		_ = vm.NBDStop(ctx) // it has stopped already if we died meanwhile
	}
	if !rests {
		if err := vm.Cont(ctx); err != nil {
			return err
		}
	}
	now := time.Now()
	err = d.Put(true, func(r *domainRecord) {
		r.Own, r.Ran, r.Paused, r.Before = true, true, rests, nil
	})
	if err != nil {
		return err // as long as the job is Activating, all of this is done again
	}
	err = d.PutJob(true, func(j *jobRecord) {
		j.Stage = stageArrived
		if !j.Heard.IsZero() {
			j.Last.Downtime += now.Sub(j.Heard)
		}
	})
	return errors.Join(err, vm.Pin(ctx, d.Record().VM))
}

// arriveCold keeps a VM that has come at rest.
func (d move) arriveCold(ctx context.Context, vm *qemu.Instance) error {
	err := d.PutJob(true, func(j *jobRecord) { // first of all: from now on it stays
		j.Stage, j.Last.Status = stageArrived, hypervisor.JobSucceeded
	})
	if err != nil {
		return err
	}
	err = d.Put(true, func(r *domainRecord) { r.Own, r.Ending, r.Before = true, true, nil })
	if err != nil || len(d.Record().VM.LocalDisks()) == 0 {
		return errors.Join(err, vm.Kill(ctx))
	}
	return errors.Join(vm.NBDStop(ctx), vm.Kill(ctx)) // what was written is flushed first
}
