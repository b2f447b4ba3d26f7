package inventory_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Everything that is wrong with a file has its place.
func ExampleProblems() {
	const text = `
hosts:
- {name: n1, memory: 64, cpus: 16}
vms:
- {name: web, host: n9, memory: 8GiB}
`
	_, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(text))
	var all inventory.Problems
	if errors.As(err, &all) {
		for _, p := range all {
			fmt.Printf("%s, line %d, %s: %s\n", p.File, p.Line, p.Field, p.Message)
		}
	}
	// Output:
	// fleet.yaml, line 3, hosts[0].memory: "64" has no unit of memory; write 64GiB, 512MiB or 4KiB
	// fleet.yaml, line 5, vm default/web host: there is no host "n9"
}

// The policy of a VM, its destinations, and which VMs leave a host now.
func ExampleAsk() {
	const text = `
hosts:
- {name: n1, memory: 64GiB, cpus: 16, taints: ["kubevirt.io/drain:NoSchedule"]}
- {name: n2, memory: 64GiB, cpus: 16, zone: a}
- {name: n3, memory: 64GiB, cpus: 16, zone: b}
vms:
- {name: "web-[1-3]", host: n1, memory: 4GiB}
- {name: db, host: n1, memory: 32GiB, labels: {class: slow}, zones: b}
policies:
- {name: slow, selectors: {virtualMachineInstanceSelector: {class: slow}}, allowPostCopy: true}
`
	fleet, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	db := &fleet.VMs[0] // ordered by name
	options, policy := migration.ResolveOptions(fleet.Config, fleet.Policies, migration.Labels(db.Labels),
		migration.Labels(fleet.Namespaces[db.Namespace]))
	fmt.Printf("%s: policy %s, post-copy %v\n", db.ID, policy, options.AllowPostCopy)

	inquiry, _ := inventory.Ask(fleet, db.ID)
	answer := inquiry.Explain(&placement.Config{})
	fmt.Println(answer.Decision.Outcome, answer.Decision.Host)
	for _, h := range answer.Hosts {
		fmt.Println(h.Host, h.Why)
	}

	p := evacuation.Params{Mode: evacuation.FreeSpots, Limits: evacuation.DefaultLimits(),
		Strategy: fleet.EvictionStrategy}
	for _, h := range fleet.Hosts {
		var vms []evacuation.VM
		for i := range fleet.VMs {
			if v := &fleet.VMs[i]; v.Host == h.Name {
				vms = append(vms, inventory.EvacuationVM(v))
			}
		}
		// Of the migrations under way none is known here: see evacuation.Count.
		d := evacuation.Plan(p, evacuation.Host{Name: h.Name, Taints: h.Taints}, vms, evacuation.Load{})
		for _, c := range d.Create {
			fmt.Println("move", c.VM)
		}
		for _, s := range d.Stay {
			fmt.Println("later", s.VM, s.Reasons)
		}
	}
	// Output:
	// default/db: policy slow, post-copy true
	// accepted n3
	// n1 [source needs another host has the source n1 memory needs 32GiB has 20GiB taints needs toleration of kubevirt.io/drain:NoSchedule has none zone needs b has no zone]
	// n2 [zone needs b has a]
	// n3 []
	// move default/db
	// move default/web-1
	// later default/web-2 [spots needs one has 2 free for 4 VMs (taken: 0 of 5 in the cluster, 0 of 2 from the host)]
	// later default/web-3 [spots needs one has 2 free for 4 VMs (taken: 0 of 5 in the cluster, 0 of 2 from the host)]
}
