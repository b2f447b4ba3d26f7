package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Limit is how much of a resource a quota allows, in bytes, in thousandths of CPUs or as a
// number.
type QuotaLimit struct {
	Quota    string // "namespace/name"
	Resource string // "limits.memory", as Kubernetes names it
	Hard     int64
	// Others is what is used of it besides what the VMs are charged: by other pods.
	Others int64
}

// A Charge is what one copy of a VM takes of one resource of one quota.
type QuotaCharge struct {
	Quota, Resource string
	Amount          int64
}

// key names one resource of one quota.
type key struct{ quota, resource string }

// QuotaUsage is how much of its limits a fleet uses. It belongs to one caller; [NewQuotaUsage] makes it.
type QuotaUsage struct {
	limits map[key]QuotaLimit
	used   map[key]int64
	copies map[hypervisor.VMID]held
}

// held is what a VM is charged, so many times.
type held struct {
	charges []QuotaCharge
	copies  int
}

// NewQuotaUsage returns the usage of limits, of which only others use something.
func NewQuotaUsage(limits []QuotaLimit) *QuotaUsage {
	u := &QuotaUsage{limits: make(map[key]QuotaLimit, len(limits)), used: map[key]int64{},
		copies: map[hypervisor.VMID]held{}}
	for _, l := range limits {
		k := key{l.Quota, l.Resource}
		u.limits[k], u.used[k] = l, l.Others
	}
	return u
}

// Set takes in how many copies of a VM exist, instead of what was said before.
func (u *QuotaUsage) Set(vm hypervisor.VMID, charges []QuotaCharge, copies int) {
	old := u.copies[vm]
	u.add(old.charges, -old.copies)
	delete(u.copies, vm)
	if copies > 0 && len(charges) > 0 {
		u.add(charges, copies)
		u.copies[vm] = held{charges, copies}
	}
}

func (u *QuotaUsage) add(charges []QuotaCharge, times int) {
	for _, c := range charges {
		u.used[key{c.Quota, c.Resource}] += int64(times) * c.Amount
	}
}

// Lacks returns a reason for every limit that does not admit one more copy of a VM; none is
// that all do. A charge of 0 is always admitted.
func (u *QuotaUsage) Lacks(charges []QuotaCharge) []hypervisor.Reason {
	var why []hypervisor.Reason
	for _, c := range charges {
		k := key{c.Quota, c.Resource}
		l, bounded := u.limits[k]
		if !bounded || c.Amount <= 0 || u.used[k]+c.Amount <= l.Hard {
			continue
		}
		why = append(why, hypervisor.Reason{Check: "quota", Need: quotaText(c.Resource, c.Amount) +
			" more of " + c.Resource + " for a second copy", Have: fmt.Sprintf(
			"%s used of %s in quota %s", quotaText(c.Resource, u.used[k]), quotaText(c.Resource, l.Hard),
			l.Quota)})
	}
	return why
}

// quotaText writes an amount of a resource: memory and storage in bytes, CPUs, or a number.
func quotaText(resource string, amount int64) string {
	switch {
	case IsCPU(resource) && amount%1000 == 0:
		return fmt.Sprintf("%d CPUs", amount/1000)
	case IsCPU(resource):
		return fmt.Sprintf("%dm CPUs", amount)
	case IsBytes(resource):
		return hypervisor.Bytes(amount).String()
	}
	return fmt.Sprint(amount)
}

// IsCPU reports whether a resource is counted in thousandths of CPUs.
func IsCPU(resource string) bool {
	return slices.Contains([]string{"cpu", "requests.cpu", "limits.cpu"}, resource)
}

// IsBytes reports whether a resource is counted in bytes.
func IsBytes(resource string) bool {
	_, resource, _ = strings.Cut("."+resource, ".")
	resource = strings.TrimPrefix(strings.TrimPrefix(resource, "requests."), "limits.")
	return resource == "memory" || strings.HasSuffix(resource, "storage") ||
		strings.HasPrefix(resource, "hugepages-")
}
