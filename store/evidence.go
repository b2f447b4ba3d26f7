package store

import (
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// TargetDead returns the evidence that the target's copy will not run, if there
// is any, and the best there is: that it never ran. Where the target's own word is
// not enough, another's counts before it.
func (m *Migration) TargetDead() (hypervisor.Evidence, bool) {
	var best hypervisor.Evidence
	if m.Target.Discarded {
		best = m.Testimony(hypervisor.TargetDiscarded, m.State.Target)
		if !m.Source.Ceded {
			return best, true
		}
	}
	for _, e := range m.Evidence {
		switch {
		case e.NeverRan(m.Spec.VM, m.State.Target, m.Spec.ID):
			return e, true
		case e.Dead(m.Spec.VM, m.State.Target):
			best = e
		}
	}
	return best, best.Proof != hypervisor.NoProof
}

// Testimony is the evidence in what the agent of a host has reported about itself.
func (m *Migration) Testimony(p hypervisor.Proof, host hypervisor.HostName) hypervisor.Evidence {
	return hypervisor.Evidence{Proof: p, VM: m.Spec.VM, Host: host, Job: m.Spec.ID,
		By: "agent/" + string(host)}
}

// Proof returns what proves that nothing runs on a host that was fenced. It is the zero
// Evidence when the host was not, or when it has been heard since without a restart: then
// the fencing was none, or the word was wrong.
func (h *Host) Proof() hypervisor.Evidence {
	if !h.Fenced || h.Refuted() != "" {
		return hypervisor.Evidence{}
	}
	e := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: h.Host.Name, By: "fencing"}
	if h.Fencing != nil && h.Fencing.By != "" {
		e.By = h.Fencing.By
	}
	if h.ByOperator() {
		e.Proof = hypervisor.OperatorWord
	}
	return e
}

// Refuted returns what speaks against it that a fenced host is off: it sends heartbeats, without a
// restart. "" is that nothing does. Of a host that is not fenced there is nothing to refute, whatever
// attempt to fence it failed.
func (h *Host) Refuted() string {
	if !h.Fenced || h.Fencing == nil {
		return ""
	}
	return h.Fencing.Error
}

// OperatorBy begins Fencing.By when an operator confirmed it: "operator alice".
const OperatorBy = "operator "

// ByOperator reports whether a host counts as fenced because an operator confirmed it.
func (h *Host) ByOperator() bool {
	return h.Fencing != nil && strings.HasPrefix(h.Fencing.By, OperatorBy)
}
