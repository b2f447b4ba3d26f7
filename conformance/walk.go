package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

var walks = []trial{
	{Name: "whatever is done, no VM executes twice or is lost", Run: func(w *world) {
		w.T.Logf("seed %d", w.Seed)
		random := rand.New(rand.NewPCG(w.Seed, 0))
		walk(w, func(_ string, n int) int { return random.IntN(n) })
	}},
}

// failureWalk is [Walk].
func failureWalk(t TB, lab *Lab, choose func(what string, n int) int) {
	t.Helper()
	walk(newWorld(t, lab), choose)
}

// A walker is a random walk through a world.
type walker struct {
	*world
	choose   func(what string, n int) int
	incoming []hypervisor.Incoming
	outgoing []hypervisor.Outgoing
	proofs   []hypervisor.Evidence // that a target was discarded
	ends     map[view]hypervisor.JobStatus
	sent     map[view]hypervisor.Bytes
	own      map[place]bool // the VM rested on the host before it was received there
}

// A place is a VM on one side.
type place struct {
	id hypervisor.VMID
	on side
}

// A view is a job as one side sees it.
type view struct {
	job hypervisor.JobID
	on  side
}

// walk boots two VMs and gives as many commands as the lab wants.
func walk(w *world, choose func(what string, n int) int) {
	w.T.Helper()
	r := &walker{world: w, choose: choose, ends: map[view]hypervisor.JobStatus{},
		sent: map[view]hypervisor.Bytes{}, own: map[place]bool{}}
	for _, id := range []hypervisor.VMID{"suite/a", "suite/b"} {
		w.Boot(side(choose("host", 2)), w.Name(id))
	}
	steps := []func(*walker){(*walker).migrate, (*walker).migrate, (*walker).adjust,
		(*walker).live, (*walker).start, (*walker).start, (*walker).conclude, (*walker).conclude,
		(*walker).conclude, (*walker).discard, (*walker).again, (*walker).bluff, (*walker).wait,
		(*walker).wait, (*walker).wait, (*walker).harm}
	for range w.Steps {
		steps[choose("step", len(steps))](r)
		r.check()
	}
}

// A spot is a VM on a Side, as its host and the other one describe it.
type spot struct {
	id          hypervisor.VMID
	on          side
	here, there hypervisor.Domain
}

// anywhere is a VM on one of the sides, mostly where it has a domain.
func (r *walker) anywhere() spot {
	r.T.Helper()
	s := spot{id: r.VMs[r.choose("vm", len(r.VMs))], on: side(r.choose("side", 2))}
	s.here, s.there = r.Domain(s.on, s.id), r.Domain(s.on.Other(), s.id)
	if s.here.State == hypervisor.Absent && r.choose("here", 10) > 0 {
		s.on, s.here, s.there = s.on.Other(), s.there, s.here
	}
	return s
}

// twice does something, and does it again: what was done stays so, unless the
// world has moved on, and what was refused for good stays refused.
func (r *walker) twice(what string, do func() error) error {
	r.T.Helper()
	first, second := do(), do()
	r.T.Logf("%s: %v, %v", what, first, second)
	for _, err := range []error{first, second} {
		if err != nil {
			r.Refused(err, hypervisor.Conflict, hypervisor.NotFound, hypervisor.Invalid,
				hypervisor.Unsupported, hypervisor.Transient, hypervisor.NoRoom)
		}
	}
	if first == nil && second != nil && !errors.Is(second, hypervisor.Conflict) {
		r.T.Fatalf("%s was done, and again: %v", what, second)
	}
	for _, kind := range []hypervisor.Kind{hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.NotFound} {
		if errors.Is(first, kind) && !errors.Is(second, kind) {
			r.T.Fatalf("%s: %v, and again: %v", what, first, second)
		}
	}
	return first
}

func (r *walker) command(on side, id hypervisor.VMID, c hypervisor.Command) error {
	r.T.Helper()
	return r.twice(fmt.Sprintf("%T of %s on %s", c, id, r.Hosts[on].Name),
		func() error { return r.HV[on].Do(r.Ctx, id, c) })
}

