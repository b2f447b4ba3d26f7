package sim

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// ledger is a world of which only the reservations are looked at.
type ledger struct {
	InvariantWorld
	vms    []*store.VM
	moves  map[hypervisor.VMID][]*store.Migration
	claims []placement.Reservation
}

func (l *ledger) Claims() []placement.Reservation                  { return l.claims }
func (l *ledger) Migrations(vm hypervisor.VMID) []*store.Migration { return l.moves[vm] }
func (l *ledger) VM(id hypervisor.VMID) *store.VM                  { return find(l.vms, id) }
func (l *ledger) VMs() (list []hypervisor.VMID)                    { return hostNames(l.vms) }

func find(vms []*store.VM, id hypervisor.VMID) *store.VM {
	for _, v := range vms {
		if v.VM.ID == id {
			return v
		}
	}
	return nil
}

func hostNames(vms []*store.VM) (list []hypervisor.VMID) {
	for _, v := range vms {
		list = append(list, v.VM.ID)
	}
	return list
}

func TestBooksAreTrue(t *testing.T) {
	vm := func(id hypervisor.VMID, host hypervisor.HostName) *store.VM {
		return &store.VM{VM: hypervisor.VM{ID: id, Memory: 1, CPUs: 1}, Host: host}
	}
	db, web := vm("db", "n1"), vm("web", "n2")
	amount := placement.AmountOf(db.Place())
	home := func(id hypervisor.VMID, host hypervisor.HostName) placement.Reservation {
		return placement.Reservation{VM: id, Host: host, Amount: amount}
	}
	coming := home("db", "n3")
	coming.By = "db#1"
	ended, open := &store.Migration{}, &store.Migration{}
	ended.Spec.ID, open.Spec.ID = "db#1", "db#1"
	ended.State.Phase, open.State.Phase = migration.Failed, migration.Running
	open.State.Target = "n3"
	off := vm("off", "n1")
	off.Ended = true
	for _, c := range []struct {
		name  string
		world ledger
		want  string // a part of what is said; "" is nothing
	}{
		{"every VM is at home", ledger{vms: []*store.VM{db, web},
			claims: []placement.Reservation{home("db", "n1"), home("web", "n2")}}, ""},
		{"one is on the way", ledger{vms: []*store.VM{db},
			moves:  map[hypervisor.VMID][]*store.Migration{"db": {open}},
			claims: []placement.Reservation{home("db", "n1"), coming}}, ""},
		{"one is still on the way and its migration has ended", ledger{vms: []*store.VM{db},
			moves:  map[hypervisor.VMID][]*store.Migration{"db": {ended}},
			claims: []placement.Reservation{home("db", "n1"), coming}}, "which has ended"},
		{"one is at home somewhere else", ledger{vms: []*store.VM{db},
			claims: []placement.Reservation{home("db", "n2")}}, "db is on n1, and holds"},
		{"one holds nothing", ledger{vms: []*store.VM{db, web},
			claims: []placement.Reservation{home("db", "n1")}}, "web is on n2, and holds"},
		{"one that is off holds nothing", ledger{vms: []*store.VM{off}}, ""},
		{"the first is gone", ledger{vms: []*store.VM{web},
			claims: []placement.Reservation{home("db", "n1"), home("web", "n2")}}, "db is gone"},
		{"the last is gone", ledger{vms: []*store.VM{db},
			claims: []placement.Reservation{home("db", "n1"), home("web", "n2")}}, "web is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := reservationsAreTrue(&c.world); err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
