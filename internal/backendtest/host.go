//go:build linux

package backendtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A Host is a host whose agent may be dead, and another one soon. What an agent was asked when it
// died is [hypervisor.Unknown]: it may have been done.
type Host struct {
	Post any    // describes the host to its agents
	Log  string // the file of what they say

	mu  sync.Mutex
	now *Agent // nil: it is being replaced
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// Start puts an agent in the place of one that is dead.
func (h *Host) Start() error {
	e, err := StartAgent(h.Post, h.Log)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = e
	return err
}

// Agent returns the host's present agent; nil is none.
func (h *Host) Agent() *Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *Host) ask(o order) (reply, error) {
	if e := h.Agent(); e != nil {
		return e.ask(o)
	}
	return reply{}, errDead
}

// Host asks the agent, as all methods of [hypervisor.Hypervisor] do.
func (h *Host) Host(context.Context) (hypervisor.Host, error) {
	r, err := h.ask(order{Op: "Host"})
	return r.Host, err
}

// Domains asks the agent.
func (h *Host) Domains(context.Context) ([]hypervisor.Domain, error) {
	r, err := h.ask(order{Op: "Domains"})
	return r.Domains, err
}

// Domain asks the agent.
func (h *Host) Domain(_ context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	r, err := h.ask(order{Op: "Domain", VM: vm})
	return r.Domain, err
}

// Progress asks the agent.
func (h *Host) Progress(_ context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	r, err := h.ask(order{Op: "Progress", Job: job})
	return r.Progress, err
}

// Receive asks the agent.
func (h *Host) Receive(_ context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	r, err := h.ask(order{Op: "Receive", VM: in.VM.ID, In: &in})
	return r.Address, err
}

// Migrate asks the agent.
func (h *Host) Migrate(_ context.Context, out hypervisor.Outgoing) error {
	_, err := h.ask(order{Op: "Migrate", VM: out.VM, Out: &out})
	return err
}

// Adjust asks the agent.
func (h *Host) Adjust(_ context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	o, err := act(order{Op: "Adjust", Job: job}, a)
	if err == nil {
		_, err = h.ask(o)
	}
	return err
}

// Do asks the agent.
func (h *Host) Do(_ context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	o, err := act(order{Op: "Do", VM: vm}, c)
	if err == nil {
		_, err = h.ask(o)
	}
	return err
}

// Persist does something until it has an answer that is one. A dead agent is replaced
// in the meantime; what it was asked may have been done.
func Persist(do func() error) error {
	deadline := time.Now().Add(testutil.Limit(testutil.DefaultLimit))
	for {
		err := do()
		if !errors.Is(err, hypervisor.Transient) && !errors.Is(err, hypervisor.Unknown) ||
			time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
