package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
)

// Terms are what an operator allows. They are the same for every policy of a contest.
type Terms struct {
	Name         string
	AutoConverge bool
	Config       convergence.Config
}

// AllTerms returns the terms that policies are compared on: pre-copy alone, with the brake
// of auto-converge, and with post-copy. The longest downtime is 500 ms, the default of both
// Nova and oVirt; budgets are KubeVirt's.
func AllTerms() []Terms {
	c := convergence.Config{MaxDowntime: 500 * time.Millisecond,
		CompletionTimeoutPerGiB: 150 * time.Second, ProgressTimeout: 150 * time.Second}
	post := c
	post.AllowPostCopy, post.AllowWorkloadDisruption = true, true
	return []Terms{{"pre-copy", false, c}, {"auto-converge", true, c}, {"post-copy", false, post}}
}

// An Outcome is what became of one transfer.
type ContestOutcome struct {
	Succeeded bool
	Took      time.Duration // until it had ended, well or not
	Downtime  time.Duration // of one that succeeded
	// Brownout is for how long the guest was slowed: the CPU time that the brake took, and
	// all of the time in which it ran at the target and lacked memory.
	Brownout time.Duration
	Sent     hypervisor.Bytes
}

const (
	// poll is how often a policy looks besides at the end of each pass: as often as an
	// agent does by default.
	poll = time.Second
	// transferTimeout is when a transfer without an end is given up by the benchmark: it then
	// counts as failed.
	transferTimeout = 6 * time.Hour
)

const job, guest = "contest", hypervisor.VMID("contest/guest")

// RunContest lets a policy move the guest of a trace.
func RunContest(t Trace, terms Terms, policy convergence.Policy) (ContestOutcome, error) {
	r := runner{ctx: context.Background(), trace: t, terms: terms, policy: policy,
		fabric: fake.NewNetwork(sim.Epoch, fake.QEMU())}
	if err := r.begin(); err != nil {
		return ContestOutcome{}, fmt.Errorf("trace %s: %w", t.Name, err)
	}
	err := r.race()
	return r.outcome, err
}

// A runner is a transfer in the making.
type runner struct {
	ctx     context.Context
	trace   Trace
	terms   Terms
	policy  convergence.Policy
	fabric  *fake.Network
	source  *fake.Host
	state   convergence.State
	changed int // changes of the trace that have come
	seen    hypervisor.Progress
	outcome ContestOutcome
}

// begin makes two hosts, one guest, and a transfer.
func (r *runner) begin() error {
	for _, name := range []hypervisor.HostName{"source", "target"} {
		h := hypervisor.Host{Name: name, Memory: 2 * r.trace.Memory, CPUs: 8, Link: r.trace.Link}
		if _, err := r.fabric.AddHost(h); err != nil {
			return err
		}
	}
	r.source = r.fabric.Host("source")
	vm := hypervisor.VM{ID: guest, Memory: r.trace.Memory, CPUs: 2}
	if err := r.source.Boot(vm, fake.Workload{}); err != nil {
		return err
	}
	if err := r.change(0); err != nil {
		return err
	}
	to, err := r.fabric.Host("target").Receive(r.ctx, hypervisor.Incoming{Job: job, VM: vm})
	if err != nil {
		return err
	}
	return r.source.Migrate(r.ctx, hypervisor.Outgoing{Job: job, VM: guest, Target: "target",
		Address: to, Options: hypervisor.TransferOptions{Channels: 8,
			AutoConverge: r.terms.AutoConverge, PostCopy: r.terms.Config.AllowPostCopy}})
}

// race takes what happens one after the other until the transfer has ended.
func (r *runner) race() error {
	look := poll
	for {
		at := min(look, r.nextChange())
		if next, some := r.fabric.Next(); some {
			at = min(at, next.Sub(sim.Epoch))
		}
		r.fabric.AdvanceTo(sim.Epoch.Add(at))
		if err := r.change(at); err != nil {
			return err
		}
		due := at >= look
		for _, hint := range r.fabric.Hints() {
			due = due || hint.Host == "source"
		}
		over, err := r.observe(at, due)
		if over || err != nil || at >= transferTimeout {
			r.outcome.Took = at
			return err
		}
		if due {
			look = at + poll
		}
	}
}

// nextChange returns when the guest changes its ways.
func (r *runner) nextChange() time.Duration {
	if r.changed < len(r.trace.Changes) {
		return r.trace.Changes[r.changed].At
	}
	return hypervisor.Forever
}

// change gives the guest the workload of a time.
func (r *runner) change(at time.Duration) error {
	for r.nextChange() <= at {
		load := r.trace.Changes[r.changed].Load
		r.changed++
		if err := r.source.SetWorkload(guest, load); err != nil {
			return err
		}
	}
	return nil
}

// observe counts, and lets the policy decide if it is time for that. It reports whether the
// transfer has ended.
func (r *runner) observe(at time.Duration, due bool) (bool, error) {
	p, err := r.source.Progress(r.ctx, job)
	if err != nil {
		return false, err
	}
	r.account(at, p)
	if p.Status.Final() {
		o := &r.outcome
		if o.Succeeded = p.Status == hypervisor.JobSucceeded; o.Succeeded {
			o.Downtime = p.Downtime
		}
		o.Sent = p.Sent
		return true, nil
	}
	if !due {
		return false, nil
	}
	return false, r.decide(p)
}

// account adds what the guest has suffered since the last look.
func (r *runner) account(at time.Duration, p hypervisor.Progress) {
	o := &r.outcome
	passed := at - o.Took
	switch {
	case r.seen.Mode == hypervisor.PostCopy && r.seen.Status == hypervisor.JobActive:
		o.Brownout += passed
	case r.seen.Status == hypervisor.JobActive:
		o.Brownout += passed / 100 * time.Duration(r.seen.Throttle)
	}
	o.Took, r.seen = at, p
}

// decide asks the policy, and carries out what it says, as an agent does.
func (r *runner) decide(p hypervisor.Progress) error {
	now := r.fabric.Now()
	c := r.terms.Config
	c.Memory = r.trace.Memory
	next, v := r.policy(c, r.state, p, now)
	r.state = next
	adjust, some := v.Adjustment()
	if !some {
		return nil
	}
	switch err := r.source.Adjust(r.ctx, job, adjust); {
	case err == nil:
		r.state = next.Accepted(v, now)
	case errors.Is(err, hypervisor.Conflict), errors.Is(err, hypervisor.Unsupported):
		r.state = next.Refused(v)
	default:
		return err
	}
	return nil
}
