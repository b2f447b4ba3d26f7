package qmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// Migrate begins to send a VM. It answers Transient when the target's host cannot
// be reached, and Conflict for a VM that cannot be sent now. One that is Shutoff
// moves cold.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	d, release, err := h.hold(ctx, out.VM)
	if err != nil {
		return h.explain("Migrate", out.VM, err)
	}
	defer release()
	return h.explain("Migrate", out.VM, d.migrate(ctx, out))
}

func (d *domain) migrate(ctx context.Context, out hypervisor.Outgoing) error {
	h := d.host
	if out.Job == "" {
		return refuse(hypervisor.Invalid, "the job has no name")
	}
	if err := h.checkOptions(out.Options); err != nil {
		return err
	}
	if old := h.job(out.Job); old != nil {
		if old.Role == journal.Source && old.VM.ID == out.VM {
			return nil
		}
		return refuse(hypervisor.Conflict, "job %s is another migration", out.Job)
	}
	rec, job, vm := d.present()
	if rec == nil {
		return refuse(hypervisor.NotFound, "no such VM")
	}
	l, m, err := d.look(ctx)
	if err != nil {
		return observing(err)
	}
	state := life.State(rec, job, l)
	switch {
	case job != nil && job.Role == journal.Source && (job.Stage == journal.Sending ||
		job.Stage == journal.Mirroring):
		return refuse(hypervisor.Conflict, "job %s is under way", job.ID)
	case len(m.Blocked) > 0:
		return refuse(hypervisor.Conflict, "QEMU cannot move it: %s", strings.Join(m.Blocked, "; "))
	case state == hypervisor.Shutoff:
		return d.migrateCold(ctx, out)
	case state == hypervisor.Running || state == hypervisor.Paused ||
		state == hypervisor.Rebooting:
		return d.migrateLive(ctx, out, vm, state == hypervisor.Paused)
	}
	return refuse(hypervisor.Conflict, "it is %v", state)
}

// newJob is what is kept of a job that this host sends.
func (d *domain) newJob(out hypervisor.Outgoing) *journal.Job {
	now := time.Now().UTC()
	return &journal.Job{ID: out.Job, VM: d.record().VM, Role: journal.Source,
		Stage: journal.Sending, Started: now, Target: out.Target, Address: out.Address,
		Options: out.Options, Last: hypervisor.Progress{Job: out.Job, Started: now,
			Total: d.record().VM.Memory}}
}

// migrateLive agrees with the target's host how it will be done, and begins.
func (d *domain) migrateLive(ctx context.Context, out hypervisor.Outgoing, vm *instance,
	paused bool) error {
	copies := len(locals(d.record().VM)) > 0
	answer, err := d.agree(ctx, out, handover.Message{Paused: paused || out.Options.StartPaused})
	if err != nil {
		return err
	}
	if err := vm.configure(ctx, d.host, out.Options, atSource, copies); err != nil {
		return err
	}
	job := d.newJob(out)
	job.Prepared = &journal.Prepared{Options: out.Options, URI: answer.URI, Disks: answer.Disks}
	if copies {
		job.Stage = journal.Mirroring
	}
	if err := d.enlist(job); err != nil {
		return err
	}
	if copies {
		err = d.mirror(ctx, vm, answer.Disks)
	} else {
		err = d.transfer(ctx, vm, answer.URI, false)
	}
	if err == nil || classify(err) == hypervisor.Unknown {
		d.changed()
		return err
	}
	return errors.Join(err, d.giveUp(ctx, vm, hypervisor.JobFailed))
}

// enlist notes that the domain takes part in a job, before it does.
func (d *domain) enlist(job *journal.Job) error {
	if err := d.host.putJob(job, true); err != nil {
		return err
	}
	return d.put(false, func(r *journal.Domain) { r.Job, r.Unresolved = job.ID, false })
}