// migrate opens a target for a new job and begins to send, wherever the VM is.
func (r *walker) migrate() {
	r.T.Helper()
	s := r.anywhere()
	in := hypervisor.Incoming{Job: hypervisor.JobID(fmt.Sprint("walk-", len(r.Jobs))),
		VM: r.VM(s.id), Hold: r.choose("hold", 2) == 0}
	r.Jobs, r.incoming = append(r.Jobs, in.Job), append(r.incoming, in)
	var addresses []hypervisor.Address
	err := r.twice("Receive "+string(in.Job), func() error {
		a, err := r.HV[s.on.Other()].Receive(r.Ctx, in)
		addresses = append(addresses, a)
		return err
	})
	if err != nil {
		return
	}
	if addresses[0] != addresses[1] {
		r.T.Fatalf("%s listens at %q", in.Job, addresses)
	}
	out := hypervisor.Outgoing{Job: in.Job, VM: s.id, Address: addresses[0],
		Target: r.Hosts[s.on.Other()].Name, Options: hypervisor.TransferOptions{
			PostCopy: r.Hosts[s.on].Abilities.Has(hypervisor.CanPostCopy),
			// A cap shows more of what happens on the way.
			Bandwidth: r.Slow * hypervisor.Bandwidth(r.choose("slow", 3)/2)}}
	r.outgoing = append(r.outgoing, out)
	_ = r.twice("Migrate "+string(out.Job), func() error {
		return r.HV[s.on].Migrate(r.Ctx, out)
	})
}

// again repeats what was asked long ago, of any host.
func (r *walker) again() {
	r.T.Helper()
	on := side(r.choose("side", 2))
	if n := len(r.outgoing); n > 0 && r.choose("which", 2) == 0 {
		out := r.outgoing[r.choose("job", n)]
		_ = r.twice("Migrate again "+string(out.Job), func() error {
			return r.HV[on].Migrate(r.Ctx, out)
		})
	} else if n := len(r.incoming); n > 0 {
		in := r.incoming[r.choose("job", n)]
		_ = r.twice("Receive again "+string(in.Job), func() error {
			_, err := r.HV[on].Receive(r.Ctx, in)
			return err
		})
	}
}

func (r *walker) adjust() {
	r.T.Helper()
	all := changes()
	s, a := r.anywhere(), all[r.choose("adjustment", len(all))]
	_ = r.twice(fmt.Sprintf("%T of %s", a, s.here.Job), func() error {
		return r.HV[s.on].Adjust(r.Ctx, s.here.Job, a)
	})
}

func (r *walker) live() {
	r.T.Helper()
	all := []hypervisor.Command{hypervisor.Pause{}, hypervisor.Unpause{}, hypervisor.Unpause{},
		hypervisor.Reboot{}, hypervisor.Stop{Grace: 10 * time.Millisecond}, hypervisor.Kill{}}
	s := r.anywhere()
	_ = r.command(s.on, s.id, all[r.choose("command", len(all))])
}

// start starts a VM that has no process here, nor a copy there that may run.
func (r *walker) start() {
	r.T.Helper()
	s := r.anywhere()
	rests := s.here.State.Rests()
	// A source that is not taken back has nothing that could run.
	left := s.there.State == hypervisor.HandedOver && s.there.Job == s.here.Job && !r.TakesBack()
	if rests && (left || !s.there.State.HoldsState() && s.there.State != hypervisor.Receiving) {
		_ = r.command(s.on, s.id, hypervisor.Start{VM: r.VM(s.id)})
	}
}

func (r *walker) discard() {
	r.T.Helper()
	s := r.anywhere()
	if r.command(s.on, s.id, hypervisor.Discard{Job: s.here.Job}) == nil && s.here.Job != "" {
		r.proofs = append(r.proofs, hypervisor.Evidence{Proof: hypervisor.TargetDiscarded,
			VM: s.id, Host: r.Hosts[s.on].Name, Job: s.here.Job})
	}
}

// conclude brings a migration to its end with what both sides say.
func (r *walker) conclude() {
	r.T.Helper()
	s := r.anywhere()
	there := hypervisor.Evidence{VM: s.id, Host: r.Hosts[s.on.Other()].Name, Job: s.here.Job}
	stopped := s.here.State == hypervisor.HandedOver || s.here.State == hypervisor.HandingOver
	switch {
	case s.here.State == hypervisor.Received && s.here.Job == s.there.Job &&
		(s.there.State == hypervisor.HandedOver || s.there.State == hypervisor.HandingOver):
		there.Proof = hypervisor.SourceStopped
		_ = r.command(s.on, s.id, hypervisor.Activate{Job: s.here.Job, Stopped: there})
	case stopped && s.here.Job == s.there.Job && s.there.State.Executes():
		there.Proof = hypervisor.RunsAtTarget
		_ = r.command(s.on, s.id, hypervisor.Release{Job: s.here.Job, Moved: there})
	case stopped:
		for _, e := range r.proofs { // old ones, too
			if e.VM == s.id {
				_ = r.command(s.on, s.id, hypervisor.Resume{Job: s.here.Job, NeverRan: e})
			}
		}
	}
}

