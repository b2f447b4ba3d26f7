package whatif_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
)

// A host with one large and one small VM is to be empty within a minute, whatever the
// speed of its link.
func ExampleAsk() {
	s, err := config.Parse("rack.yaml", []byte(`
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: web, host: n1, memory: 4GiB, class: web}
- {name: db, host: n1, memory: 16GiB, class: idle}
vary: {link: "uniform(0.5, 1)"}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := whatif.Ask(context.Background(), s, whatif.Question{
		Hosts: []hypervisor.HostName{"n1"}, Samples: 20,
		Goal: &whatif.Goal{Within: time.Minute, Confidence: 0.9, Samples: 20},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, move := range f.Waves[0] {
		fmt.Printf("%s to %s\n", move.VM, move.Target)
	}
	fmt.Printf("empty in %d of %d worlds\n", f.Samples.Empty, f.Samples.Runs)
	fmt.Println("in time:", f.Deadline.Met)
	// Output:
	// default/db to n2
	// default/web to n3
	// empty in 20 of 20 worlds
	// in time: true
}
