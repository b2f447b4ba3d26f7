package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// keepAlive is how long the hypervisors of a pair miss each other before they take
// their connection for lost.
const keepAlive = time.Second

// A fault is what the hosts of a pair are wrong about. The zero value is nothing.
type fault struct {
	claims      bool // they say that they can take back
	resumes     bool // a source that is handed over resumes
	discards    bool // a target that holds everything is discarded
	abandons    bool // a source that is handed over is abandoned
	vanishes    bool // a held target that dies is not visible
	never       bool // a target whose source has ended is not discarded
	refusesDone bool // the Discard of a target that receives is refused, and done
	pausesDone  bool // a Pause on the way is refused, and done
	vague       bool // what is forbidden is Transient instead of Conflict
	forks       bool // the source runs on, although the target runs
	stuck       bool // a hand-over over a lost link is not resolved
}

// A pair is two modelled hosts whose hypervisors have a hand-over of their own, as
// libvirt's peer-to-peer migration is one: a source that is handed over is a
// definition, only its source ends a migration, and a guest is not paused on its
// way. The model below could do more, and is not asked to.
type pair struct {
	mu     sync.Mutex // each call looks before it acts
	fabric *fake.Network
	hosts  map[hypervisor.HostName]*peer
	wrong  fault
	cut    bool
	ended  map[hypervisor.JobID]time.Time // when its source was first seen to have lost it
}

// A peer is one host of a pair.
type peer struct {
	hypervisor.Hypervisor
	name  hypervisor.HostName
	other *peer
	pair  *pair
	// untold are targets whose source was cancelled before it reached them.
	untold map[hypervisor.VMID]hypervisor.Domain
}

// newPair has two hosts, n1 and n2.
func newPair(m fake.Model, wrong fault) *pair {
	p := &pair{wrong: wrong, hosts: map[hypervisor.HostName]*peer{},
		ended:  map[hypervisor.JobID]time.Time{},
		fabric: fake.NewNetwork(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), m)}
	for _, name := range []hypervisor.HostName{"n1", "n2"} {
		host, err := p.fabric.AddHost(hypervisor.Host{Name: name, Memory: 8 * hypervisor.GiB,
			CPUs: 16, Link: 10 * hypervisor.Gbit})
		if err != nil {
			panic(err)
		}
		p.hosts[name] = &peer{Hypervisor: host, name: name, pair: p,
			untold: map[hypervisor.VMID]hypervisor.Domain{}}
	}
	p.hosts["n1"].other, p.hosts["n2"].other = p.hosts["n2"], p.hosts["n1"]
	return p
}

// refuse is an error of a peer.
func (h *peer) refuse(op string, id hypervisor.VMID, kind hypervisor.Kind, why string) error {
	return &hypervisor.Error{Op: op, Host: h.name, VM: id, Kind: kind, Err: errors.New(why)}
}

// model is what the model says of a VM; a host without power says nothing.
func (h *peer) model(id hypervisor.VMID) hypervisor.Domain {
	d, _ := h.Hypervisor.Domain(context.Background(), id)
	return d
}

// job is what the model says of a job.
func (h *peer) job(id hypervisor.JobID) hypervisor.Progress {
	p, _ := h.Hypervisor.Progress(context.Background(), id)
	return p
}

// tell has the model do what was not asked for by a caller.
func (h *peer) tell(id hypervisor.VMID, c hypervisor.Command) error {
	return h.Hypervisor.Do(context.Background(), id, c)
}

// sends reports whether a job is under way here, as at its source.
func (h *peer) sends(id hypervisor.JobID) bool {
	switch h.job(id).Status {
	case hypervisor.JobSetup, hypervisor.JobActive, hypervisor.JobSwitching:
		return true
	}
	return false
}

