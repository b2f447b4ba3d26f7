package sim_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// pending has worlds in which nothing happens for longer than 20 minutes, and then something does.
var pending = []struct {
	name, text string
	ended      func(*sim.Result) bool
}{
	{"a back-off of 30 minutes", `
hosts:
- {name: "n[1-2]", memory: 256GiB, cpus: 32, link: 1Gbit/s}
vms:
- {name: a, host: n1, memory: 16GiB, cpus: 2, class: idle, labels: {x: "y"}}
- {name: big, host: n1, memory: 48GiB, cpus: 2, class: web}
policies:
- {name: p, selectors: {virtualMachineInstanceSelector: {x: "y"}}, completionTimeoutPerGiB: 5s}
backoff: {base: 30m, cap: 2h}
events: [1s drain n1]
`, empty},
	{"a back-off of KubeVirt, that has no cap", `
hosts:
- {name: "n[1-2]", memory: 256GiB, cpus: 32, link: 1Gbit/s}
vms:
- {name: a, host: n1, memory: 8GiB, cpus: 2, class: idle}
compatible: true
backoff: {base: 30m}
events: [1s migrate a to=n2, 5s kill a n2, 10s drain n1]
`, empty},
	{"a disk is copied for 28 minutes", `
hosts:
- {name: "n[1-2]", memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: a, host: n1, memory: 4GiB, class: idle, hardware: {disks: [{name: data, path: /nfs/old, size: 200GiB}]}}
events: [10s move-disk a data path=/nfs/new, 20s drain n1]
`, empty},
	{"a disk is copied for 10 hours", `
hosts:
- {name: "n[1-2]", memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: a, host: n1, memory: 4GiB, class: idle, hardware: {disks: [{name: data, path: /nfs/old, size: 4TiB}]}}
events: [10s move-disk a data path=/nfs/new, 20s drain n1]
`, empty},
	{"a VM starts for 45 minutes", `
hosts:
- {name: n1, memory: 64GiB, cpus: 32, link: 1Gbit/s}
vms:
- {name: a, host: n1, memory: 4GiB, cpus: 2, class: idle}
model: {bootTime: 45m}
events: [1s stop a, 10m start a]
`, up},
	{"a silent host is fenced after three hours", `
hosts:
- {name: "n[1-5]", memory: 64GiB, cpus: 32, link: 1Gbit/s}
vms:
- {name: a, host: n1, memory: 4GiB, cpus: 2, class: idle}
failover: {fenceAfter: 3h}
events: [1s crash n1]
`, up},
}

func empty(r *sim.Result) bool { return r.Evacuations[0].EmptySeconds != nil }
func up(r *sim.Result) bool    { return len(r.Down) == 0 }

func TestAWorldIsNotAtRestWhileSomethingIsPending(t *testing.T) {
	for _, tt := range pending {
		s, err := config.Parse(tt.name, []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		end := w.Run(s.Until)
		w.CheckAtRest()
		if r := w.Result(); end != sim.AtRest || !tt.ended(&r) || len(r.Violations) > 0 {
			t.Errorf("%s: %v at %.0fs: %+v, down %v, %v", tt.name, end, r.VirtualSeconds, r.Evacuations, r.Down, r.Violations)
		}
	}
}
