package controller

import (
	"time"

	"github.com/godwit-vm/godwit/store"
)

// A hostObservation is what is known about one host when it is judged.
type hostObservation struct {
	Host *store.Host
	// Boot is the start of the machine that its agent gave last; "" when it never did.
	Boot string
	// Heartbeat: the agent has sent a heartbeat since the host was judged last.
	Heartbeat bool
	// Silence is how long it has given none while this controller listened.
	Silence time.Duration
	// Worth: something is gained by fencing the host.
	Worth bool
	// Waits is why no agent is admitted now, in words; "" is that they are: see [Hearing].
	Waits string
}

// A failoverDecision is what is to be done about a host.
type failoverDecision uint8

// The verdicts.
const (
	// verdictLeave: it stays as it is.
	verdictLeave failoverDecision = iota
	// verdictWelcome: the machine has started anew. Nothing of before runs there.
	verdictWelcome
	// verdictDistrust: it sends heartbeats although it was fenced. Nothing more is rebuilt from it.
	verdictDistrust
	// verdictWithdraw: the operator has taken back their word.
	verdictWithdraw
	// verdictRefuse: refuse the operator's confirmation that it is off: it sends heartbeats.
	verdictRefuse
	// verdictRecover: it is heard again, and was not cut off.
	verdictRecover
	// verdictBelieve: believe the operator's word that it is off.
	verdictBelieve
	// verdictCallLost: its agent is not heard.
	verdictCallLost
	// verdictAdmit: the agent that has begun may act.
	verdictAdmit
	// verdictDelay: the agent that has begun waits, and is told why.
	verdictDelay
	// verdictFence: fence it, if no more hosts are silent than are allowed to be.
	verdictFence
)

// A rule is one line of the specification.
type rule struct {
	name    string
	holds   func(*FailoverConfig, *hostObservation) bool
	verdict failoverDecision
}

// rules: the first that holds decides.
var rules = []rule{
	{"started-anew", startedAnew, verdictWelcome},
	{"lives-though-fenced", livesThoughFenced, verdictDistrust},
	{"word-withdrawn", wordWithdrawn, verdictWithdraw},
	{"word-refuted", confirmationRefuted, verdictRefuse},
	{"heard-again", heardAgain, verdictRecover},
	{"agent-begun", agentBegun, verdictAdmit},
	{"agent-too-early", agentTooEarly, verdictDelay},
	{"heard-lately", heardLately, verdictLeave},
	{"word-given", wordGiven, verdictBelieve},
	{"fallen-silent", fallenSilent, verdictCallLost},
	{"to-be-fenced", toBeFenced, verdictFence},
}

// decideHost decides about one host. It is total, and one step at a time: a caller that has
// stored what follows judges again.
func decideHost(c *FailoverConfig, s *hostObservation) failoverDecision {
	for _, r := range rules {
		if r.holds(c, s) {
			return r.verdict
		}
	}
	return verdictLeave
}

// startedAnew: the agent speaks of another start of the machine than the one that was
// to end. Whatever ran before has ended, whether or not the fencing had a part in it.
// Source: Nova compute/manager.py (_destroy_evacuated_instances: what was rebuilt is
// cleaned up by positive records when the host returns, and only then is it in use).
func startedAnew(_ *FailoverConfig, s *hostObservation) bool {
	switch h := s.Host; {
	case h.Fencing != nil:
		return s.Boot != "" && s.Boot != h.Fencing.Boot
	case h.Fenced: // by hand, without a [store.Fencing]
		return s.Heartbeat
	}
	return false
}

// livesThoughFenced: the very machine that is said to be off sends heartbeats.
// Source: ClusterLabs fence-agents doc/FenceAgentAPI.md ("a timeout is an assumption,
// and we want a guarantee"): what proves to be an assumption is one no longer.
func livesThoughFenced(_ *FailoverConfig, s *hostObservation) bool {
	return s.Host.Fenced && s.Heartbeat && trusted(s.Host)
}

// wordWithdrawn: the host counts as fenced by an operator's word, and they took it back.
// Source: ClusterLabs fence-agents doc/FenceAgentAPI.md (manual fencing is as good as
// the person who confirms it).
func wordWithdrawn(_ *FailoverConfig, s *hostObservation) bool {
	return s.Host.Fenced && s.Host.ByOperator() && s.Host.ConfirmedDownBy == ""
}

// confirmationRefuted: the host sends heartbeats although an operator says that it is off. The confirmation is
// taken back for them: it would count as soon as the host is silent for a moment.
// Source: oVirt engine FenceVdsManualyCommand (refused while the host is Up).
func confirmationRefuted(_ *FailoverConfig, s *hostObservation) bool {
	return s.Heartbeat && !s.Host.Fenced && s.Host.ConfirmedDownBy != ""
}

// heardAgain: a host that was called lost, or was about to be fenced, sends a heartbeat.
// Source: oVirt engine VdsManager (a host that answers again within the grace period
// becomes Up and is not fenced).
func heardAgain(_ *FailoverConfig, s *hostObservation) bool {
	return s.Heartbeat && !s.Host.Fenced && (s.Host.NotReady || s.Host.Fencing != nil)
}

// agentBegun: an agent has taken its host's name, and the store is not doubted by any process that could
// know better.
// Source: godwit. KubeVirt and Nova start what the record says: a database that was restored starts
// VMs beside themselves. Here a host that was off cannot know, and those that can are heard first.
func agentBegun(_ *FailoverConfig, s *hostObservation) bool {
	return s.Host.Unadmitted() && s.Waits == ""
}

// agentTooEarly: an agent has taken its host's name, and a process that could know better was not
// heard.
// Source: godwit, as agent-begun.
func agentTooEarly(_ *FailoverConfig, s *hostObservation) bool {
	return s.Host.Unadmitted() && s.Waits != s.Host.Waits
}

// heardLately: the agent was heard, or no controller listened.
// Source: Nova servicegroup/drivers/db.py (is_up: service_down_time); oVirt
// DisableFenceAtStartupInSec (an engine that has just started fences no host).
func heardLately(c *FailoverConfig, s *hostObservation) bool {
	return s.Heartbeat || s.Silence < c.Grace
}

// wordGiven: an operator says that the host is off, and nothing says otherwise. A word
// that turned out to be wrong has to be taken back before it is given again.
// Source: oVirt engine FenceVdsManualyCommand ("confirm host has been rebooted").
func wordGiven(_ *FailoverConfig, s *hostObservation) bool {
	h := s.Host
	return h.ConfirmedDownBy != "" && (!h.Fenced || !trusted(h) && !h.ByOperator())
}

// fallenSilent: the agent was not heard for too long.
// Source: Nova scheduler/filters/compute_filter.py (a host whose heartbeat is too old
// takes no VMs).
func fallenSilent(_ *FailoverConfig, s *hostObservation) bool { return !s.Host.NotReady }

// toBeFenced: the silence has lasted, there is something to gain, and nothing proves
// yet that the host is off.
// Source: Proxmox ha-manager Manager.pm (a node that is unknown for more than
// fence_delay is fenced before its services are recovered).
func toBeFenced(c *FailoverConfig, s *hostObservation) bool {
	proved := s.Host.Fenced && (trusted(s.Host) || s.Host.ByOperator())
	return !proved && s.Worth && s.Silence >= c.FenceAfter
}

// trusted reports whether nothing speaks against what is said about a host's fencing.
func trusted(h *store.Host) bool { return h.Refuted() == "" }
