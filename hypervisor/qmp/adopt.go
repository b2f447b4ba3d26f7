//go:build linux

package qmp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// Adopt reads the journal, finds the QEMUs that an earlier process has left, and
// goes on with each. It waits for none that does not answer.
func (n *node) Adopt(ctx context.Context) error {
	jobs, err := n.Journal.Jobs(time.Now())
	if err != nil {
		return err
	}
	n.Fill(jobs, nil)
	records, err := n.Journal.Domains()
	if err != nil {
		return err
	}
	found, err := n.processes(records)
	if err != nil {
		return err
	}
	bad := make([]error, len(records))
	var adoptions sync.WaitGroup
	slots := make(chan struct{}, adoptsAtOnce)
	for i, rec := range records {
		slots <- struct{}{}
		adoptions.Go(func() { bad[i] = n.adopt(ctx, rec, found[rec.VM.ID]); <-slots })
	}
	adoptions.Wait()
	return errors.Join(bad...)
}

// adoptsAtOnce bounds how many QEMUs are looked for at the same time: each that
// hangs takes a moment.
const adoptsAtOnce = 32

// processes finds what claims to run the VMs. All are looked for at once: there may be many
// of both.
func (n *node) processes(records []*domainRecord) (map[hypervisor.VMID][]qemu.Found, error) {
	owners := make(map[string]hypervisor.VMID, len(records))
	for _, rec := range records {
		owners[n.QEMU.Settings(rec.VM.ID).PIDFile()] = rec.VM.ID
	}
	all, err := qemu.Find(func(argv []string) bool { return owners[qemu.Owned(argv)] != "" })
	if err != nil {
		return nil, fmt.Errorf("look for QEMUs: %w", err)
	}
	found := map[hypervisor.VMID][]qemu.Found{}
	for _, f := range all {
		vm := owners[qemu.Owned(f.Args)]
		found[vm] = append(found[vm], f)
	}
	return found, nil
}

// adopt goes on with one domain, and with what claims to run it.
func (n *node) adopt(ctx context.Context, rec *domainRecord, found []qemu.Found) error {
	d, release, err := n.Lock(ctx, rec.VM.ID)
	if err != nil {
		return err
	}
	defer release()
	d.mu.Lock()
	d.rec = rec
	d.mu.Unlock()
	return d.adopt(ctx, found)
}

// adopt takes over the QEMU of one domain.
func (d *domain) adopt(ctx context.Context, found []qemu.Found) (err error) {
	if len(found) > 1 {
		return fmt.Errorf("%d processes claim to run %s: %v: end those that do not", len(found),
			d.ID, found)
	}
	var proc *qemu.Process
	if len(found) == 1 {
		proc, err = qemu.Open(found[0].Identity)
		if errors.Is(err, qemu.ErrGone) {
			proc, err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("take over the QEMU of %s: %w", d.ID, err)
		}
	}
	if proc == nil {
		return d.adoptNothing(ctx)
	}
	d.Node.Keep(d.Record().VM)
	in, err := d.Node.QEMU.Adopt(ctx, d.ID, proc)
	if err != nil {
		return err
	}
	d.Attach(in)
	return nil
}

// adoptNothing notes what has become of a VM without a process. What was under
// way when we died is undone. One that is not the host's own never was here, or is
// no more.
func (d *domain) adoptNothing(ctx context.Context) error {
	rec, job, _ := d.Present()
	due := !rec.Own || rec.Ran || rec.Doing != hypervisor.Absent || rec.Ending
	if due || job != nil && job.Stage.Live() && !(job.Cold && job.Stage == stageSending) {
		if err := d.Reap(); err != nil {
			return d.unlessGone(err)
		}
	}
	rec, job, _ = d.Present()
	if rec == nil || job == nil || !job.Cold || !job.Owes() || d.Announcing != nil {
		return nil
	}
	return d.move(ctx, stepAnnounce, qemu.Migration{})
}

// unlessGone lets the host be opened whose VM is gone, and something that is left of it cannot
// be removed: that is tried again when it is released, or when its place is needed.
func (d *domain) unlessGone(err error) error {
	if rec, job, _ := d.Present(); missed(rec, job, look{}) {
		return nil
	}
	return err
}
