package inventory_test

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/inventory"
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