// agree tells the target's host what will come, and returns where it is to go.
func (d *domain) agree(ctx context.Context, out hypervisor.Outgoing, m handover.Message,
) (*handover.Answer, error) {
	m.Say, m.Job, m.VM, m.Options = handover.Prepare, out.Job, out.VM, out.Options
	m.Machine = digest(d.host.resolved(d.record().VM))
	d.hangUp()
	conn, err := d.host.reach(ctx, out.Address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.host.config.Timeout)
	defer cancel()
	answer, err := conn.Ask(ctx, &m)
	if err != nil { // the target can be asked again: nothing has begun
		conn.Close()
		return nil, refuse(hypervisor.Transient, "ask the target's host: %v", err)
	}
	if err := answer.Err(); err != nil {
		conn.Close()
		return nil, err
	}
	d.link = conn
	return answer, nil
}

// hangUp closes the connection to the target's host.
func (d *domain) hangUp() {
	if d.announcing != nil {
		d.announcing()
		d.announcing = nil
	}
	if d.link != nil {
		d.link.Close()
		d.link = nil
	}
}

// reach connects to a target's host.
func (h *Host) reach(ctx context.Context, address hypervisor.Address) (*handover.Conn, error) {
	u, err := url.Parse(string(address))
	token := ""
	if err == nil {
		token = u.Query().Get("token")
	}
	if err != nil || token == "" || u.Scheme != "qmp" && u.Scheme != "qmp+unix" {
		return nil, refuse(hypervisor.Invalid, "%q is no address that Receive answered", address)
	}
	network, where := "tcp", u.Host
	if u.Scheme == "qmp+unix" {
		network, where = "unix", u.Path
	}
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	conn, err := h.dial(ctx, network, where)
	if err != nil {
		return nil, refuse(hypervisor.Transient, "reach the target's host: %v", err)
	}
	return handover.NewConn(conn, token), nil
}

func (h *Host) dial(ctx context.Context, network, where string) (net.Conn, error) {
	if h.config.Dial != nil {
		return h.config.Dial(ctx, network, where)
	}
	return new(net.Dialer).DialContext(ctx, network, where)
}

// transfer makes QEMU connect and send, or go on with sending. With a Dial of the
// caller's, we connect, and QEMU is given the connection.
func (d *domain) transfer(ctx context.Context, vm *instance, uri string, resume bool) error {
	if d.host.config.Dial == nil {
		return vm.Migrate(ctx, uri, resume)
	}
	network, where, _ := strings.Cut(uri, ":")
	conn, err := d.host.dial(ctx, network, where)
	if err != nil {
		return refuse(hypervisor.Transient, "connect to the target: %v", err)
	}
	defer conn.Close() // QEMU has its own copy
	f, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return refuse(hypervisor.Unsupported, "a connection of type %T cannot be passed on", conn)
	}
	file, err := f.File()
	if err != nil {
		return refuse(hypervisor.Transient, "pass on the connection: %v", err)
	}
	defer file.Close()
	if err := vm.client.SendFile(ctx, "migration", file); err != nil {
		return err
	}
	return vm.Migrate(ctx, "fd:migration", resume)
}

// send begins with the memory when the disks are copied. Cold, there is none.
func (d *domain) send(ctx context.Context, vm *instance) error {
	if err := d.putJob(false, func(j *journal.Job) { j.Stage = journal.Sending }); err != nil {
		return err
	}
	job := d.host.job(d.record().Job)
	if job.Cold {
		return nil
	}
	return d.transfer(ctx, vm, job.Prepared.URI, false)
}

// keep notes that the transfer has ended and the VM stays here.
func (d *domain) keep(ctx context.Context, vm *instance, m qapi.Migration) error {
	d.hangUp()
	rec, job, _ := d.present()
	if len(locals(rec.VM)) > 0 {
		if err := d.dropMirrors(ctx, vm); err != nil {
			return err
		}
	}
	if job.GuestPaused && !rec.Paused {
		if err := vm.Cont(ctx); err != nil {
			return err
		}
	}
	last := progress(job, m)
	last.Status = hypervisor.JobFailed
	if m.Status == qapi.Cancelled {
		last.Status = hypervisor.JobCancelled
	}
	return d.putJob(true, func(j *journal.Job) { j.Stage, j.Last = journal.Kept, last })
}

