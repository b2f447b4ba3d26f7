package sim_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// drainsOf plays a scenario on three hosts.
func drainsOf(t *testing.T, text string) sim.Result {
	t.Helper()
	s, err := config.Parse("f", []byte(`
hosts: [{name: "n[1-3]", memory: 64GiB, cpus: 16, link: 10Gbit/s}]
`+text))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	return w.Result()
}

func TestADrainThatNoVMLeavesIsNoneThatOneHasLeft(t *testing.T) {
	r := drainsOf(t, `
vms:
- {name: "a-[1-2]", host: n1, memory: 4GiB, cpus: 2, class: idle}
- {name: gpu, host: n2, memory: 4GiB, cpus: 2, class: idle, whyNot: GPU}
events: [0s cordon n2, 0s drain n1, 1h drain n2]
`)
	if first, last, left := r.Drained(); first != 0 || !left || last < 2 || last > 4 || r.Evacuations[1].LastSeconds != nil {
		t.Errorf("drained from %v to %v, %t: %+v", first, last, left, r.Evacuations)
	}
}

func TestASecondDrainLeavesTheFirstAsItWas(t *testing.T) {
	r := drainsOf(t, `
vms:
- {name: a, host: n1, memory: 16GiB, class: idle}
events: [0s cordon n3, 1s drain n1, 20m undrain n1, 21m drain n2, 40m undrain n2, 41m drain n1]
`)
	var starts []float64
	for _, e := range r.Evacuations {
		starts = append(starts, e.StartSeconds)
		if e.EmptySeconds == nil || *e.EmptySeconds-e.StartSeconds > 10 || len(e.Left) > 0 ||
			e.Withdrawn != (e.StartSeconds < 41*60) {
			t.Errorf("%+v", e)
		}
	}
	first, last, _ := r.Drained()
	if len(starts) != 3 || starts[0] != 1 || starts[1] != 21*60 || starts[2] != 41*60 || first != 1 || last < 41*60 {
		t.Errorf("drains begin at %v: from %v to %v", starts, first, last)
	}
}
