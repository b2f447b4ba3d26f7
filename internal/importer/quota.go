package importer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// resourceQuota is what a quota allows, and what is used of it. Which VMs it is about, and what
// they use, is known when all objects have been read.
type resourceQuota struct {
	name, namespace string
	line            int
	field           string
	hard, used      map[string]int64
	known           bool // the status says what is used
	classes         []kubeobject.ScopedResourceSelectorRequirement
}

// quota reads a quota that is about running pods.
func (o *object) quota(q *kubeobject.ResourceQuota) {
	r := resourceQuota{name: string(o.id), namespace: q.Namespace, line: o.line, field: o.subject,
		hard: map[string]int64{}, used: map[string]int64{}, known: q.Status.Used != nil}
	scopes := slices.Clone(q.Spec.Scopes)
	if s := q.Spec.ScopeSelector; s != nil {
		for _, e := range s.MatchExpressions {
			if e.ScopeName == kubeobject.ResourceQuotaScopePriorityClass {
				r.classes = append(r.classes, e)
			} else {
				scopes = append(scopes, e.ScopeName)
			}
		}
	}
	for _, scope := range scopes {
		switch scope {
		case kubeobject.ResourceQuotaScopeNotBestEffort, kubeobject.ResourceQuotaScopeNotTerminating:
		case kubeobject.ResourceQuotaScopeBestEffort, kubeobject.ResourceQuotaScopeTerminating:
			return // no pod of a VM is of these
		case kubeobject.ResourceQuotaScopePriorityClass:
			r.classes = append(r.classes, kubeobject.ScopedResourceSelectorRequirement{
				ScopeName: scope, Operator: kubeobject.ScopeSelectorOpExists})
		default:
			o.warnf("spec.scopes", "the scope %s is not looked at; the quota is left out", scope)
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		resource := string(name)
		if !o.counts(resource) {
			continue
		}
		hard, used := q.Spec.Hard[name], q.Status.Used[name]
		r.hard[resource] = o.amount("spec.hard."+resource, resource, &hard)
		r.used[resource] = o.amount("status.used."+resource, resource, &used)
	}
	o.quotas = append(o.quotas, r)
}

// counts reports whether the pods of VMs use a resource in an amount that is known here.
func (o *object) counts(resource string) bool {
	switch {
	case resource == "pods" || resource == "count/pods" || placement.IsCPU(resource),
		strings.HasSuffix(resource, "memory"),
		strings.HasPrefix(strings.TrimPrefix(resource, "requests."), "hugepages-"):
		return true
	case strings.HasPrefix(resource, "requests.") && strings.Contains(resource, "/") &&
		!strings.Contains(resource, ".storageclass.storage.k8s.io/"):
		return true
	case strings.HasSuffix(resource, "ephemeral-storage"):
		o.warnf("spec.hard."+resource, "what pods need of it is not known; left out")
	}
	return false // the pod of a VM uses none
}

// amount returns a quantity as [placement.QuotaLimit] counts it.
func (o *object) amount(field, name string, q *kubeobject.Quantity) int64 {
	switch {
	case placement.IsCPU(name):
		return o.millis(field, q)
	case placement.IsBytes(name):
		return int64(o.bytes(field, q))
	}
	return int64(o.number(field, q))
}

// matches reports whether a quota is about pods of a priority class.
func (r *resourceQuota) matches(class string) bool {
	for _, e := range r.classes {
		in := slices.Contains(e.Values, class)
		switch e.Operator {
		case kubeobject.ScopeSelectorOpIn:
			if !in {
				return false
			}
		case kubeobject.ScopeSelectorOpNotIn:
			if in {
				return false
			}
		case kubeobject.ScopeSelectorOpExists:
			if class == "" {
				return false
			}
		case kubeobject.ScopeSelectorOpDoesNotExist:
			if class != "" {
				return false
			}
		}
	}
	return true
}

// charges returns what each copy of a VM takes of the quotas of its namespace.
func (f *fleetReader) charges(v *vm) []placement.QuotaCharge {
	var all []placement.QuotaCharge
	for i := range f.quotas {
		r := &f.quotas[i]
		if r.namespace != v.Namespace || !r.matches(v.asks.class) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.hard)) {
			if n := f.podTakes(v, name); n > 0 {
				all = append(all, placement.QuotaCharge{Quota: r.name, Resource: name, Amount: n})
			}
		}
	}
	return all
}

// podTakes returns how much the pod of a VM takes of one resource.
func (f *fleetReader) podTakes(v *vm, name string) int64 {
	request := f.request(v)
	ordinary := request
	if v.asks.pages != "" {
		ordinary = max(0, request-v.Memory)
	}
	switch name {
	case "pods", "count/pods":
		return 1
	case "cpu", "requests.cpu":
		return (f.milli(&v.asks) + int64(f.cpuRatio) - 1) / int64(f.cpuRatio)
	case "limits.cpu":
		return f.cpuLimit(&v.asks)
	case "memory", "requests.memory":
		return int64(ordinary)
	case "limits.memory":
		return f.memoryLimit(v, ordinary)
	}
	asked := strings.TrimPrefix(name, "requests.")
	if asked == kubeobject.ResourceHugePagesPrefix+v.asks.pages {
		return int64(v.Memory)
	}
	n := 0
	for _, d := range v.Placement.Devices {
		if d.Class == asked {
			n += d.Count
		}
	}
	return int64(n)
}

// addQuotas adds the quotas, and what others use of them: what the status says that is used,
// less what the VMs take. Without a status only VMs count.
func (f *fleetReader) addQuotas() {
	type key struct{ quota, resource string }
	taken := map[key]int64{}
	second := map[hypervisor.VMID]int64{} // the target pods of unfinished migrations
	for _, m := range f.moves {
		if m.state == nil && m.Phase >= migration.Scheduling && !m.CrossCluster {
			second[m.VM]++
		}
	}
	for i := range f.vms {
		v := &f.vms[i]
		copies := second[v.ID]
		if v.Host != "" {
			copies++
		}
		for _, c := range v.Placement.Charges {
			taken[key{c.Quota, c.Resource}] += c.Amount * copies
		}
	}
	slices.SortFunc(f.quotas, func(a, b resourceQuota) int { return cmp.Compare(a.name, b.name) })
	for i := range f.quotas {
		r := &f.quotas[i]
		if !r.known && len(r.hard) > 0 {
			f.Warnf(r.line, r.field+" status.used", "it is missing: only VMs count, not other pods")
		}
		for _, name := range slices.Sorted(maps.Keys(r.hard)) {
			f.AddQuota(placement.QuotaLimit{Quota: r.name, Resource: name, Hard: r.hard[name],
				Others: max(0, r.used[name]-taken[key{r.name, name}])})
		}
	}
}
