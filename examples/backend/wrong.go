package backend

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Each of these is wrong in one way, and passes for right as long as nothing goes wrong.

// A strict backend calls it an error to be asked for a VM that is not there.
type strict struct{ *Backend }

func (b strict) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := b.Backend.Domain(ctx, id)
	if err == nil && d.State == hypervisor.Absent {
		err = &hypervisor.Error{Op: "Domain", VM: id, Kind: hypervisor.NotFound,
			Err: errors.New("no such VM")}
	}
	return d, err
}

// A credulous backend releases a source without a proof.
type credulous struct{ *Backend }

func (b credulous) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	if release, is := c.(hypervisor.Release); is {
		release.Moved = hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: id,
			Host: "elsewhere", Job: release.Job, By: "the backend"}
		c = release
	}
	return b.Backend.Do(ctx, id, c)
}

// A guessing backend says that a job has failed when its connection was lost, although the target
// may run.
type guessing struct{ *Backend }

func (b guessing) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress,
	error) {
	p, err := b.Backend.Progress(ctx, job)
	if p.Status == hypervisor.JobBroken {
		p.Status = hypervisor.JobFailed
	}
	return p, err
}