// notices reports whether a target knows that its source does not send: at once if
// it never did, and otherwise when it has missed it for long enough.
func (h *peer) notices(id hypervisor.JobID) bool {
	if h.other.job(id).Status == hypervisor.JobNone {
		return true
	}
	now := h.pair.fabric.Now()
	if h.other.sends(id) {
		return false
	}
	if _, seen := h.pair.ended[id]; !seen {
		h.pair.ended[id] = now
	}
	return !h.pair.wrong.never && now.Sub(h.pair.ended[id]) >= keepAlive
}

// Host answers without take-back.
func (h *peer) Host(ctx context.Context) (hypervisor.Host, error) {
	host, err := h.Hypervisor.Host(ctx)
	if !h.pair.wrong.claims {
		host.Abilities &^= hypervisor.CanTakeBack
	}
	return host, err
}

// Domain answers what the model says, or that a target was told nothing.
func (h *peer) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	d, err := h.Hypervisor.Domain(ctx, id)
	if waits, is := h.untold[id]; is && err == nil {
		return waits, nil
	}
	return d, err
}

// Domains lists the same.
func (h *peer) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	list, err := h.Hypervisor.Domains(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(d hypervisor.Domain) bool {
		_, is := h.untold[d.VM.ID]
		return is
	})
	for _, d := range h.untold {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b hypervisor.Domain) int { return cmp.Compare(a.VM.ID, b.VM.ID) })
	return list, nil
}

// Progress answers what the model says, or that a target still waits.
func (h *peer) Progress(ctx context.Context, id hypervisor.JobID) (hypervisor.Progress, error) {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	p, err := h.Hypervisor.Progress(ctx, id)
	for _, d := range h.untold {
		if d.Job == id && err == nil {
			return hypervisor.Progress{Job: id, Status: hypervisor.JobSetup}, nil
		}
	}
	return p, err
}

// Receive answers where the model listens, or listened to a job that was not ended.
func (h *peer) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	if d, is := h.untold[in.VM.ID]; is && d.Job != in.Job {
		return "", h.refuse("Receive", in.VM.ID, hypervisor.Conflict, "another job waits here")
	} else if is {
		return hypervisor.Address(fmt.Sprintf("fake://%s/%s", h.name, in.Job)), nil
	}
	return h.Hypervisor.Receive(ctx, in)
}

// Migrate begins to send.
func (h *peer) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	return h.Hypervisor.Migrate(ctx, out)
}

// Adjust changes a job. One that is cancelled before it has reached its target
// leaves that one waiting.
func (h *peer) Adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment) error {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	var waits []hypervisor.Domain
	if _, cancels := a.(hypervisor.Cancel); cancels && h.job(id).Status == hypervisor.JobSetup {
		waits, _ = h.other.Hypervisor.Domains(context.Background())
	}
	err := h.Hypervisor.Adjust(ctx, id, a)
	for _, d := range waits {
		if d.Job == id && d.State == hypervisor.Receiving && err == nil {
			h.other.untold[d.VM.ID] = d
		}
	}
	return err
}

// Do changes the life of a VM, if the hypervisor's own hand-over allows it.
func (h *peer) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	op := fmt.Sprintf("%T", c)
	if waits, is := h.untold[id]; is {
		if c != (hypervisor.Discard{Job: waits.Job}) || h.pair.wrong.never {
			return h.refuse(op, id, hypervisor.Conflict, "it is received")
		}
		delete(h.untold, id)
	}
	if kind, why := h.forbids(id, c); why != "" {
		if h.pair.wrong.vague && kind == hypervisor.Conflict {
			kind = hypervisor.Transient
		}
		return h.refuse(op, id, kind, why)
	}
	return h.Hypervisor.Do(ctx, id, c)
}

