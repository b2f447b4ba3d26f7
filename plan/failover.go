package plan

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// DefaultEffort is how many times [Failover] asks a host whether it has room: some seconds.
const DefaultEffort = 30_000_000

// A Question is what [Failover] is asked.
type FailoverQuestion struct {
	Fleet *Fleet
	// Failures is how many hosts, or domains, fail. It is positive.
	Failures int
	// Domain is the label of hosts, such as "rack", whose value names what fails at
	// once. A host without it fails alone. Default: each host does.
	Domain string
	// Protected are the VMs that must be restarted; nil is all that run. The others
	// keep their room while their host is up.
	Protected map[hypervisor.VMID]bool
	// Effort bounds the search. Default: [DefaultEffort].
	Effort int

	assignment *assignment // the host of each VM; nil: as Fleet has it
}

// A FailoverOutcome answers a question.
type FailoverOutcome string

// The verdicts.
const (
	Yes  FailoverOutcome = "yes"
	No   FailoverOutcome = "no"
	Open FailoverOutcome = "open"
)

// A Proof is how an answer of Yes was found.
type Proof string

// The proofs.
const (
	// AnyPlacement: there is room wherever VMs are restarted, as long as they fit there.
	AnyPlacement Proof = "any placement"
	// SomePlacement: for each failure a placement is known that leaves room for the next.
	SomePlacement Proof = "some placement"
)

// A FailoverResult is what [Failover] found.
type FailoverResult struct {
	Verdict  FailoverOutcome `json:"verdict"`
	Failures int             `json:"failures"` // that were asked about
	Units    int             `json:"units"`    // hosts, or domains, that can fail
	VMs      int             `json:"vms"`      // protected ones, on hosts that are up
	Proof    Proof           `json:"proof,omitempty"`
	// Lower is how many failures are survived for certain, and no more than Upper may be
	// survived, of those asked about.
	Lower int `json:"lower"`
	Upper int `json:"upper"`
	// Searched counts the sets, and orders, of failures that counting did not decide.
	Searched int `json:"searched"`
	// Probes is how often a host was asked for room.
	Probes         int             `json:"probes"`
	Counterexample *Counterexample `json:"counterexample,omitempty"`
}

// Validate returns an error when the question makes no sense.
func (q *FailoverQuestion) Validate() error {
	if len(q.Fleet.Hosts) == 0 {
		return fmt.Errorf("the fleet has no hosts: nothing can fail")
	}
	up := len(unitsOf(q.Fleet, q.Domain))
	what := humanize.Count(up, "host") + " up"
	if q.Domain != "" {
		what += fmt.Sprintf(", by different values of the label %q", q.Domain)
	}
	switch {
	case up == 0:
		return fmt.Errorf("no host is up, of %d: nothing can fail", len(q.Fleet.Hosts))
	case q.Failures < 1:
		return fmt.Errorf("%s make no question: ask for 1 or more",
			humanize.Count(q.Failures, "failure"))
	case q.Failures >= up:
		return fmt.Errorf("%s would leave no host: the fleet has %s; ask for fewer",
			humanize.Count(q.Failures, "failure"), what)
	}
	return nil
}

// OnDownHosts counts the VMs on hosts that are down, of those that are protected; nil is all. [Failover] does
// not look at them: neither where they are restarted, nor what room is left after that.
func OnDownHosts(f *Fleet, protected map[hypervisor.VMID]bool) int {
	n := 0
	for i := range f.VMs {
		v := &f.VMs[i]
		at, known := f.HostAt(v.Home)
		if known && f.Hosts[at].Down && (protected == nil || protected[v.ID]) {
			n += max(1, v.Members)
		}
	}
	return n
}

// Failover answers a question, which must be valid. When the answer is not yes it asks the
// same about fewer failures, to find the bounds; a counterexample is then of as few
// failures as are known to be too many.
func Failover(q FailoverQuestion) FailoverResult {
	t := newTrial(&q)
	a := t.answer(q.Failures)
	a.Lower, a.Upper = q.Failures, q.Failures
	last := a
	for k := q.Failures; last.Verdict != Yes; {
		if last.Verdict == No {
			a.Upper, a.Counterexample = k-1, last.Counterexample
		}
		if k--; k == 0 {
			a.Lower = 0
			break
		}
		last = t.answer(k)
		a.Lower, a.Probes = k, a.Probes+last.Probes
	}
	return a
}
