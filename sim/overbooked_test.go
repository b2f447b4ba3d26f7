package sim_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Of the hosts n1 is overbooked when the world begins. As long as nothing comes to it that is as it was
// set up.
func TestOnlyWhatComesToAnOverbookedHostOverbooksIt(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*store.VM) // of the VM on n2
		broken bool
	}{
		{"nothing changes", nil, false},
		{"a VM comes", func(v *store.VM) { v.Host = "n1" }, true},
		{"a VM grows somewhere else", func(v *store.VM) { v.Overhead++ }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := sim.New(sim.Config{})
			w.Network().Overcommit()
			for _, h := range []hypervisor.HostName{"n1", "n2"} {
				if err := w.AddHost(store.Host{Host: hypervisor.Host{Name: h, Memory: 4 * hypervisor.GiB, CPUs: 8,
					Link: hypervisor.Gbit}}); err != nil {
					t.Fatal(err)
				}
			}
			for id, host := range map[hypervisor.VMID]hypervisor.HostName{"a": "n1", "b": "n1", "c": "n1", "d": "n2"} {
				if err := w.AddVM(store.VM{VM: hypervisor.VM{ID: id, Memory: 2 * hypervisor.GiB, CPUs: 1},
					Host: host, Migratable: true}, fake.Workload{}); err != nil {
					t.Fatal(err)
				}
			}
			s := sabotaged{w, t}
			w.Run(time.Minute)
			if w.CheckAtRest(); len(w.Violations()) > 0 {
				t.Fatalf("before: %v", w.Violations())
			}
			s.silence()
			if test.change != nil {
				v := *w.VM("d")
				test.change(&v)
				s.put(&v)
			}
			w.CheckAtRest()
			broken := false
			for _, v := range w.Violations() {
				broken = broken || v.Invariant == "not-overbooked"
			}
			if broken != test.broken {
				t.Errorf("overbooked: %t, want %t: %v", broken, test.broken, w.Violations())
			}
		})
	}
}
