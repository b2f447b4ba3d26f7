package importer

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// vm is a VM whose groups are not known yet.
type vm struct {
	inventory.VM
	line int
	pod  placement.Labels // labels of its pod, on which affinity selects

	asks      podAsk // what its pod asks for
	machine   string // its machine type
	hostModel bool   // it sees its host's CPU model
}

// instance reads a VM that has not ended.
func (o *object) instance(vmi *kubeobject.VirtualMachineInstance) {
	if vmi.IsFinal() {
		return
	}
	memory := o.memory(vmi)
	v := inventory.VM{
		VM:           hypervisor.VM{ID: o.id, Memory: memory, CPUs: o.cpus(vmi)},
		Host:         hypervisor.HostName(vmi.Status.NodeName),
		Namespace:    vmi.Namespace,
		Labels:       vmi.Labels,
		EvacuateFrom: hypervisor.HostName(vmi.Status.EvacuationNodeName),
		Workload:     o.defaults.LoadOf(vmi.Labels).Workload(memory),
	}
	if vmi.Spec.EvictionStrategy != nil {
		v.Strategy = o.strategy("spec.evictionStrategy", *vmi.Spec.EvictionStrategy)
	}
	v.Migratable, v.NotMigratableReason = migratable(vmi)
	v.Placement = o.constraints(&vmi.Spec)
	o.demand(vmi, &v)
	if m := vmi.Status.MigrationState; m != nil {
		o.moves = append(o.moves, move{vm: o.id, state: m})
	}
	o.apart.add(o, len(o.vms), vmi)
	machine := ""
	if m := vmi.Spec.Domain.Machine; m != nil {
		machine = m.Type
	}
	o.vms = append(o.vms, vm{VM: v, line: o.line, pod: ofPod(vmi), machine: machine,
		asks: o.podAsk(vmi, v.CPUs), hostModel: isHostModel(vmi)})
}

// memory is what the guest sees, or what was requested for it.
// Source: KubeVirt v1.9.0 virtwrap/manager.go:852 (the VM's size), without disks.
func (o *object) memory(vmi *kubeobject.VirtualMachineInstance) hypervisor.Bytes {
	domain := &vmi.Spec.Domain
	if domain.Memory != nil && domain.Memory.Guest != nil {
		return o.positive("spec.domain.memory.guest", o.bytes(
			"spec.domain.memory.guest", domain.Memory.Guest))
	}
	if q, found := domain.Resources.Requests[kubeobject.ResourceMemory]; found {
		field := "spec.domain.resources.requests.memory"
		return o.positive(field, o.bytes(field, &q))
	}
	field := "spec.domain.resources.limits.memory"
	q := domain.Resources.Limits[kubeobject.ResourceMemory]
	return o.positive(field, o.bytes(field, &q))
}

func (o *object) positive(field string, b hypervisor.Bytes) hypervisor.Bytes {
	if b <= 0 && !o.Full() {
		o.errorf(field, "a VM needs memory")
		return 1
	}
	return b
}

// cpus counts virtual CPUs: by topology, of which what is not given is 1; without
// any, what is requested, else what it is limited to; else 1.
// Source: KubeVirt v1.9.0 virtwrap/converter/vcpu/vcpu.go (GetCPUTopology).
func (o *object) cpus(vmi *kubeobject.VirtualMachineInstance) int {
	if c := vmi.Spec.Domain.CPU; c != nil && c.Sockets|c.Cores|c.Threads != 0 {
		sockets, cores, threads := uint64(c.Sockets), uint64(c.Cores), uint64(c.Threads)
		n := max(1, sockets) * max(1, cores)
		if n > maxCPUs || n*max(1, threads) > maxCPUs {
			o.errorf("spec.domain.cpu", "it has more than %d CPUs", maxCPUs)
			return 1
		}
		return int(n * max(1, threads))
	}
	resources := &vmi.Spec.Domain.Resources
	if q, found := resources.Requests[kubeobject.ResourceCPU]; found {
		return wholeCPUs(o.millis("spec.domain.resources.requests.cpu", &q))
	}
	if q, found := resources.Limits[kubeobject.ResourceCPU]; found {
		return wholeCPUs(o.millis("spec.domain.resources.limits.cpu", &q))
	}
	return 1
}