// giveUp ends a job whose transfer has not begun, or whose disks cannot be copied.
func (d *domain) giveUp(ctx context.Context, vm *instance, as hypervisor.JobStatus) error {
	d.hangUp()
	job := d.host.job(d.record().Job)
	var why string
	if len(locals(job.VM)) > 0 {
		ms, err := vm.mirrors(ctx, job.VM)
		for _, m := range ms {
			if m.Error != "" {
				why += fmt.Sprintf("copy %s: %s ", m.ID, m.Error)
			}
		}
		if err = errors.Join(err, d.dropMirrors(ctx, vm)); err != nil {
			return err
		}
	}
	if job.Stage == journal.Sending && !job.Cold {
		if m, err := vm.QueryMigrate(ctx); err == nil && m.Status == qapi.PreSwitchover {
			return vm.MigrateCancel(ctx) // then Keep is due
		}
	}
	err := d.putJob(true, func(j *journal.Job) {
		j.Stage, j.Last.Status, j.Last.Error = journal.Kept, as, why
	})
	if job.Cold {
		return errors.Join(err, d.endCold(ctx, vm))
	}
	return err
}

// announce tells the target's host that the guest has stopped for good, so long
// ago, until it has heard. The outcome counts as unknown when it cannot be told, and as known
// again when it can.
func (d *domain) announce(stood time.Duration) {
	rec, job, _ := d.present()
	ctx, cancel := context.WithCancel(d.host.life)
	conn, began := d.link, time.Now()
	d.link, d.announcing = nil, cancel
	m := &handover.Message{Say: handover.Stopped, Job: job.ID, VM: d.id, Downtime: stood,
		Paused: rec.Paused || job.Options.StartPaused}
	d.host.running.Go(func() {
		defer cancel()
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, again) {
			err := d.tell(ctx, conn, m, job.Address)
			conn = nil
			if ctx.Err() != nil {
				return
			}
			m.Downtime = stood + time.Since(began)
			final := d.told(ctx, err, time.Since(began) > d.host.config.Patience)
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

// tell says it once, over conn if there is one.
func (d *domain) tell(ctx context.Context, conn *handover.Conn, m *handover.Message,
	address hypervisor.Address) error {
	ctx, cancel := context.WithTimeout(ctx, d.host.config.Timeout)
	defer cancel()
	var err error
	if conn == nil {
		if conn, err = d.host.reach(ctx, address); err != nil {
			return err
		}
	}
	defer conn.Close()
	answer, err := conn.Ask(ctx, m)
	if err != nil {
		return refuse(hypervisor.Transient, "tell the target's host: %v", err)
	}
	return answer.Err()
}

// told notes what has become of the announcement, and reports whether no other is
// needed.
func (d *domain) told(ctx context.Context, err error, late bool) (final bool) {
	_, release, held := d.host.hold(ctx, d.id)
	if held != nil {
		return true
	}
	defer release()
	rec, job, _ := d.present()
	refused := err != nil && classify(err) == hypervisor.Conflict
	switch {
	case rec == nil || job == nil || job.Stage != journal.Sending || ctx.Err() != nil:
		return true
	case err == nil:
		err = d.putJob(true, func(j *journal.Job) { j.Acknowledged = true })
		if err == nil && rec.Unresolved {
			err = d.put(true, func(r *journal.Domain) { r.Unresolved = false })
		}
		d.changed()
		return err == nil
	case (refused || late) && !rec.Unresolved:
		_ = d.putJob(true, func(j *journal.Job) { j.Last.Error = err.Error() }) // for people
		_ = d.put(true, func(r *journal.Domain) { r.Unresolved = true })        // tried again
	}
	return false
}
