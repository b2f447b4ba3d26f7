package audit

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Records are what is stored, by key.
type Records map[store.Key]store.Record

// VM tells how a VM is, and on which host; "" when it is on none, or not known.
func (k Records) VM(id hypervisor.VMID) (text string, host hypervisor.HostName) {
	v, known := k[store.Key{Kind: store.VMKind, Name: string(id)}].(*store.VM)
	if !known {
		return "VM " + string(id) + " is not known", ""
	}
	return "VM " + string(id) + " " + About(v).What, v.Host
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
func underWay(m *store.Migration) bool {
	return migration.HoldsSlot(m.State.Phase, m.State.Target != "", true)
}

func (k Records) moves() func(func(*store.Migration) bool) {
	return func(yield func(*store.Migration) bool) {
		for _, r := range k {
			if m, is := r.(*store.Migration); is && !yield(m) {
				return
			}
		}
	}
}

// Host tells how a host is, what is on it, and what moves from and to it.
func (k Records) Host(name hypervisor.HostName) string {
	h, known := k[store.Key{Kind: store.HostKind, Name: string(name)}].(*store.Host)
	if !known {
		return "host " + string(name) + " is not known"
	}
	vms, memory, from, to := 0, hypervisor.Bytes(0), 0, 0
	for _, r := range k {
		if v, is := r.(*store.VM); is && v.Host == name && !v.Ended {
			vms, memory = vms+1, memory+v.Place().Demand()
		}
	}
	for m := range k.moves() {
		if underWay(m) && m.State.Source == name {
			from++
		}
		if underWay(m) && m.State.Target == name {
			to++
			if v, is := k[store.Key{Kind: store.VMKind,
				Name: string(m.Spec.VM)}].(*store.VM); is {
				memory += v.Place().Demand()
			}
		}
	}
	return fmt.Sprintf("host %s%s: %s and %s; %s, %s given away; %s from here, %d to here", name,
		strings.TrimPrefix(About(h).What, "host"), h.Host.Memory,
		humanize.Count(h.Host.CPUs, "CPU"), humanize.Count(vms, "VM"), memory,
		humanize.Count(from, "migration"), to)
}