// bluff asks without evidence for what needs it.
func (r *walker) bluff() {
	r.T.Helper()
	s := r.anywhere()
	for _, c := range []hypervisor.Command{hypervisor.Activate{Job: s.here.Job},
		hypervisor.Resume{Job: s.here.Job}, hypervisor.Abandon{Job: s.here.Job},
		hypervisor.Release{Job: s.here.Job}} {
		if err := r.command(s.on, s.id, c); err == nil {
			r.T.Fatalf("%T needs no evidence", c)
		}
	}
}

// harm kills a process or reopens a host, if the lab can.
func (r *walker) harm() {
	r.T.Helper()
	s := r.anywhere()
	if r.choose("harm", 3) == 0 && r.KillVM != nil {
		if !r.hasProcess(s) {
			return
		}
		r.T.Logf("kill %s on %s", s.id, r.Hosts[s.on].Name)
		err := r.KillVM(r.Hosts[s.on].Name, s.id)
		s.here = r.Domain(s.on, s.id)
		if err != nil && r.hasProcess(s) { // it did not end by itself meanwhile
			r.Must(err)
		}
	} else if r.Reopen != nil {
		r.T.Logf("reopen %s", r.Hosts[s.on].Name)
		r.Reopens(s.on)
	}
}

// hasProcess reports whether there is a process to kill. Where take-back is lacking
// a target has one when memory moves, and a source that is handed over has none.
func (r *walker) hasProcess(s spot) bool {
	r.T.Helper()
	switch s.here.State {
	case hypervisor.Absent, hypervisor.Shutoff, hypervisor.Crashed:
		return false
	case hypervisor.HandedOver:
		return r.TakesBack()
	case hypervisor.Receiving:
		p := r.Progress(s.on.Other(), s.here.Job)
		return r.TakesBack() || !p.Status.Final() && p.Sent > 0
	}
	return true
}

// wait lets time pass: a moment, or until the last migration that nothing slows
// has ended.
func (r *walker) wait() {
	r.T.Helper()
	pauses := []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}
	if i := r.choose("pause", len(pauses)+2); i < len(pauses) {
		r.Pass(pauses[i])
		return
	}
	for range 200 {
		if n := len(r.outgoing); n == 0 || r.outgoing[n-1].Options.Bandwidth > 0 || r.over(n-1) {
			return
		}
		r.Pass(tick)
		r.Once()
	}
}

// over reports whether both sides are done with a job.
func (r *walker) over(i int) bool {
	r.T.Helper()
	for _, s := range [...]side{source, target} {
		status := r.Progress(s, r.outgoing[i].Job).Status
		if !status.Final() && status != hypervisor.JobBroken && status != hypervisor.JobNone {
			return false
		}
	}
	return true
}

// check looks whether everything is as it should be.
func (r *walker) check() {
	r.T.Helper()
	r.Once()
	for _, id := range r.VMs {
		kept := false
		for _, s := range [...]side{source, target} {
			at := place{id, s}
			switch r.Domain(s, id).State {
			case hypervisor.Absent:
				r.own[at] = false
			case hypervisor.Receiving: // discarded, it rests as before
			default:
				r.own[at] = true
			}
			kept = kept || r.own[at]
		}
		if !kept {
			r.T.Fatalf("%s is lost; %s", id, r.world)
		}
	}
	for _, job := range r.Jobs {
		for _, s := range [...]side{source, target} {
			p, at := r.Progress(s, job), view{job, s}
			if end, ended := r.ends[at]; ended && p.Status != end {
				r.T.Fatalf("%s had ended as %v and is %v", job, end, p.Status)
			}
			if p.Status.Final() {
				r.ends[at] = p.Status
			}
			if p.Sent < r.sent[at] || p.Downtime < 0 {
				r.T.Fatalf("%s had sent %v and now %+v", job, r.sent[at], p)
			}
			r.sent[at] = p.Sent
		}
	}
}
