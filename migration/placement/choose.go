package placement

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Config is what decides. The zero value takes the defaults.
type Config struct {
	// Filters are the enabled conditions. Default: AllFilters().
	Filters []Filter
	// Weighers order the hosts that remain. Default: Spread().
	Weighers []Weigher
}

// A Request asks for a target of a VM.
type Request struct {
	VM   *VM
	Host hypervisor.HostName // the target that is asked for; "" is any
	// Force says whether policy and capacity are overruled.
	Force Force
	// Compat serves older clients, which know no force: a host without a word
	// about force is forced, but is no action on record.
	Compat  bool
	Ignored []hypervisor.HostName // hosts that are no candidates this time
	// Source is the host that the VM is on; "" when it is on none.
	Source hypervisor.HostName
	// Rebuild: the VM is started anew on the target; nothing moves live.
	Rebuild bool
	Inbound int                   // as [Options]
	Avoid   []hypervisor.HostName // as [Options]
}

// A Decision answers a Request. It is data for a store and for people.
type Decision struct {
	Outcome Outcome             `json:"outcome"`
	Host    hypervisor.HostName `json:"host,omitempty"` // the target, when Accepted
	// Why has every reason against the host that was asked for, or against the
	// request; for NoHost it counts what kept the VM from all hosts.
	Why []Reason `json:"why,omitempty"`
	// Code says what kind of thing stands in the way; "" when Accepted.
	Code Code `json:"code,omitempty"`
	// Action is to be recorded with the VM, with or without debts.
	Action Action            `json:"action,omitempty"`
	Debts  []PolicyViolation `json:"debts,omitempty"`
}

// A PolicyViolation is a condition that was overruled. It is paid when the VM is where no
// condition refuses it.
type PolicyViolation struct {
	VM     hypervisor.VMID     `json:"vm"`
	Host   hypervisor.HostName `json:"host"`
	Action Action              `json:"action"`
	Reason
}

// Decide answers a request. hosts are all hosts, with their reservations.
func Decide(c *Config, r *Request, hosts []Host) Decision {
	if why := r.check(hosts); len(why) > 0 {
		return Decision{Outcome: BadRequest, Why: why, Code: BadInput}
	}
	q := newQuestion(c, r, hosts)
	if r.Host != "" {
		return q.named()
	}
	return q.best()
}

// Confirm decides again whether a target that was decided on is still one. host
// is the target with its reservations, that of the VM included, which does
// not count against it. It returns every reason against; none confirms. Of two
// moves that were decided from the same reservations, and do not fit together, each is
// refused while both are reserved: cancel the refused one before the next is asked.
func Confirm(
	c *Config, r *Request, host *Host, hosts []Host,
) []Reason {
	if r.VM == nil {
		return r.check(hosts)
	}
	free, ok := host.Without(r.VM, true)
	if here, known := host.HasVM(r.VM.ID); !ok || known && !here {
		return []Reason{{Check: "reservation", Need: "room reserved for " +
			string(r.VM.ID), Have: "none on " + string(host.Name)}}
	}
	others := []Host{free}
	for i := range hosts {
		grouped := len(r.VM.Constraints.Groups) > 0 || hosts[i].Name == r.Source
		if grouped && hosts[i].Name != host.Name {
			others = append(others, hosts[i])
		}
	}
	again := *r
	again.Host = host.Name
	if r.Host == "" {
		again.Ignored, again.Force = nil, No // the choice was ours
	}
	return Decide(c, &again, others).Why
}

// A question is a request in the making of its decision.
type question struct {
	*Request
	hosts    []Host
	filters  []Filter
	weighers []Weigher
	o        Options
}

func newQuestion(c *Config, r *Request, hosts []Host) *question {
	q := &question{Request: r, hosts: hosts, filters: c.Filters, weighers: c.Weighers}
	if q.filters == nil {
		q.filters = AllFilters()
	}
	if q.weighers == nil {
		q.weighers = Spread()
	}
	q.o = Options{Source: r.Source, Inbound: r.Inbound, Avoid: r.Avoid,
		Move: CompareHosts(r.VM, r.Source, hosts)}
	q.o.Move.Rebuild = r.Rebuild
	return q
}