// forbids returns why the hand-over does not allow a command; "" is that it does.
func (h *peer) forbids(id hypervisor.VMID, c hypervisor.Command) (hypervisor.Kind, string) {
	d, wrong := h.model(id), h.pair.wrong
	left := d.State == hypervisor.HandedOver
	switch c := c.(type) {
	case hypervisor.Discard:
		if d.Job != c.Job {
			break
		}
		if d.State == hypervisor.Received && !wrong.discards {
			return hypervisor.Conflict, "it is the only copy"
		}
		if d.State == hypervisor.Receiving && !h.notices(c.Job) {
			if wrong.refusesDone {
				_ = h.tell(id, c)
			}
			return hypervisor.Conflict, "its source sends: cancel there"
		}
	case hypervisor.Resume:
		if left && c.NeverRan.Proof != hypervisor.NoProof && !wrong.resumes {
			return hypervisor.Unsupported, "its memory is gone"
		}
	case hypervisor.Abandon:
		if left && c.Dead.Proof == hypervisor.TargetDiscarded && !wrong.abandons {
			return hypervisor.Conflict, "its target has it"
		}
	case hypervisor.Pause, hypervisor.Unpause:
		if h.sends(d.Job) {
			if wrong.pausesDone {
				_ = h.tell(id, c)
			}
			return hypervisor.Conflict, "it moves: cancel that, or wait"
		}
	}
	return 0, ""
}

// pass lets time pass, and the hypervisors notice what they miss.
func (p *pair) pass(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fabric.AdvanceTo(p.fabric.Now().Add(d))
	for _, h := range p.hosts {
		list, _ := h.Hypervisor.Domains(context.Background())
		for _, d := range list {
			if d.State == hypervisor.HandingOver && d.Unresolved && p.cut && !p.wrong.stuck {
				h.settle(d)
			}
		}
	}
}

// settle lets a source run on whose target did not come to run, when they have
// missed each other for long enough.
func (h *peer) settle(d hypervisor.Domain) {
	there := h.other.model(d.VM.ID).State
	never := h.other.notices(d.Job) && there == hypervisor.Receiving
	missed := h.pair.fabric.Now().Sub(h.pair.ended[d.Job])
	forks := h.pair.wrong.forks && there == hypervisor.Running && missed > keepAlive/8
	if !never && !forks {
		return
	}
	_ = h.other.tell(d.VM.ID, hypervisor.Discard{Job: d.Job})
	err := h.tell(d.VM.ID, hypervisor.Resume{Job: d.Job, NeverRan: hypervisor.Evidence{
		Proof: hypervisor.TargetDiscarded, VM: d.VM.ID, Host: h.other.name, Job: d.Job}})
	if err != nil {
		panic(err)
	}
}

// kill ends a process, and refuses where there is none.
func (p *pair) kill(on hypervisor.HostName, id hypervisor.VMID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[on]
	_, waits := h.untold[id]
	d := h.model(id)
	switch {
	case waits, d.State == hypervisor.Absent, d.State == hypervisor.Shutoff,
		d.State == hypervisor.Crashed, d.State == hypervisor.HandedOver,
		d.State == hypervisor.Receiving && h.other.job(d.Job).Sent == 0:
		return fmt.Errorf("%s on %s, which is %v, has no process", id, on, d.State)
	}
	return errors.Join(h.defines(d), p.fabric.KillDomain(on, id))
}

// defines has a held target outlive its process, which the model would forget: it
// runs for no time.
func (h *peer) defines(d hypervisor.Domain) error {
	if d.State != hypervisor.Received || h.pair.wrong.vanishes {
		return nil
	}
	return h.tell(d.VM.ID, hypervisor.Activate{Job: d.Job, Stopped: hypervisor.Evidence{
		Proof: hypervisor.SourceStopped, VM: d.VM.ID, Host: h.other.name, Job: d.Job}})
}

// restart takes the power from a host and gives it back.
func (p *pair) restart(on hypervisor.HostName) (hypervisor.Hypervisor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[on]
	clear(h.untold)
	list, err := h.Hypervisor.Domains(context.Background())
	for _, d := range list {
		err = errors.Join(err, h.defines(d))
	}
	return h, errors.Join(err, p.fabric.CrashHost(on), p.fabric.RestartHost(on))
}
