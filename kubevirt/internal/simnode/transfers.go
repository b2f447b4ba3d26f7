package simnode

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// transfers moves the memory of VMs between the modelled hosts of package fake. Its time goes so many times
// faster than that of the cluster as speed says.
type transfers struct {
	net   *fake.Network
	start time.Time // of the model's time
	began time.Time // the same in the cluster's
	speed float64
	vms   map[hypervisor.VMID]hypervisor.VM
	jobs  map[hypervisor.JobID]*transfer
	all   []*transfer // in the order of their start
	last  time.Time   // when it was looked which have ended, in the model's time
}

// A transfer is under way.
type transfer struct {
	vm       hypervisor.VMID
	from, to hypervisor.HostName
	began    time.Time // in the model's time
	deadline time.Time
}

// An outcome is how a transfer has ended.
type outcome struct {
	job hypervisor.JobID
	vm  hypervisor.VMID
	to  hypervisor.HostName
	Move
	err string // "" is that it has succeeded
}

// A Move is a transfer that has succeeded.
type Move struct {
	Downtime time.Duration
	// Joined: another transfer began on a link of it at the time of the downtime.
	Joined bool
}

func newTransfers(speed float64) *transfers {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &transfers{net: fake.NewNetwork(start, fake.QEMU()), start: start, began: time.Now(), speed: speed,
		vms: map[hypervisor.VMID]hypervisor.VM{}, jobs: map[hypervisor.JobID]*transfer{}}
}

func (t *transfers) addHost(name string, memory hypervisor.Bytes) error {
	_, err := t.net.AddHost(hypervisor.Host{Name: hypervisor.HostName(name), Memory: memory, CPUs: 512, Link: 10 * hypervisor.Gbit})
	return err
}

func (t *transfers) boot(id hypervisor.VMID, on string, memory hypervisor.Bytes, w fake.Workload) error {
	t.vms[id] = hypervisor.VM{ID: id, Memory: memory, CPUs: 1}
	return t.net.Host(hypervisor.HostName(on)).Boot(t.vms[id], w)
}

// advance lets the time of the model catch up.
func (t *transfers) advance() {
	t.net.AdvanceTo(t.start.Add(time.Duration(float64(time.Since(t.began)) * t.speed)))
}

// send begins a transfer, which is given up after a time of the model.
func (t *transfers) send(ctx context.Context, job, vm, from, to string, within time.Duration) error {
	t.advance()
	j := hypervisor.JobID(job)
	x := &transfer{hypervisor.VMID(vm), hypervisor.HostName(from), hypervisor.HostName(to), t.net.Now(), t.net.Now().Add(within)}
	source, target := t.net.Host(x.from), t.net.Host(x.to)
	if source == nil || target == nil {
		return fmt.Errorf("no host %s or %s", from, to)
	}
	address, err := target.Receive(ctx, hypervisor.Incoming{Job: j, VM: t.vms[x.vm]})
	if err != nil {
		return err
	}
	if err := source.Migrate(ctx, hypervisor.Outgoing{Job: j, VM: x.vm, Target: x.to, Address: address}); err != nil {
		return err
	}
	t.jobs[j] = x
	t.all = append(t.all, x)
	return nil
}

// ended returns the transfers that have ended since it was called last. The old copy is removed.
func (t *transfers) ended(ctx context.Context) (all []outcome) {
	t.advance()
	last := t.last
	t.last = t.net.Now()
	for job, x := range t.jobs {
		source := t.net.Host(x.from)
		p, err := source.Progress(ctx, job)
		o := outcome{job: job, vm: x.vm, to: x.to, Move: Move{Downtime: p.Downtime, Joined: t.joined(x, last.Add(-p.Downtime))}}
		switch {
		case err != nil:
			o.err = err.Error()
		case p.Status == hypervisor.JobSucceeded:
			moved := hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: x.vm, Host: x.to, Job: job, By: "simnode"}
			_ = source.Do(ctx, x.vm, hypervisor.Release{Job: job, Moved: moved})
		case p.Status.Final():
			o.err = cmp.Or(p.Error, "the migration was cancelled")
			_ = t.net.Host(x.to).Do(ctx, x.vm, hypervisor.Discard{Job: job})
		case t.net.Now().After(x.deadline):
			t.cancel(ctx, job)
			continue
		default:
			continue
		}
		delete(t.jobs, job)
		all = append(all, o)
	}
	return all
}

// joined reports whether another transfer began on a link of x since then.
func (t *transfers) joined(x *transfer, since time.Time) bool {
	for _, o := range slices.Backward(t.all) {
		if o.began.Before(since) {
			return false
		}
		if o != x && (o.from == x.from || o.to == x.to) {
			return true
		}
	}
	return false
}

// cancel gives a transfer up: it ends soon after.
func (t *transfers) cancel(ctx context.Context, job hypervisor.JobID) {
	if x := t.jobs[job]; x != nil {
		_ = t.net.Host(x.from).Adjust(ctx, job, hypervisor.Cancel{})
	}
}
