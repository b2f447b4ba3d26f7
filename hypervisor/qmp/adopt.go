package qmp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/process"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// adopt reads the journal, finds the QEMUs that an earlier process has left, and
// goes on with each. It waits for none that does not answer.
func (h *Host) adopt(ctx context.Context) error {
	jobs, err := h.journal.Jobs(time.Now())
	if err != nil {
		return err
	}
	for _, j := range jobs {
		h.jobs[j.ID] = j
	}
	records, err := h.journal.Domains()
	if err != nil {
		return err
	}
	var bad []error
	for _, rec := range records {
		d, release, err := h.hold(ctx, rec.VM.ID)
		if err != nil {
			return err
		}
		d.rec = rec
		bad = append(bad, d.adopt(ctx))
		release()
	}
	return errors.Join(bad...)
}

// adopt finds the QEMU of one domain.
func (d *domain) adopt(ctx context.Context) error {
	s := d.host.settings(d.id)
	found, err := process.Find(s.Owns)
	if err != nil {
		return fmt.Errorf("look for the QEMU of %s: %w", d.id, err)
	}
	if len(found) > 1 {
		return fmt.Errorf("%d processes claim to run %s: %v: end those that do not", len(found),
			d.id, found)
	}
	var proc *process.Process
	if len(found) == 1 {
		proc, err = process.Open(found[0].Identity)
		if errors.Is(err, process.ErrGone) {
			proc, err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("take over the QEMU of %s: %w", d.id, err)
		}
	}
	if proc == nil {
		return d.adoptNothing()
	}
	d.host.keep(d)
	client, err := d.host.dialMonitor(ctx, s.QMP())
	if err != nil { // it hangs, or just begins: it is tried again and again
		c, err := monitor.Prepare(monitor.Config{Path: s.QMP(), Timeout: d.host.config.Timeout})
		if err != nil {
			return err
		}
		client = c
	}
	d.attach(&instance{QEMU: qapi.QEMU{Conn: client}, client: client, proc: proc,
		events: client.Subscribe(), gone: make(chan struct{})})
	return nil
}

// keep reserves what a VM takes that is there, whatever there is.
func (h *Host) keep(d *domain) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.memory, d.cpus = d.rec.VM.Memory, d.rec.VM.CPUs
}

// adoptNothing notes what has become of a VM without a process. What was under
// way when we died is undone.
func (d *domain) adoptNothing() error {
	rec, job, _ := d.present()
	ranHere := rec.Ran || rec.Doing != hypervisor.Absent || rec.Ending
	if ranHere || job != nil && job.Stage.Live() && !(job.Cold && job.Stage == journal.Sending) {
		if err := d.bury(); err != nil {
			return err
		}
	}
	rec, job, _ = d.present()
	if rec == nil || job == nil {
		return nil
	}
	if life.Due(rec, job, life.Look{Alive: true}, time.Now()) == life.Announce && job.Cold {
		d.announce(0)
	}
	return nil
}
