package controller

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// weighers are the default preferences: the one of the index, and what a VM's groups
// ask for softly.
func weighers() []placement.Weigher {
	return slices.DeleteFunc(placement.Spread(), func(w placement.Weigher) bool {
		return w.Name != "memory" && w.Name != "soft-affinity" && w.Name != "soft-anti-affinity"
	})
}

// chooser returns what decides, with the defaults filled in.
func chooser(c placement.Config) placement.Config {
	if c.Weighers == nil {
		c.Weighers = weighers()
	}
	if c.Filters == nil {
		c.Filters = placement.AllFilters()
	}
	return c
}

// Decide answers a request, and reserves nothing. Where no host was asked for, and
// nothing but free memory is preferred, the index answers without a look at every
// host; its refusals have no reasons, which [reservations.Histogram] counts when they are
// asked for. The limit of migrations into a host refuses none that was asked for: see
// [reservations.Full].
func (b *reservations) Decide(r *placement.Request) placement.Decision {
	b.notice(r.VM)
	if r.Host == "" {
		r.Inbound = b.config.Inbound
	}
	if !b.fast(r) {
		return placement.Decide(&b.chooser, r, b.concerned(r))
	}
	if why := placement.Contradictions(r.VM); len(why) > 0 {
		return placement.Decision{Outcome: placement.BadRequest, Why: why, Code: placement.BadInput}
	}
	if host, ok := b.index.Best(r.VM, b.options(r)); ok {
		return placement.Decision{Outcome: placement.Accepted, Host: host}
	}
	return placement.Decision{Outcome: placement.NoHost}
}

// concerned returns the hosts that matter to a decision: all of them, but for the host that was
// asked for it is enough to know that and the VM's own, unless the VM is in a group.
func (b *reservations) concerned(r *placement.Request) []placement.Host {
	if r.Host == "" || r.VM == nil || len(r.VM.Constraints.Groups) > 0 {
		return b.index.Hosts()
	}
	hosts := b.index.Only(r.Host)
	if r.Source == r.Host {
		return hosts
	}
	return append(hosts, b.index.Only(r.Source)...) // Only leaves no room: this is a copy
}

// fast reports whether the index decides as package placement would. It applies the
// same conditions and the same reservations, and prefers what the default weighers prefer.
func (b *reservations) fast(r *placement.Request) bool {
	c := &b.config.Placement
	return r.VM != nil && r.Host == "" && r.Force != placement.Yes && len(r.Ignored) == 0 &&
		!r.Rebuild && c.Filters == nil && c.Weighers == nil && r.VM.Demand() > 0 &&
		!slices.ContainsFunc(r.VM.Constraints.Groups, soft)
}

func soft(r placement.GroupRule) bool {
	return r.Policy == placement.SoftAffinity || r.Policy == placement.SoftAntiAffinity
}

func (b *reservations) options(r *placement.Request) placement.Options {
	o := placement.Options{Source: r.Source, Inbound: b.config.Inbound, Avoid: r.Avoid}
	if b.detailed {
		o.Move = b.index.CompareHosts(r.VM, r.Source)
	}
	return o
}

// Full reports whether as many migrations as are allowed are on their way to a host.
func (b *reservations) Full(host hypervisor.HostName) bool {
	h, _ := b.index.Get(host)
	return b.config.Inbound > 0 && h.Incoming >= b.config.Inbound
}

// Confirm decides again about a target that holds room for the VM. It returns every
// reason against it; none confirms.
func (b *reservations) Confirm(r *placement.Request, target hypervisor.HostName) []placement.Reason {
	b.notice(r.VM)
	if at := b.index.Only(target); len(at) > 0 && b.confirms(r, &at[0]) {
		return nil
	}
	h, known := b.index.Get(target)
	if !known {
		h = placement.Host{Name: target, Down: true}
	}
	return placement.Confirm(&b.chooser, r, &h, b.others(r))
}

// confirms reports whether the basic conditions, which are all there are where the request
// does not say more, hold without a look at anything else. It explains nothing.
func (b *reservations) confirms(r *placement.Request, target *placement.Host) bool {
	if b.detailed || b.config.Placement.Filters != nil || r.VM == nil || len(r.Ignored) > 0 ||
		r.Force > placement.Yes || len(placement.Contradictions(r.VM)) > 0 {
		return false
	}
	ok := false
	b.free, ok = target.Without(r.VM, true)
	return ok && placement.FitsAll(basic, r.VM, &b.free, placement.Options{Source: r.Source,
		Inbound: r.Inbound, Avoid: r.Avoid})
}

// others returns the hosts that matter to a confirmation besides the target: where the VM
// is, and for one that is in a group all that may hold others of it.
func (b *reservations) others(r *placement.Request) []placement.Host {
	if r.VM == nil || len(r.VM.Constraints.Groups) > 0 {
		return b.index.Hosts()
	}
	return b.index.Only(r.Source)
}

// Exceeds returns what a move would exceed of quotas, its tenant's and those that its VM is
// charged; none is nothing.
func (b *reservations) Exceeds(vm *placement.VM, m reservedMove) []placement.Reason {
	if b.charged != nil {
		if why := b.charged.Lacks(vm.Constraints.Charges); len(why) > 0 {
			return why
		}
	}
	quota, bounded := b.config.Quotas[vm.Constraints.Tenant]
	if !bounded {
		return nil
	}
	_, why := b.ledger.Accept(m.plan(vm), placement.Limits{Quota: &quota})
	if len(why) == 0 {
		b.ledger.RollBack(m.ID, m.Deadline) // it was only asked
	}
	return why
}

// lacking is the decision about a request for which there is not enough of something that
// time may bring.
func lacking(r *placement.Request, why []placement.Reason) placement.Decision {
	d := placement.Decision{Outcome: placement.NoHost, Why: why, Code: placement.CapacityLacks}
	if r.Host != "" {
		d.Outcome = placement.Conflict
	}
	return d
}

// filters are the conditions that hosts are held against.
func (b *reservations) filters() []placement.Filter {
	switch {
	case b.config.Placement.Filters != nil:
		return b.config.Placement.Filters
	case b.detailed:
		return placement.AllFilters()
	}
	return basic
}

// basic are the conditions that are enough while the reservations are not detailed.
var basic = placement.Basic()

// Check returns every reason why a host does not take the VM.
func (b *reservations) Check(r *placement.Request, host hypervisor.HostName) []placement.Reason {
	b.notice(r.VM)
	h, known := b.index.Get(host)
	if !known {
		return []placement.Reason{{Check: "unknown", Need: "a known host", Have: string(host)}}
	}
	return placement.CheckAll(b.filters(), r.VM, &h, b.options(r))
}

// Histogram counts the hosts that do not take the VM, by reason.
func (b *reservations) Histogram(r *placement.Request) []placement.Count {
	b.notice(r.VM)
	o := b.options(r)
	active := placement.Active(b.filters(), r.VM, o)
	return placement.CountRefusals(active, r.VM, b.index.Hosts(), o)
}

// Refusals explains every host that does not take the VM, by name.
func (b *reservations) Refusals(r *placement.Request) []placement.Refusal {
	b.notice(r.VM)
	var all []placement.Refusal
	filters, o, hosts := b.filters(), b.options(r), b.index.Hosts()
	for i := range hosts {
		if why := placement.CheckAll(filters, r.VM, &hosts[i], o); len(why) > 0 {
			all = append(all, placement.Refusal{Host: hosts[i].Name, Why: why})
		}
	}
	slices.SortFunc(all, func(a, b placement.Refusal) int { return cmp.Compare(a.Host, b.Host) })
	return all
}
