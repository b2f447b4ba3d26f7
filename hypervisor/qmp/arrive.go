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
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// Receive opens a target. It answers Conflict for a VM that the host runs or
// keeps and for a job that it was told to discard, NoRoom when the VM does not
// fit, Invalid when QEMU does not take it.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	d, release, err := h.hold(ctx, in.VM.ID)
	if err != nil {
		return "", h.explain("Receive", in.VM.ID, err)
	}
	defer release()
	address, err := d.receive(ctx, in)
	return address, h.explain("Receive", in.VM.ID, err)
}

func (d *domain) receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	h := d.host
	if in.Job == "" || in.VM.ID == "" {
		return "", refuse(hypervisor.Invalid, "a job and a VM must be named: %+v", in)
	}
	l, _, err := d.look(ctx)
	if err != nil {
		return "", observing(err)
	}
	rec, _, _ := d.present()
	state := hypervisor.Absent
	if rec != nil {
		state = life.State(rec, h.job(rec.Job), l)
	}
	old := h.job(in.Job)
	switch {
	case old != nil && old.Refused:
		return "", refuse(hypervisor.Conflict, "job %s was discarded", in.Job)
	case old != nil && (old.Role != journal.Target || !old.VM.Equal(in.VM) || old.Hold != in.Hold):
		return "", refuse(hypervisor.Conflict, "job %s is another migration", in.Job)
	case old != nil && rec != nil && rec.Job == in.Job && state != hypervisor.Shutoff:
		return h.address(old), nil
	case old != nil:
		return "", refuse(hypervisor.Conflict, "job %s has ended here: %v", in.Job,
			old.Last.Status)
	case occupies(state):
		return "", refuse(hypervisor.Conflict, "it is %v here", state)
	}
	return d.open(ctx, in)
}

// occupies reports whether a domain in the state has memory and CPUs of its host.
func occupies(s hypervisor.DomainState) bool {
	return s != hypervisor.Absent && s != hypervisor.Shutoff && s != hypervisor.Crashed
}

// open starts a QEMU that waits for the VM.
func (d *domain) open(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	h := d.host
	before := d.record()
	if err := h.check(in.VM); err != nil {
		return "", err
	}
	if err := h.reserve(d, in.VM); err != nil {
		return "", err
	}
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	job := &journal.Job{ID: in.Job, VM: in.VM, Role: journal.Target, Stage: journal.Listening,
		Hold: in.Hold, Token: hex.EncodeToString(secret), Started: time.Now().UTC(),
		Last: hypervisor.Progress{Job: in.Job, Total: in.VM.Memory}}
	rec := &journal.Domain{VM: in.VM, Own: before != nil && before.Own, Rest: hypervisor.Shutoff,
		Job: in.Job, Boot: h.boot}
	err := errors.Join(h.putJob(job, true), d.set(rec, true))
	if err == nil {
		err = d.makeDisks(ctx, in.VM, true)
	}
	var vm *instance
	if err == nil {
		vm, err = h.launch(ctx, in.VM, true)
	}
	if err != nil {
		return "", errors.Join(err, d.undo(before, job))
	}
	d.attach(vm)
	return h.address(job), nil
}

// undo puts back what there was before an operation that failed as a whole.
func (d *domain) undo(before *journal.Domain, job *journal.Job) error {
	d.host.unreserve(d)
	var bad error
	if job != nil {
		bad = d.host.forgetJob(job.ID)
	}
	if before == nil {
		return errors.Join(bad, d.remove())
	}
	return errors.Join(bad, d.set(before, true))
}

