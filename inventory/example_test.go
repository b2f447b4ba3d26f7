package inventory_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A fleet is read from a few lines; ranges name many hosts and VMs.
func Example() {
	const text = `
hosts:
- {name: "n[1-4]", memory: 256GiB, cpus: 64, link: 25Gbit/s}
vms:
- {name: "web-[1-20]", host: "n[1-4]", memory: 8GiB, cpus: 4, class: web}
`
	fleet, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(text))
	if err != nil {
		fmt.Println(err) // file, line and field of everything that is wrong
		return
	}
	fmt.Println(len(fleet.Hosts), "hosts,", len(fleet.VMs), "VMs,", fleet.VMs[0].ID, "on", fleet.VMs[0].Host)
	// Output:
	// 4 hosts, 20 VMs, default/web-1 on n1
}

// Every problem of a file has its place.
func ExampleProblems() {
	_, err := inventory.ReadFleet("fleet.yaml", strings.NewReader("hosts:\n- {name: n1, memory: 64}\n"))
	if problems, are := errors.AsType[inventory.Problems](err); are {
		for _, p := range problems {
			fmt.Println(p.File, p.Line, p.Field)
		}
	}
	// Output:
	// fleet.yaml 2 hosts[0].memory
	// fleet.yaml 2 hosts[0].cpus
}

// What is decided for the VMs of a file: which options a migration has, where a VM can go, and which VMs leave a
// host now.
func ExampleAsk() {
	const text = `
evictionStrategy: LiveMigrate
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 16}
vms:
- {name: "web-[1-3]", host: n1, memory: 8GiB, cpus: 2, labels: {tier: web}}
- {name: db, host: n2, memory: 60GiB, cpus: 8}
policies:
- {name: fast, selectors: {virtualMachineInstanceSelector: {tier: web}}, allowPostCopy: true}
`
	fleet, err := inventory.ReadFleet("fleet.yaml", strings.NewReader(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range fleet.VMs {
		options, policy := migration.ResolveOptions(fleet.Config, fleet.Policies, migration.Labels(v.Labels),
			migration.Labels(fleet.Namespaces[v.Namespace]))
		ask, _ := inventory.Ask(fleet, v.ID)
		answer := ask.Explain(&placement.Config{Filters: placement.AllFilters(), Weighers: placement.Spread()})
		fmt.Println(v.ID, "by policy", policy, "post-copy", options.AllowPostCopy, "goes to", answer.Decision.Host)
		for _, host := range answer.Hosts {
			for _, why := range host.Why {
				fmt.Println("  not to", host.Host, why.Check, why.Need, why.Have)
			}
		}
	}

	host := evacuation.Host{Name: "n1", Taints: []placement.Taint{
		{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}}
	var vms []evacuation.VM
	for i := range fleet.VMs {
		if fleet.VMs[i].Host == host.Name {
			vms = append(vms, inventory.EvacuationVM(&fleet.VMs[i]))
		}
	}
	params := evacuation.Params{Strategy: fleet.EvictionStrategy, Mode: evacuation.FreeSpots,
		Limits: evacuation.DefaultLimits()}
	var now []hypervisor.VMID
	for _, c := range evacuation.Plan(params, host, vms, evacuation.Load{}).Create {
		now = append(now, c.VM)
	}
	fmt.Println("leave", host.Name, "now:", now)
	// Output:
	// default/db by policy  post-copy false goes to n3
	//   not to n1 memory 60GiB 40GiB
	//   not to n2 source another host the source n2
	//   not to n2 memory 60GiB 4GiB
	// default/web-1 by policy fast post-copy true goes to n3
	//   not to n1 source another host the source n1
	//   not to n2 memory 8GiB 4GiB
	// default/web-2 by policy fast post-copy true goes to n3
	//   not to n1 source another host the source n1
	//   not to n2 memory 8GiB 4GiB
	// default/web-3 by policy fast post-copy true goes to n3
	//   not to n1 source another host the source n1
	//   not to n2 memory 8GiB 4GiB
	// leave n1 now: [default/web-1 default/web-2]
}
