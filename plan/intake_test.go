package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
)

const text = `
evictionStrategy: LiveMigrate
hosts:
- {name: n2, memory: 16GiB, cpus: 8}
- {name: n1, memory: 16GiB, cpus: 8}
- {name: dead, memory: 16GiB, cpus: 8, down: true}
vms:
- {name: b, host: n1, memory: 4GiB, overhead: 1GiB, apart: x}
- {name: a, host: n1, memory: 2GiB, whyNot: it has a GPU}
- {name: lost, host: dead, memory: 2GiB}
- {name: later, memory: 2GiB}
- {name: none, host: n1, memory: 1GiB, strategy: None}
- {name: may, host: n1, memory: 1GiB, strategy: LiveMigrateIfPossible, whyNot: it has a GPU}
- {name: could, host: n1, memory: 1GiB, strategy: LiveMigrateIfPossible}
`

func TestFleet(t *testing.T) {
	f, err := inventory.ReadFleet("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f.Migrations = []inventory.Migration{
		{Spec: migration.Spec{ID: "default/m", VM: "default/b"}, Chosen: "n2"}}
	p := plan.FromInventory(f)
	type vm struct {
		ID     hypervisor.VMID
		Home   hypervisor.HostName
		Pinned string
		Kept   bool
	}
	var got []vm
	for _, v := range p.VMs {
		got = append(got, vm{v.ID, v.Home, v.Pinned, len(v.Kept) > 0})
	}
	want := []vm{
		{"default/a", "n1", "it has a GPU", false},
		{"default/b", "n1", "", false},
		{"default/could", "n1", "", false},
		{"default/later", "", "", false},
		{"default/lost", "dead", "its host is down: it is started anew elsewhere, not moved",
			false},
		{"default/may", "n1", "if-possible: needs a migratable VM, has no: it has a GPU", true},
		{"default/none", "n1", "strategy: needs LiveMigrate or LiveMigrateIfPossible, has None",
			true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("VMs (-want +got):\n%s", diff)
	}
	n1, _ := p.HostAt("n1")
	n2, _ := p.HostAt("n2")
	if h := p.Hosts[n1]; h.UsedMemory != 10<<30 || h.Groups["x"] != 1 {
		t.Errorf("on n1: %+v", h)
	}
	if h := p.Hosts[n2]; h.UsedMemory != 0 || h.Incoming != 0 {
		t.Errorf("a migration that is taken as not begun takes room: %+v", h)
	}
	if len(p.Rules()) < 30 {
		t.Errorf("%d conditions, not all that the controller has", len(p.Rules()))
	}
}
