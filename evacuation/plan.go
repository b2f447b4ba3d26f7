package evacuation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Decision is what is to be done about one host now. Every VM that must leave
// is either in Create or in Stay.
type Decision struct {
	// Create are the migrations to create, first to go first.
	Create []MigrationRequest
	// Stop are the VMs to shut down now, by ID: they cannot be migrated. They are in Stay, too.
	Stop []Stop
	// Warn names VMs whose owners should now be told that they block the drain,
	// by ID. It repeats itself: tell on a change.
	Warn []hypervisor.VMID
	// Stay are the VMs that must leave and get no migration now: first those
	// that something keeps, by ID, then those that wait, first to go first.
	Stay []RemainingVM
	// Again is when to look again even if nothing changes; 0 is never.
	Again time.Duration
}

// A MigrationRequest asks for a migration of a VM.
type MigrationRequest struct {
	VM       hypervisor.VMID
	Priority migration.Priority
}

// A RemainingVM is a VM that must leave and stays for now.
type RemainingVM struct {
	VM hypervisor.VMID
	// Blocks: it must be migrated and cannot be; the host will not become empty
	// until an operator acts.
	Blocks bool
	// Waits: nothing is wrong with it; only a spot is missing.
	Waits   bool
	Reasons []placement.Reason // all of them, in the order of the checks
}

// When to look again.
// Source: KubeVirt v1.8.4 evacuation.go:376-420 (sync).
const (
	whenFull    = 5 * time.Second // spots are missing
	whenBlocked = time.Minute     // VMs cannot migrate; an operator may help
)

// Plan decides which VMs of the host get a migration now. It is total and
// deterministic: the order of the VMs does not matter. Every VM is on the
// host. One that is given several times is planned once; where its copies differ,
// what keeps it on the host counts.
//
// While the host is missing, or a creation has not been seen yet, it decides
// nothing and gives no reasons either.
// Source: KubeVirt v1.9.0 evacuation.go:416 (sync), v1.8.4 evacuation.go:376.
func Plan(p Params, host Host, vms []VM, load Load) Decision {
	if host.Missing || load.Unseen > 0 {
		return Decision{}
	}
	vms = p.distinct(vms)
	candidates, stay, stop := sortOut(p, host, vms)
	var blocked []hypervisor.VMID
	for _, l := range stay {
		if l.Blocks {
			blocked = append(blocked, l.VM)
		}
	}
	share := p.allot(load, len(candidates), len(blocked))
	d := Decision{
		Create: p.creations(candidates[:share.create]),
		Stop:   stop,
		Warn:   blocked[:share.warn],
		Stay:   p.waiting(stay, candidates[share.create:], load),
		Again:  share.again,
	}
	if len(d.Warn) == 0 {
		d.Warn = nil
	}
	return d
}

// Keeps returns every reason why a VM gets no migration when its host is drained; none is that it
// gets one.
func Keeps(p Params, g VM) []placement.Reason { return reasons(p, &g) }

// sortOut separates the VMs that must leave into the candidates, first to go
// first, and those that stay, by ID, with those of them that are to be shut down.
func sortOut(p Params, host Host, vms []VM) (candidates []*VM, stay []RemainingVM, stop []Stop) {
	all := p.Draining(host)
	for i := range vms {
		g := &vms[i]
		if !all && !marked(host, g) {
			continue
		}
		if r := stays(p, g); r != nil {
			l := RemainingVM{VM: g.ID, Blocks: r.blocks, Reasons: reasons(p, g)}
			s, why, now := p.stop(host, g, r)
			if why != nil {
				l.Reasons = append(l.Reasons, *why)
			}
			if stay = append(stay, l); now {
				stop = append(stop, s)
			}
			continue
		}
		candidates = append(candidates, g)
	}
	slices.SortFunc(candidates, func(a, b *VM) int { return p.compare(host.Link, a, b) })
	slices.SortFunc(stay, func(a, b RemainingVM) int { return cmp.Compare(a.VM, b.VM) })
	slices.SortFunc(stop, func(a, b Stop) int { return cmp.Compare(a.VM, b.VM) })
	return candidates, stay, stop
}

// An allotment says how many candidates get a migration and how many blocked
// VMs a notice.
type allotment struct {
	create, warn int
	again        time.Duration
}

// allot shares out the free spots: to candidates first, and what is left over,
// in KubeVirt, to notices about VMs that cannot migrate.
// Source: KubeVirt v1.8.4 evacuation.go:376-420 (sync), v1.9.0 :438 (all).
func (p Params) allot(load Load, candidates, blocked int) allotment {
	if p.Mode == QueueAll && p.Compatible {
		return allotment{create: candidates}
	}
	free := candidates
	if p.Mode != QueueAll {
		free = p.Limits.Free(load.InCluster, load.FromHost)
	}
	create := min(free, candidates)
	warn := blocked
	if p.Compatible {
		warn = min(free-create, blocked)
	}
	return allotment{create, warn, p.again(free, candidates, warn, blocked)}
}

// again says when to look again, given how many spots are free, how many want
// one, and how many notices about blocked VMs are given.
// Source: KubeVirt v1.8.4 evacuation.go:376-420 (sync).
func (p Params) again(free, candidates, warn, blocked int) time.Duration {
	if p.Compatible {
		switch {
		case candidates+blocked == 0:
			return 0
		case free == 0:
			return whenFull
		case candidates == 0 && warn > 0:
			return whenBlocked
		}
		return 0 // also with candidates left over: later events continue
	}
	switch {
	case free < candidates:
		return whenFull
	case blocked > 0:
		return whenBlocked
	}
	return 0
}

func (p Params) creations(candidates []*VM) []MigrationRequest {
	if len(candidates) == 0 {
		return nil
	}
	create := make([]MigrationRequest, len(candidates))
	for i, g := range candidates {
		create[i] = MigrationRequest{VM: g.ID, Priority: g.priority()}
		if p.Compatible && p.Mode != QueueAll {
			create[i].Priority = migration.Lowest
		}
	}
	return create
}

// waiting adds the candidates that get no spot. They share one reason.
func (p Params) waiting(stay []RemainingVM, candidates []*VM, load Load) []RemainingVM {
	if len(candidates) == 0 {
		return stay
	}
	free := p.Limits.Free(load.InCluster, load.FromHost)
	why := []placement.Reason{{
		Check: "spots",
		Need:  "one",
		Have: fmt.Sprintf("%d free for %d VMs (taken: %d of %d in the cluster, "+
			"%d of %d from the host)", free, free+len(candidates),
			load.InCluster, p.Limits.PerCluster, load.FromHost, p.Limits.PerNode),
	}}
	stay = slices.Grow(stay, len(candidates))
	for _, g := range candidates {
		stay = append(stay, RemainingVM{VM: g.ID, Waits: true, Reasons: why})
	}
	return stay
}
