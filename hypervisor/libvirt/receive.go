//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// receive makes room for a VM and answers where its source finds it. libvirt makes
// the domain itself when the source comes. The caller holds the domain's lock.
func receive(ctx context.Context, of *domain, in hypervisor.Incoming,
) (hypervisor.Address, error) {
	d := move{of}
	n := d.Node
	if in.Job == "" {
		return "", backend.Errorf(hypervisor.Invalid, "the job has no name")
	}
	if err := n.Check(in.VM); err != nil {
		return "", err
	}
	f, err := d.Find(ctx)
	if err != nil {
		return "", err
	}
	old := n.Job(in.Job)
	half := old != nil && old.VM.ID == d.ID && old.Stage == stageListening &&
		(f.Rec == nil || f.Rec.Job != in.Job) // we died, or failed, after noting the job
	if old != nil && !half {
		return d.receiveAgain(f, old, in)
	}
	if f.State != hypervisor.Absent {
		return "", f.Conflict()
	}
	if err := d.fits(ctx, in.VM); err != nil {
		return "", err
	}
	if err := n.Reserve(ctx, in.VM); err != nil {
		return "", err
	}
	j := &jobRecord{Job: backend.Job[stage]{ID: in.Job, VM: in.VM, Role: backend.Target,
		Stage: stageListening, Hold: in.Hold, Token: rand.Text(),
		Started: time.Now().UTC().Round(0)}}
	j.Last = j.First()
	if err := n.PutJob(j, true); err != nil {
		n.Unreserve(d.ID)
		return "", err
	}
	err = d.Put(true, func(r *domainRecord) {
		*r = domainRecord{Domain: backend.Domain{VM: in.VM, Job: in.Job}, Name: d.Name}
	})
	if err != nil {
		return "", err
	}
	if f.Observed.Tombstone != "" {
		if err := d.clearTombstone(ctx); err != nil {
			return "", err
		}
	}
	return d.here(j), nil
}

// fits asks libvirt whether it can have such a VM, before it is sent. Images of
// its local disks must not be there: libvirt would write into them, and what is there
// later was made by this job, and goes with it.
func (d move) fits(ctx context.Context, vm hypervisor.VM) error {
	why, err := lacks(ctx, d.domain, vm)
	if err != nil {
		return err
	}
	found, err := volumes(ctx, d.Node, d.Name, vm)
	if err != nil {
		return err
	}
	for _, disk := range found {
		why = append(why, hypervisor.Reason{Check: "disk " + disk.Name, Need: "no image here yet",
			Have: d.Node.Settings.Image(d.Name, disk.Name) +
				", of an earlier VM of that name: move it away, or remove it"})
	}
	if len(why) > 0 {
		return backend.Errorf(hypervisor.Invalid, "%w", &hypervisor.Refusal{Reasons: why})
	}
	return nil
}

// receiveAgain answers what was answered before, unless something else is asked. Here a
// post-copy may not be known to be broken yet.
func (d move) receiveAgain(f found, old *jobRecord, in hypervisor.Incoming,
) (hypervisor.Address, error) {
	lacks := old.Stage == stageArrived &&
		(f.Observed.Run == runsPostCopy || f.Observed.Run == runsPostCopyFailed)
	switch {
	case old.Role != backend.Target || old.Refused || old.Stage != stageListening && !lacks:
		return "", backend.Errorf(hypervisor.Conflict, "job %s has ended here", in.Job)
	case old.VM.ID != d.ID:
		return "", backend.Errorf(hypervisor.Conflict, "job %s is about %s", in.Job, old.VM.ID)
	case !old.VM.Equal(in.VM) || old.Hold != in.Hold:
		return "", backend.Errorf(hypervisor.Conflict,
			"job %s was opened with another description", in.Job)
	case lacks: // the source asks for this address to recover
		if err := d.need(hypervisor.CanRecover); err != nil {
			return "", err
		}
	}
	return d.here(old), nil
}

// here is the address of a target.
func (d move) here(j *jobRecord) hypervisor.Address {
	t := targetAddress{Peer: d.Node.Peer, Host: d.Node.Name, Job: j.ID, VM: j.VM, Hold: j.Hold,
		Token: j.Token}
	return hypervisor.Address(t.String())
}

// setTombstone keeps libvirt from receiving the VM: a definition that can never run has its
// name and another UUID, and libvirt refuses the source that comes. It answers
// Conflict when libvirt is receiving it already.
// Source: libvirt 9.0 virdomainobjlist.c (virDomainObjListAddLocked: "domain '%s'
// already exists with uuid %s").
func (d move) setTombstone(ctx context.Context) error {
	xml, err := tombstone(d.Name, d.Node.Settings.Type)
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	return d.Node.Conn.Act(ctx, func(c *connect) error {
		dom, err := c.DomainDefineXML(xml)
		if err != nil {
			return err
		}
		return dom.Free()
	})
}

// clearTombstone lets libvirt receive the VM again.
func (d move) clearTombstone(ctx context.Context) error {
	return d.Node.Conn.Act(ctx, func(c *connect) error { return clearTombstone(c, d.Name) })
}

// noteArrival notes that libvirt has begun to receive the VM.
func (d move) noteArrival() error {
	return d.PutJob(false, func(j *jobRecord) { j.Seen = true })
}

// lapse: libvirt took the incoming domain away, which it does only while that has
// not run. It must not come again.
func (d move) lapse(ctx context.Context) error {
	if err := d.setTombstone(ctx); err != nil {
		return err
	}
	if err := remove(ctx, d.Node, d.Name, d.Record().VM); err != nil {
		return err
	}
	err := d.PutJob(true, func(j *jobRecord) {
		j.Refused, j.Stage = true, stageDiscarded
		j.Last.Status, j.Last.Error = hypervisor.JobFailed, "the source did not send all of it"
	})
	if err != nil {
		return err
	}
	d.Node.Unreserve(d.ID)
	d.Node.Expire(d.Name)
	return d.Remove()
}

// arrive: the VM is here, and this host's own.
func (d move) arrive(ctx context.Context, s observation) error {
	if err := d.Do(ctx, disableAutostart); err != nil && !errors.Is(err, hypervisor.NotFound) {
		return err
	}
	postcopy := s.Run == runsPostCopy || s.Run == runsPostCopyFailed
	ran := d.Record().Ran || s.Run.Alive()
	err := d.Put(true, func(r *domainRecord) {
		r.Ran, r.Boot = ran, s.Mark.Boot
		r.Crashed = s.Run == runShutoffCrashed ||
			s.Run == runShutoffUnknown && !s.Mark.Cold
	})
	if err != nil {
		return err
	}
	err = d.PutJob(true, func(j *jobRecord) {
		j.Stage, j.Cold = stageArrived, s.Mark.Cold
		j.Unborn = j.Hold && !ran && !j.Cold
		if postcopy {
			j.PostCopied, j.Last.Mode = true, hypervisor.PostCopy
			return
		}
		j.Last.Status = hypervisor.JobSucceeded
	})
	if err == nil {
		d.Node.Unreserve(d.ID)
	}
	return err
}

// recovered: what a post-copy still lacked has come, or is lost with the domain.
func (d move) recovered(s observation) error {
	return d.PutJob(true, func(j *jobRecord) { j.Last.Status = hypervisor.JobSucceeded })
}

// mark is godwit's own note in a domain.
func (d move) mark(rec *domainRecord, j *jobRecord) domxml.Mark {
	return domxml.Mark{VM: rec.VM, Job: j.ID, Boot: rec.Boot, Source: d.Node.Name, From: d.Node.Peer,
		Cold: j.Cold, Resting: j.Resting}
}
