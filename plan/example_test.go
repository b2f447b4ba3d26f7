package plan_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// Two moves of which neither is in the way of the other are one wave.
func Example() {
	f := &plan.Fleet{Hosts: []placement.Host{{Name: "n1", Memory: 8, UsedMemory: 6}, {Name: "n2", Memory: 8}},
		VMs: []plan.VM{{VM: placement.VM{ID: "db", Memory: 4}, Home: "n1"},
			{VM: placement.VM{ID: "web", Memory: 2}, Home: "n1"}}}
	waves, ok := plan.Waves(plan.Begin(f), []plan.Move{
		{VM: "db", Source: "n1", Target: "n2"}, {VM: "web", Source: "n1", Target: "n2"}})
	fmt.Println(ok, len(waves), plan.Count(waves))
	// Output:
	// true 1 2
}