// named decides about the one host that was asked for.
func (q *question) named() Decision {
	host := &q.hosts[slices.IndexFunc(q.hosts, q.isNamed)]
	action := q.action()
	why := CheckAll(q.filters, q.VM, host, q.o)
	if slices.Contains(q.Ignored, host.Name) {
		why = append([]Reason{ignored(host.Name)}, why...)
	}
	if len(why) == 0 {
		return Decision{Outcome: Accepted, Host: host.Name, Action: action}
	}
	if !q.forced() {
		return Decision{Outcome: Conflict, Why: why, Code: q.codeOf(why)}
	}
	hard := CheckAll(append(HardFilters(), ForcedMemory()), q.VM, host, q.o)
	if len(hard) > 0 {
		return Decision{Outcome: Conflict, Why: hard, Code: Incompatible}
	}
	d := Decision{Outcome: Accepted, Host: host.Name, Action: action}
	for _, reason := range why {
		d.Debts = append(d.Debts, PolicyViolation{q.VM.ID, host.Name, action, reason})
	}
	return d
}

// best decides among all hosts.
func (q *question) best() Decision {
	at := q.candidates()
	if i, ok := bestOf(q.weighers, q.VM, q.hosts, at, q.o); ok {
		return Decision{Outcome: Accepted, Host: q.hosts[i].Name}
	}
	d := Decision{Outcome: NoHost}
	for _, count := range q.histogram() {
		d.Why = append(d.Why, Reason{Check: count.Check,
			Need: "a host that it does not refuse", Have: plural(count.Hosts) + " refused"})
	}
	if d.Code = q.mildest(); len(q.hosts) == 0 {
		d.Why = []Reason{{Check: "hosts", Need: "a host", Have: "none is known"}}
	}
	return d
}

// mildest returns the code of the host that is the least far from taking the VM.
func (q *question) mildest() Code {
	code := Incompatible
	for i := range q.hosts {
		hardest := Capacity
		if slices.Contains(q.Ignored, q.hosts[i].Name) {
			hardest = Policy
		}
		for k := range q.filters {
			if f := &q.filters[k]; f.Class != hardest && f.Class != Capacity &&
				hardest != Physics && f.Refuses(q.VM, &q.hosts[i], q.o) {
				hardest = f.Class
			}
		}
		switch hardest {
		case Capacity:
			return CapacityLacks
		case Policy:
			code = PolicyRefused
		}
	}
	return code
}

// candidates returns the positions of all hosts that take the VM.
func (q *question) candidates() []int {
	at := make([]int, 0, len(q.hosts))
	alike, each := q.split()
	known := make(map[*Facts]bool)
	var last *Facts
	fits := true
	for i := range q.hosts {
		h := &q.hosts[i]
		if i == 0 || h.Facts != last {
			var ok bool
			if fits, ok = known[h.Facts]; !ok {
				fits = FitsAll(alike, q.VM, h, q.o)
				known[h.Facts] = fits
			}
			last = h.Facts
		}
		if fits && FitsAll(each, q.VM, h, q.o) && !slices.Contains(q.Ignored, h.Name) {
			at = append(at, i)
		}
	}
	return at
}

// split returns the filters that hosts with the same facts answer alike, and
// those that each host answers for itself.
func (q *question) split() (alike, each []Filter) {
	for _, f := range Active(q.filters, q.VM, q.o) {
		if f.OfFacts {
			alike = append(alike, f)
		} else {
			each = append(each, f)
		}
	}
	return alike, each
}

func (q *question) isNamed(h Host) bool { return h.Name == q.Host }

func (q *question) forced() bool { return q.Force == Yes || q.Force == Absent && q.Compat }

// action returns what is recorded about a named target.
func (q *question) action() Action {
	switch {
	case q.Force == Yes && q.Rebuild:
		return ForcedRebuild
	case q.Force == Yes:
		return ForcedMigrate
	case q.forced():
		return Bypassed
	}
	return ""
}

// codeOf returns the hardest kind among one host's reasons: physics, then policy, then
// capacity, which time or a larger host may cure.
func (q *question) codeOf(why []Reason) Code {
	code := Code("")
	for _, reason := range why {
		class := Policy
		for i := range q.filters {
			if q.filters[i].Name == reason.Check {
				class = q.filters[i].Class
			}
		}
		switch {
		case class == Physics:
			return Incompatible
		case class == Policy:
			code = PolicyRefused
		case code == "":
			code = CapacityLacks
		}
	}
	return code
}

func ignored(host hypervisor.HostName) Reason {
	return Reason{Check: "ignored", Need: "a host that is not ignored",
		Have: string(host)}
}
