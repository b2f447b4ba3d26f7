package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/migration/placement"
)

// arches names architectures as QEMU does; other names are kept.
var arches = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// arch returns QEMU's name of an architecture, or the same when there is none.
func arch(name string) string {
	if known, found := arches[name]; found {
		return known
	}
	return name
}

// isTrue lists what labels that are "true" name after a prefix, sorted.
func isTrue(labels map[string]string, prefix string) []string {
	var all []string
	for label, value := range labels {
		if name, found := strings.CutPrefix(label, prefix); found && value == "true" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// with adds a label that must be "true" to a selector.
func with(selector placement.Labels, label string) placement.Labels {
	if selector == nil {
		selector = placement.Labels{}
	}
	selector[label] = "true"
	return selector
}

// managesCPUs reports whether a node gives VMs CPUs for themselves.
func managesCPUs(labels map[string]string) bool {
	return labels[kubeobject.CPUManager] == "true" || labels[kubeobject.DeprecatedCPUManager] == "true"
}

// cpuLabels returns what the labels of a node say of its processor, or nil.
// Source: KubeVirt v1.8.0 virt-handler/node-labeller (prepareLabels).
func cpuLabels(labels map[string]string) *placement.CPU {
	models := append(isTrue(labels, kubeobject.CPUModelLabel),
		isTrue(labels, kubeobject.SupportedHostModelMigrationCPU)...)
	slices.Sort(models)
	cpu := placement.CPU{Arch: arch(labels[kubeobject.LabelArchStable]),
		Models: slices.Compact(models), Features: isTrue(labels, kubeobject.CPUFeatureLabel),
		Vendor: strings.Join(isTrue(labels, kubeobject.CPUModelVendorLabel), "+")}
	if cpu.Arch+cpu.Vendor == "" && len(cpu.Models)+len(cpu.Features) == 0 {
		return nil
	}
	return &cpu
}

// selector returns the labels that the pod of a VM asks of its node.
// Source: KubeVirt v1.8.0 virt-controller/services/nodeselectorrenderer.go (Render).
func selector(vmi *kubeobject.VirtualMachineInstance) placement.Labels {
	need := placement.Labels(maps.Clone(vmi.Spec.NodeSelector))
	want := func(label string, wanted bool) {
		if wanted {
			need = with(need, label)
		}
	}
	want(kubeobject.RealtimeLabel, vmi.IsRealtimeEnabled())
	if s := vmi.Spec.Domain.LaunchSecurity; s != nil {
		encrypted := s.SEV != nil && s.SEV.Policy != nil && s.SEV.Policy.EncryptedState != nil &&
			*s.SEV.Policy.EncryptedState
		want(kubeobject.SEVLabel, s.SEV != nil && !encrypted)
		want(kubeobject.SEVESLabel, encrypted)
		want(kubeobject.SEVSNPLabel, s.SNP != nil)
		want(kubeobject.TDXLabel, s.TDX != nil)
	}
	if f := vmi.Spec.Domain.Features; f != nil && f.Hyperv != nil {
		for label, wanted := range hyperv(f.Hyperv) {
			want(kubeobject.HypervLabel+label, wanted)
		}
		want(kubeobject.CPUModelVendorLabel+"Intel", enabled(f.Hyperv.EVMCS))
	}
	if h := vmi.Status.TopologyHints; h != nil && h.TSCFrequency != nil {
		want(fmt.Sprintf("%s-%d", tscLabel, *h.TSCFrequency), true)
	}
	return need
}

// tscLabel is the beginning of the label of nodes that offer a TSC's frequency.
// Source: KubeVirt v1.8.0 virt-controller/watch/topology (ToTSCSchedulableLabel).
const tscLabel = "scheduling.node.kubevirt.io/tsc-frequency"

func enabled(s *kubeobject.FeatureState) bool { return s != nil && (s.Enabled == nil || *s.Enabled) }

// hyperv says which of the features that a node must offer are wanted.
// Source: KubeVirt v1.8.0 nodeselectorrenderer.go (makeHVFeatureLabelTable).
func hyperv(f *kubeobject.FeatureHyperv) map[string]bool {
	all := map[string]bool{"vpindex": enabled(f.VPIndex), "runtime": enabled(f.Runtime),
		"reset": enabled(f.Reset), "synic": enabled(f.SyNIC),
		"frequencies":     enabled(f.Frequencies),
		"reenlightenment": enabled(f.Reenlightenment), "ipi": enabled(f.IPI)}
	all["synictimer"] = f.SyNICTimer != nil &&
		(f.SyNICTimer.Enabled == nil || *f.SyNICTimer.Enabled)
	all["tlbflush"] = f.TLBFlush != nil && (f.TLBFlush.Enabled == nil || *f.TLBFlush.Enabled)
	return all
}

// seeHostModel: a guest that sees its host's model keeps it for life. The target of a migration must
// offer the model, and the features that it stands for. A guest that is started elsewhere takes
// the model of its new host: no selector is added to the pod of a VM that starts.
// Source: KubeVirt v1.8.0 watch/migration/migration.go (prepareNodeSelectorForHostCpuModel).
func seeHostModel(p *placement.Platform, labels placement.Labels) {
	models := isTrue(labels, kubeobject.HostModelCPULabel)
	if len(models) != 1 {
		return
	}
	p.HostModel = models[0]
	p.HostFeatures = isTrue(labels, kubeobject.HostModelRequiredFeaturesLabel)
}

// isHostModel reports whether the guest sees its host's model, as it does by default.
func isHostModel(vmi *kubeobject.VirtualMachineInstance) bool {
	cpu := vmi.Spec.Domain.CPU
	return cpu == nil || strings.TrimSpace(cpu.Model) == "" || cpu.Model == kubeobject.CPUModeHostModel
}

// ofPod returns the labels of a VM's pod: its own and those that KubeVirt adds.
// Source: KubeVirt v1.9.0 pkg/virt-controller/services/template.go (podLabels).
func ofPod(vmi *kubeobject.VirtualMachineInstance) placement.Labels {
	all := make(placement.Labels, len(vmi.Labels)+3)
	for name, value := range vmi.Labels {
		all[name] = value
	}
	all[kubeobject.AppLabel] = "virt-launcher"
	all[kubeobject.CreatedByLabel] = string(vmi.UID)
	all[kubeobject.DeprecatedVirtualMachineNameLabel] = vmi.Name
	return all
}
