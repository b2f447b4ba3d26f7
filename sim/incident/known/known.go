// Package known tells people what is in a store's records: how hosts and VMs are, what moves,
// and in which fields two records differ.
package known

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/daemon/audit"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/words"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
)

// Records are what is stored, by key.
type Records map[record.Key]record.Record

// VM tells how a VM is, and on which host; "" when it is on none, or not known.
func (k Records) VM(id hypervisor.VMID) (text string, host hypervisor.HostName) {
	v, known := k[record.Key{Kind: record.VMKind, Name: string(id)}].(*record.VM)
	if !known {
		return "VM " + string(id) + " is not known", ""
	}
	return "VM " + string(id) + " " + audit.About(v).What, v.Host
}

// UnderWay counts the migrations that have a target and have not ended.
func (k Records) UnderWay() int {
	n := 0
	for m := range k.moves() {
		if underWay(m) {
			n++
		}
	}
	return n
}

// underWay reports whether a migration has a target and has not ended.
func underWay(m *record.Migration) bool {
	return migration.HoldsSlot(m.State.Phase, m.State.Target != "", true)
}

func (k Records) moves() func(func(*record.Migration) bool) {
	return func(yield func(*record.Migration) bool) {
		for _, r := range k {
			if m, is := r.(*record.Migration); is && !yield(m) {
				return
			}
		}
	}
}

// Host tells how a host is, what is on it, and what moves from and to it.
func (k Records) Host(name hypervisor.HostName) string {
	h, known := k[record.Key{Kind: record.HostKind, Name: string(name)}].(*record.Host)
	if !known {
		return "host " + string(name) + " is not known"
	}
	vms, memory, from, to := 0, hypervisor.Bytes(0), 0, 0
	for _, r := range k {
		if v, is := r.(*record.VM); is && v.Host == name && !v.Ended {
			vms, memory = vms+1, memory+v.Place().Demand()
		}
	}
	for m := range k.moves() {
		if underWay(m) && m.State.Source == name {
			from++
		}
		if underWay(m) && m.State.Target == name {
			to++
			if v, is := k[record.Key{Kind: record.VMKind,
				Name: string(m.Spec.VM)}].(*record.VM); is {
				memory += v.Place().Demand()
			}
		}
	}
	return fmt.Sprintf("host %s%s: %s and %s; %s, %s given away; %s from here, %d to here", name,
		strings.TrimPrefix(audit.About(h).What, "host"), h.Host.Memory,
		words.Count(h.Host.CPUs, "CPU"), words.Count(vms, "VM"), memory,
		words.Count(from, "migration"), to)
}