func wholeCPUs(milli int64) int { return int(max(1, (milli+999)/1000)) }

// migratable reports what KubeVirt last found out, and why not.
// Source: KubeVirt v1.9.0 api/core/v1/types.go:536 (IsMigratable).
func migratable(vmi *kubeobject.VirtualMachineInstance) (bool, string) {
	for _, c := range vmi.Status.Conditions {
		if c.Type != kubeobject.VirtualMachineInstanceIsMigratable {
			continue
		}
		if c.Status == kubeobject.ConditionTrue {
			return true, ""
		}
		return false, strings.Trim(c.Reason+": "+c.Message, ": ")
	}
	return false, "KubeVirt has not said yet whether it is migratable"
}

func (o *object) strategy(field string, word kubeobject.EvictionStrategy) evacuation.Strategy {
	s, err := evacuation.ParseStrategy(string(word))
	if err != nil {
		o.errorf(field, "%v", err)
	}
	return s
}

// constraints are the conditions that the VM's pod puts on its node.
func (o *object) constraints(spec *kubeobject.VirtualMachineInstanceSpec) placement.Constraints {
	var c placement.Constraints
	for _, t := range spec.Tolerations {
		c.Tolerations = append(c.Tolerations, placement.Toleration{
			Key: t.Key, Value: t.Value, Effect: placement.Effect(t.Effect),
			Exists: t.Operator == kubeobject.TolerationOpExists,
		})
	}
	for _, t := range spec.TopologySpreadConstraints {
		if t.WhenUnsatisfiable == kubeobject.DoNotSchedule {
			o.warnf("spec.topologySpreadConstraints", "spreading is not supported; left out")
		}
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		if need := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; need != nil {
			c.Affinity = o.nodeTerms(need.NodeSelectorTerms)
		}
	}
	return c
}

// hostnameLabel is the label that says a node's name.
const hostnameLabel = kubeobject.LabelHostname

// nodeTerms translates terms of which one must hold. A term without conditions
// holds for no node; if there are only such terms, so does the whole.
// Source: Kubernetes v1.34 nodeaffinity.go (isEmptyNodeSelectorTerm).
func (o *object) nodeTerms(terms []kubeobject.NodeSelectorTerm) [][]placement.Requirement {
	var all [][]placement.Requirement
	for i, term := range terms {
		field := fmt.Sprintf("%s[%d]", nodeTermsField, i)
		var list []placement.Requirement
		for _, e := range term.MatchExpressions {
			list = append(list, o.requirement(field, e))
		}
		for _, e := range term.MatchFields {
			if e.Key != "metadata.name" {
				o.errorf(field+".matchFields", "there is no field %q to match", e.Key)
			}
			e.Key = hostnameLabel
			list = append(list, o.requirement(field, e))
			o.warnf(field+".matchFields", "metadata.name is read as the label %s", hostnameLabel)
		}
		if len(list) > 0 {
			all = append(all, list)
		}
	}
	if len(all) == 0 {
		return [][]placement.Requirement{{{Key: hostnameLabel, Operator: placement.In}}}
	}
	return all
}

const nodeTermsField = "spec.affinity.nodeAffinity." +
	"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

func (o *object) requirement(
	field string, e kubeobject.NodeSelectorRequirement,
) placement.Requirement {
	operator := placement.Operator(e.Operator)
	switch operator {
	case placement.In, placement.NotIn, placement.Exists, placement.DoesNotExist,
		placement.Gt, placement.Lt:
	default:
		o.errorf(field, "unknown operator %q", e.Operator)
	}
	return placement.Requirement{Key: e.Key, Operator: operator, Values: e.Values}
}
