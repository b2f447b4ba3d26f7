package simtest

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

// Loads. Those that converge do so on every link that a fleet has here; endless ones write
// more than a downtime carries, faster than any link carries it.
var (
	converging = []inventory.LoadSpec{{Class: "idle"}, {Class: "web"},
		{Dirty: "20MiB/s", WorkingSet: "256MiB"}}
	endless = []inventory.LoadSpec{{Dirty: "4GiB/s"}, {Dirty: "2GiB/s", WorkingSet: "768MiB"}}
	busy    = []inventory.LoadSpec{{Class: "in-memory"}, {Class: "busy"}}
)

// loads gives every VM one of the loads.
func loads(name string, all []inventory.LoadSpec, holds func(*World) error) Part {
	return Part{name, func(m *Builder) {
		for i := range m.World.VMs {
			m.World.VMs[i].LoadSpec = all[m.Choose("load", len(all))]
		}
	}, holds}
}

// Converging lets every VM write so little that its migration ends by copying alone, on
// whatever link, even if that carries another one.
func Converging() Part {
	return loads("VMs that converge", converging, func(w *World) error {
		return w.eachLoad(func(v *inventory.VM, slowest, _ hypervisor.Bandwidth) error {
			if v.Workload.Rate+v.Workload.ColdRate > slowest/2 {
				return fmt.Errorf("%s writes %v and its link carries %v", v.ID, v.Workload.Rate,
					slowest)
			}
			return nil
		})
	})
}

// downtime is the longest that [Means] never allows: what is carried in it is no working set
// of an endless load.
const downtimeMs = 300

// Endless lets every VM write more than a downtime of 300 ms carries, faster than any link:
// its migration never ends by copying alone.
func Endless() Part {
	return loads("VMs that do not converge", endless, func(w *World) error {
		return w.eachLoad(func(v *inventory.VM, _, fastest hypervisor.Bandwidth) error {
			hot := v.Workload.Hot
			if hot == 0 {
				hot = v.Memory
			}
			carried := hypervisor.Bytes(float64(fastest) * downtimeMs / 1000)
			if v.Workload.Rate <= fastest || hot <= carried {
				return fmt.Errorf("%s writes %v of %v, and the link carries %v", v.ID,
					v.Workload.Rate, hot, fastest)
			}
			return nil
		})
	})
}

// AnyLoad lets some VMs converge and others not, or hardly.
func AnyLoad() Part {
	return loads("VMs of any load", slices.Concat(converging, endless, busy), nil)
}

// eachLoad judges the load of every VM, with the speed of the slowest and the fastest link.
func (w *World) eachLoad(judge func(_ *inventory.VM, slowest, fastest hypervisor.Bandwidth) error,
) error {
	s, err := w.Scenario("world")
	if err != nil {
		return err
	}
	slowest, fastest := hypervisor.Bandwidth(0), hypervisor.Bandwidth(0)
	for _, h := range s.Fleet.Hosts {
		if slowest == 0 || h.Link < slowest {
			slowest = h.Link
		}
		fastest = max(fastest, h.Link)
	}
	for i := range s.Fleet.VMs {
		if err := judge(&s.Fleet.VMs[i], slowest, fastest); err != nil {
			return err
		}
	}
	return nil
}