// address returns where sources of a job find this host, and how they show that
// they are one.
func (h *Host) address(j *journal.Job) hypervisor.Address {
	u := url.URL{Scheme: "qmp+unix", Path: h.server.Addr().String()}
	if h.config.Listen != "" {
		u = url.URL{Scheme: "qmp", Host: h.server.Addr().String(), Path: "/"}
	}
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

// hear answers a source.
func (h *Host) hear(m *handover.Message) handover.Answer {
	ctx, cancel := context.WithTimeout(h.life, h.config.Timeout)
	defer cancel()
	answer, err := h.hearHeld(ctx, m)
	if err != nil {
		return handover.Answer{Refused: err.Error(), Kind: classify(err)}
	}
	return answer
}

func (h *Host) hearHeld(ctx context.Context, m *handover.Message) (handover.Answer, error) {
	var none handover.Answer
	d, release, err := h.hold(ctx, m.VM)
	if err != nil {
		return none, err
	}
	defer release()
	rec, job, vm := d.present()
	if j := h.job(m.Job); m.Say == handover.Stopped && j.Stage == journal.Activating {
		return none, nil // it was heard before
	}
	switch {
	case rec == nil || job == nil || job.ID != m.Job || job.Role != journal.Target ||
		!job.Stage.Live():
		return none, refuse(hypervisor.Conflict, "the target's host expects it no more")
	case m.Say == handover.Stopped:
		return none, d.hearStopped(ctx, m)
	case vm == nil:
		return none, refuse(hypervisor.Transient, "the target's QEMU is being looked for")
	case m.Say == handover.Prepare:
		return d.prepare(ctx, m, vm)
	}
	return none, refuse(hypervisor.Unsupported, "message %q is not known here", m.Say)
}

// hearStopped notes that the source has stopped for good, and does what is due
// then.
func (d *domain) hearStopped(ctx context.Context, m *handover.Message) error {
	job := d.host.job(m.Job)
	if !job.Stopped {
		err := d.putJob(false, func(j *journal.Job) {
			j.Stopped, j.Resting, j.Last.Downtime = true, m.Paused, m.Downtime
			j.Heard = time.Now().UTC()
		})
		if err != nil {
			return err
		}
	}
	d.settleHeld(ctx)
	if j := d.host.job(m.Job); j.Stage == journal.Discarded {
		return refuse(hypervisor.Conflict, "the target ended before it ran: %s", j.Last.Error)
	}
	d.changed() // look again when it is due
	return nil
}

// prepare makes the target's QEMU listen, or answers where it does already.
func (d *domain) prepare(ctx context.Context, m *handover.Message, vm *instance,
) (handover.Answer, error) {
	job := d.host.job(m.Job)
	answer := func(p *journal.Prepared) (handover.Answer, error) {
		return handover.Answer{URI: p.URI, Disks: p.Disks}, nil
	}
	now, err := vm.QueryMigrate(ctx)
	switch {
	case err != nil:
		return handover.Answer{}, observing(err)
	case m.Machine != digest(d.host.resolved(job.VM)):
		return handover.Answer{}, refuse(hypervisor.Invalid,
			"the target was opened for another description of the VM: they must be equal")
	case job.Prepared != nil && postcopy(now.Status):
		return d.prepareAgain(ctx, vm, now.Status)
	case job.Prepared != nil && job.Prepared.Options != m.Options || job.Stopped:
		return handover.Answer{}, refuse(hypervisor.Conflict, "the target was prepared before")
	case job.Prepared != nil:
		return answer(job.Prepared)
	}
	p := &journal.Prepared{Options: m.Options}
	if !m.Cold {
		if p.URI, err = d.listenForMemory(ctx, vm, m.Options, now); err != nil {
			return handover.Answer{}, err
		}
	}
	if p.Disks, err = d.listenForDisks(ctx, vm); err != nil {
		return handover.Answer{}, err
	}
	err = d.putJob(false, func(j *journal.Job) {
		j.Prepared, j.Cold, j.Resting = p, m.Cold, m.Paused
	})
	if err != nil {
		return handover.Answer{}, err
	}
	return answer(p)
}

func postcopy(s qapi.MigrationStatus) bool {
	return s == qapi.PostcopyActive || s == qapi.PostcopyPaused || s == qapi.PostcopyRecover
}

// listenForMemory opens the migration's socket of a QEMU and returns where it is.
func (d *domain) listenForMemory(ctx context.Context, vm *instance,
	o hypervisor.TransferOptions, now qapi.Migration) (string, error) {
	if err := vm.configure(ctx, d.host, o, atTarget, false); err != nil {
		return "", err
	}
	if len(now.Sockets) == 0 { // else it does so already, and we died before we noted it
		uri := "unix:" + migrationSocket(d.host.settings(d.id))
		if d.host.config.Listen != "" {
			uri = "tcp:" + net.JoinHostPort(d.host.config.Listen, "0")
		}
		err := vm.MigrateIncoming(ctx, uri)
		if err == nil {
			now, err = vm.QueryMigrate(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	return d.host.uri(now.Sockets)
}

// uri returns where QEMU said that it listens.
func (h *Host) uri(sockets []qapi.Socket) (string, error) {
	for _, s := range sockets {
		switch s.Type {
		case "inet":
			return "tcp:" + net.JoinHostPort(h.config.Listen, s.Port), nil
		case "unix":
			return "unix:" + s.Path, nil
		}
	}
	return "", refuse(hypervisor.Unsupported, "the target's QEMU does not say where it listens")
}

// prepareAgain makes the QEMU of a broken post-copy listen for the rest of its
// memory.
func (d *domain) prepareAgain(ctx context.Context, vm *instance, status qapi.MigrationStatus,
) (handover.Answer, error) {
	if status == qapi.PostcopyActive { // its source knows better
		if err := vm.client.ExecuteOOB(ctx, "migrate-pause", nil, nil); err != nil {
			return handover.Answer{}, err
		}
	}
	uri := "unix:" + migrationSocket(d.host.settings(d.id))
	if listen := d.host.config.Listen; listen != "" {
		port, err := freePort(listen)
		if err != nil {
			return handover.Answer{}, err
		}
		uri = "tcp:" + net.JoinHostPort(listen, strconv.Itoa(port))
	}
	err := vm.client.ExecuteOOB(ctx, "migrate-recover", map[string]any{"uri": uri}, nil)
	if _, refused := errors.AsType[*monitor.Error](err); refused && status == qapi.PostcopyRecover {
		return handover.Answer{}, refuse(hypervisor.Conflict, "it is being recovered: %w", err)
	}
	return handover.Answer{URI: uri}, err
}

// freePort finds a port for QEMU, which does not tell which one it has chosen when
// it listens for a second time.
func freePort(ip string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// letArrive lets the guest of a target run: it has everything, and its source has
// stopped for good. That it may run is written first.
func (d *domain) letArrive(ctx context.Context, vm *instance) error {
	d.mu.Lock()
	seen := d.seen
	d.mu.Unlock()
	rests := d.host.job(d.record().Job).Resting
	err := d.putJob(false, func(j *journal.Job) {
		j.Stage, j.Last.Status = journal.Activating, hypervisor.JobSucceeded
		if !seen.Complete() {
			j.Last.Status, j.Last.Mode = hypervisor.JobActive, hypervisor.PostCopy
		}
	})
	if err != nil {
		return err
	}
	err = d.put(false, func(r *journal.Domain) { r.Own, r.Ran, r.Paused = true, true, rests })
	if err != nil {
		return err
	}
	if len(locals(d.record().VM)) > 0 {
		if err := vm.NBDStop(ctx); err != nil {
			return err
		}
	}
	if !rests {
		if err := vm.Cont(ctx); err != nil {
			return err
		}
	}
	err = d.putJob(true, func(j *journal.Job) {
		if !j.Heard.IsZero() {
			j.Last.Downtime += time.Since(j.Heard)
		}
	})
	return errors.Join(err, d.put(true, func(*journal.Domain) {}), vm.pin(ctx, d.record().VM))
}

// arriveCold keeps a VM that has come at rest.
func (d *domain) arriveCold(ctx context.Context, vm *instance) error {
	err := d.putJob(true, func(j *journal.Job) {
		j.Stage, j.Last.Status = journal.Activating, hypervisor.JobSucceeded
	})
	if err != nil {
		return err
	}
	err = d.put(true, func(r *journal.Domain) { r.Own, r.Ending = true, true })
	if err != nil || len(locals(d.record().VM)) == 0 {
		return errors.Join(err, vm.kill(ctx))
	}
	return errors.Join(vm.NBDStop(ctx), vm.kill(ctx)) // what was written is flushed first
}
