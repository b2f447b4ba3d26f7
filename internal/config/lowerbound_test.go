package config_test

import "testing"

// What a run took is not much more than the lower bound, and never less.
func TestTheLowerBoundIsOne(t *testing.T) {
	const two = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}]
vms: [{name: a, host: n1, memory: 8GiB, cpus: 2, class: idle, labels: {x: y}}]
`
	for _, test := range []struct {
		name, text string
		most       float64 // how much more it took
	}{
		{"memory is compressed", two + `
policies: [{name: p, selectors: {virtualMachineInstanceSelector: {x: y}}, experimental: {compression: zstd}}]
events: [1s drain n1]
`, 1.6}, // the processors are slower than the link
		{"all migrations share a network", `
hosts: [{name: "n[1-6]", memory: 64GiB, cpus: 16, link: 10Gbit/s}]
vms: [{name: "a-[1-3]", host: "n[1-3]", memory: 8GiB, cpus: 2, class: idle}]
network: {speed: 1Gbit/s}
events: [1s drain n1, 1s drain n2, 1s drain n3]
`, 1.1},
		{"the VM is started anew, larger, after it has moved", two + `
events: [1s drain n1, 5m resize a memory=32GiB, 6m stop a, 7m start a]
`, 1.2},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ran(t, test.text)
			took := 0.0
			for _, e := range r.Evacuations {
				took = max(took, *e.EmptySeconds)
			}
			if bound := r.LowerBoundSeconds; bound <= 0 || took < bound || took > bound*test.most {
				t.Errorf("it took %vs, with a lower bound of %vs", took, bound)
			}
		})
	}
}
