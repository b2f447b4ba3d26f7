package sweep

import (
	"cmp"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// VMOutages is how long a VM that should run did not, over the samples of a combination: all its
// outages in a sample together, 0 in a sample without any.
type VMOutages struct {
	VM      hypervisor.VMID `json:"vm"`
	Samples int             `json:"samples"` // in which it had an outage
	Down    int             `json:"down"`    // in which it was down at the end
	Mean    float64         `json:"meanSeconds"`
	P50     float64         `json:"p50Seconds"`
	P99     float64         `json:"p99Seconds"`
	Max     float64         `json:"maxSeconds"`
}

// outagesByVM sums up the outages of each VM, the VM with the longest mean first.
func outagesByVM(samples []Sample) []VMOutages {
	seconds, down := map[hypervisor.VMID][]float64{}, map[hypervisor.VMID]int{}
	for i := range samples {
		for _, o := range samples[i].OutagesByVM {
			seconds[o.VM] = append(seconds[o.VM], o.Seconds)
			if o.Down {
				down[o.VM]++
			}
		}
	}
	list := make([]VMOutages, 0, len(seconds))
	for vm, of := range seconds {
		had := len(of)
		of = append(of, make([]float64, len(samples)-had)...)
		slices.Sort(of)
		list = append(list, VMOutages{VM: vm, Samples: had, Down: down[vm], Mean: rounded(mean(of)),
			P50: Quantile(of, 0.5), P99: Quantile(of, 0.99), Max: Quantile(of, 1)})
	}
	slices.SortFunc(list, func(a, b VMOutages) int {
		return cmp.Or(cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.VM, b.VM))
	})
	return list
}
