package config_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/internal/config"
)

// What happens to two VMs when their host is drained?
func ExampleParse() {
	s, err := config.Parse("drain.yaml", []byte(`
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: "web-[1-2]", host: n1, memory: 8GiB, cpus: 4, class: web}
events:
- 10s drain n1
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := s.Build(s.Config(s.Seed))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Run(s.Until))
	r := w.Result()
	fmt.Println(r.Migrations.Succeeded, "of", r.Migrations.Total, "succeeded")
	for _, e := range r.Evacuations {
		fmt.Println(e.Host, "is empty:", e.EmptySeconds != nil)
	}
	// Output:
	// at rest
	// 2 of 2 succeeded
	// n1 is empty: true
}

// What is wrong with a scenario is said with its place.
func ExampleParse_problems() {
	_, err := config.Parse("drain.yaml", []byte(`
hosts:
- {name: n1, memory: 64GiB, cpus: 16}
mode: Everything
events:
- 10s drain n2
`))
	fmt.Println(err)
	// Output:
	// drain.yaml:4: mode: unknown mode "Everything"; use QueueAll or FreeSpots
	// drain.yaml:6: events[0]: there is no host "n2"
}

func ExampleScenario_Event() {
	s, err := config.Parse("s.yaml", []byte("hosts: [{name: n1, memory: 1GiB, cpus: 1}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	e, _ := s.Event("1m30s crash-agent n1 for=10s")
	fmt.Printf("%v %T\n", e.At, e.What)
	_, err = s.Event("crash-agent n1")
	fmt.Println(err)
	// Output:
	// 1m30s sim.CrashAgent
	// for=TIME is missing: how long does it last?
}
