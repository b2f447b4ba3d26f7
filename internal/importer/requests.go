package importer

import (
	"cmp"
	"math"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
)

// podAsk is what the pod of a VM asks of its node. What the configuration decides is not known
// before all objects have been read.
type podAsk struct {
	memory  hypervisor.Bytes // requested explicitly; 0 is by the guest's memory
	whole   bool             // its memory is not overcommitted
	milli   int64            // thousandths of CPUs requested explicitly; -1 is by its CPUs
	shared  int64            // virtual CPUs, and threads for I/O, that share CPUs
	own     int64            // CPUs of its own
	limits  kubeobject.ResourceList
	devices map[kubeobject.ResourceName]int64
	class   string // of its priority
	name    string // its namespace
	pages   string // the size of its huge pages; "" is ordinary memory
	beside  overhead
}

// podAsk reads what the pod asks for. What is limited and not requested is requested, too.
// Source: KubeVirt v1.8.0 services/renderresources.go (NewResourceRenderer and its options);
// defaults/defaults.go (setDefaultResourceRequests).
func (o *object) podAsk(vmi *kubeobject.VirtualMachineInstance, cpus int) podAsk {
	const at = "spec.domain.resources."
	domain := &vmi.Spec.Domain
	ask := podAsk{milli: -1, limits: domain.Resources.Limits, class: vmi.Spec.PriorityClassName,
		name: vmi.Namespace, devices: map[kubeobject.ResourceName]int64{}}
	ask.beside = o.overheadOf(vmi, cpus)
	if m := domain.Memory; m != nil && m.Hugepages != nil {
		ask.pages = m.Hugepages.PageSize
	}
	ask.whole = ask.pages != "" || vmi.IsCPUDedicated()
	if q, field := explicit(domain, kubeobject.ResourceMemory); q != nil {
		ask.memory = max(0, o.bytes(at+field, q))
	}
	if q, field := explicit(domain, kubeobject.ResourceCPU); q != nil {
		ask.milli = o.millis(at+field, q)
	}
	threads := int64(cpus)
	if t := domain.IOThreads; t != nil && t.SupplementalPoolThreadCount != nil {
		threads += int64(min(*t.SupplementalPoolThreadCount, maxCPUs))
	}
	if !vmi.IsCPUDedicated() {
		ask.shared = threads
		return ask
	}
	ask.own = threads
	if domain.CPU.IsolateEmulatorThread {
		ask.own++
	}
	return ask
}

// explicit returns what is requested or, without a request, limited, and where it says so.
func explicit(d *kubeobject.DomainSpec, name kubeobject.ResourceName) (*kubeobject.Quantity, string) {
	if q, found := d.Resources.Requests[name]; found && !q.IsZero() {
		return &q, "requests." + string(name)
	}
	if q, found := d.Resources.Limits[name]; found && !q.IsZero() {
		return &q, "limits." + string(name)
	}
	return nil, ""
}

// overcommit reads what a pod requests of what its guest has.
func (o *object) overcommit(c *kubeobject.KubeVirtConfiguration) {
	const at = "spec.configuration."
	if d := c.DeveloperConfiguration; d != nil && d.MemoryOvercommit != 0 {
		if d.MemoryOvercommit < 10 || d.MemoryOvercommit > 100_000 {
			o.errorf(at+"developerConfiguration.memoryOvercommit", "needs 10 to 100000, has %d",
				d.MemoryOvercommit)
		} else {
			o.percent = int64(d.MemoryOvercommit)
		}
	}
	o.overheadRatio(c)
	// Source: KubeVirt v1.8.0 defaults/defaults.go: the default of 100m is applied to no VM.
	if c.CPURequest != nil && c.CPURequest.AsApproximateFloat64() != 0.1 {
		o.cpuAsk = o.millis(at+"cpuRequest", c.CPURequest)
	}
}

// request returns the memory that a pod requests, with what its own programs need.
func (f *fleetReader) request(v *vm) hypervisor.Bytes {
	guest := f.forGuest(v)
	return guest + v.asks.beside.of(v.asks.pages != "", f.ratio)
}

// forGuest returns the memory that a pod requests for its guest.
func (f *fleetReader) forGuest(v *vm) hypervisor.Bytes {
	switch {
	case v.asks.pages != "": // of which as many are huge as the guest has memory
		return max(v.Memory, v.asks.memory)
	case v.asks.memory > 0:
		return v.asks.memory
	case v.asks.whole, f.percent == 100:
		return v.Memory
	}
	percent := hypervisor.Bytes(f.percent)
	if v.Memory > math.MaxInt64>>8 { // no overflow
		return v.Memory / percent * min(100, percent)
	}
	return v.Memory * 100 / percent
}

// milli returns the CPUs that a pod requests, in thousandths, times the allocation ratio: a
// virtual CPU that shares CPUs is 1000, a CPU of its own as many as share one.
func (f *fleetReader) milli(a *podAsk) int64 {
	ratio := int64(f.cpuRatio)
	switch {
	case a.own > 0:
		return a.own * 1000 * ratio
	case a.milli >= 0:
		return a.milli * ratio
	case f.cpuAsk > 0:
		return f.cpuAsk * ratio
	}
	return a.shared * 1000
}

// cpuUnit returns in how many parts CPUs must be counted so that every request is a whole
// number of them. It divides 1000.
func (f *fleetReader) cpuUnit() int64 {
	unit := int64(1)
	for i := range f.vms {
		part := 1000 / gcd(f.milli(&f.vms[i].asks), 1000)
		unit = unit / gcd(unit, part) * part
	}
	if unit > 1 {
		f.Warnf(0, "", "pods request fractions of CPUs: the CPUs of nodes, and what VMs take of "+
			"them, are counted in parts, of which a virtual CPU that shares CPUs has %d", unit)
	}
	return unit
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}

// take says how much a VM takes of its node: what its pod requests.
func (f *fleetReader) take(v *vm) {
	if v.Memory > 1 { // otherwise an error has been reported
		request := f.request(v)
		v.Overhead, v.Balloon = max(0, request-v.Memory), max(0, v.Memory-request)
	}
	if n := f.milli(&v.asks) * f.unit / 1000; n != int64(v.CPUs) {
		v.CPURequest = int(max(1, n))
	}
	v.Placement.Charges = f.charges(v)
}

// cpuLimit returns what the CPUs of a pod are limited to, in thousandths. Where a quota bounds
// limits, KubeVirt sets one that is not written to the number of virtual CPUs.
// Source: KubeVirt v1.8.0 services/template.go (VMI resource rules: auto CPU limits).
func (f *fleetReader) cpuLimit(a *podAsk) int64 {
	if q, found := a.limits[kubeobject.ResourceCPU]; found && a.own == 0 {
		return q.MilliValue()
	}
	return 1000 * cmp.Or(a.own, a.shared)
}

// defaultLimitsRatio is how many times what it requests a pod's memory is limited to, where a
// quota bounds limits and the VM has none.
// Source: KubeVirt v1.8.0 services/template.go (DefaultMemoryLimitOverheadRatio).
const defaultLimitsRatio = 2

func (f *fleetReader) memoryLimit(v *vm, request hypervisor.Bytes) int64 {
	if q, found := v.asks.limits[kubeobject.ResourceMemory]; found {
		beside := v.asks.beside
		beside.none = false // what is limited is limited with it
		return min(q.Value(), 1<<61) + int64(beside.of(v.asks.pages != "", f.ratio))
	}
	if v.asks.own > 0 {
		return int64(request)
	}
	return defaultLimitsRatio * int64(min(request, 1<<61))
}
