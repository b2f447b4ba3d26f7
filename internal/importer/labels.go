package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/migration/placement"
)

// arches names architectures as QEMU does; other names are kept.
var arches = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// Arch returns QEMU's name of an architecture, or the same when there is none.
func Arch(name string) string {
	if known, found := arches[name]; found {
		return known
	}
	return name
}

// True lists what labels that are "true" name after a prefix, sorted.
func True(labels map[string]string, prefix string) []string {
	var all []string
	for label, value := range labels {
		if name, found := strings.CutPrefix(label, prefix); found && value == "true" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// With adds a label that must be "true" to a selector.
func With(selector placement.Labels, label string) placement.Labels {
	if selector == nil {
		selector = placement.Labels{}
	}
	selector[label] = "true"
	return selector
}

// ManagesCPUs reports whether a node gives VMs CPUs for themselves.
func ManagesCPUs(labels map[string]string) bool {
	return labels[virtv1.CPUManager] == "true" || labels[virtv1.DeprecatedCPUManager] == "true"
}

// CPULabels returns what the labels of a node say of its processor, or nil.
// Source: KubeVirt v1.8.0 virt-handler/node-labeller (prepareLabels).
func CPULabels(labels map[string]string) *placement.CPU {
	models := append(True(labels, virtv1.CPUModelLabel),
		True(labels, virtv1.SupportedHostModelMigrationCPU)...)
	slices.Sort(models)
	cpu := placement.CPU{Arch: Arch(labels[corev1.LabelArchStable]),
		Models: slices.Compact(models), Features: True(labels, virtv1.CPUFeatureLabel),
		Vendor: strings.Join(True(labels, virtv1.CPUModelVendorLabel), "+")}
	if cpu.Arch+cpu.Vendor == "" && len(cpu.Models)+len(cpu.Features) == 0 {
		return nil
	}
	return &cpu
}

// Selector returns the labels that the pod of a VM asks of its node.
// Source: KubeVirt v1.8.0 virt-controller/services/nodeselectorrenderer.go (Render).
func Selector(vmi *virtv1.VirtualMachineInstance) placement.Labels {
	need := placement.Labels(maps.Clone(vmi.Spec.NodeSelector))
	want := func(label string, wanted bool) {
		if wanted {
			need = With(need, label)
		}
	}
	want(virtv1.RealtimeLabel, vmi.IsRealtimeEnabled())
	if s := vmi.Spec.Domain.LaunchSecurity; s != nil {
		encrypted := s.SEV != nil && s.SEV.Policy != nil && s.SEV.Policy.EncryptedState != nil &&
			*s.SEV.Policy.EncryptedState
		want(virtv1.SEVLabel, s.SEV != nil && !encrypted)
		want(virtv1.SEVESLabel, encrypted)
		want(virtv1.SEVSNPLabel, s.SNP != nil)
		want(virtv1.TDXLabel, s.TDX != nil)
	}
	if f := vmi.Spec.Domain.Features; f != nil && f.Hyperv != nil {
		for label, wanted := range hyperv(f.Hyperv) {
			want(virtv1.HypervLabel+label, wanted)
		}
		want(virtv1.CPUModelVendorLabel+"Intel", enabled(f.Hyperv.EVMCS))
	}
	if h := vmi.Status.TopologyHints; h != nil && h.TSCFrequency != nil {
		want(fmt.Sprintf("%s-%d", tscLabel, *h.TSCFrequency), true)
	}
	return need
}

// tscLabel is the beginning of the label of nodes that offer a TSC's frequency.
// Source: KubeVirt v1.8.0 virt-controller/watch/topology (ToTSCSchedulableLabel).
const tscLabel = "scheduling.node.kubevirt.io/tsc-frequency"

func enabled(s *virtv1.FeatureState) bool { return s != nil && (s.Enabled == nil || *s.Enabled) }

// hyperv says which of the features that a node must offer are wanted.
// Source: KubeVirt v1.8.0 nodeselectorrenderer.go (makeHVFeatureLabelTable).
func hyperv(f *virtv1.FeatureHyperv) map[string]bool {
	all := map[string]bool{"vpindex": enabled(f.VPIndex), "runtime": enabled(f.Runtime),
		"reset": enabled(f.Reset), "synic": enabled(f.SyNIC),
		"frequencies":     enabled(f.Frequencies),
		"reenlightenment": enabled(f.Reenlightenment), "ipi": enabled(f.IPI)}
	all["synictimer"] = f.SyNICTimer != nil &&
		(f.SyNICTimer.Enabled == nil || *f.SyNICTimer.Enabled)
	all["tlbflush"] = f.TLBFlush != nil && (f.TLBFlush.Enabled == nil || *f.TLBFlush.Enabled)
	return all
}

// SeeHostModel: a guest that sees its host's model keeps it for life. A target must
// offer the model, and the features that it stands for.
// Source: KubeVirt v1.8.0 watch/migration/migration.go (prepareNodeSelectorForHostCpuModel).
func SeeHostModel(p *placement.Platform, labels placement.Labels) {
	models := True(labels, virtv1.HostModelCPULabel)
	if len(models) != 1 {
		return
	}
	p.CPUModel = models[0]
	p.CPUFeatures = append(p.CPUFeatures,
		True(labels, virtv1.HostModelRequiredFeaturesLabel)...)
}

// IsHostModel reports whether the guest sees its host's model, as it does by default.
func IsHostModel(vmi *virtv1.VirtualMachineInstance) bool {
	cpu := vmi.Spec.Domain.CPU
	return cpu == nil || strings.TrimSpace(cpu.Model) == "" || cpu.Model == virtv1.CPUModeHostModel
}

// OfPod returns the labels of a VM's pod: its own and those that KubeVirt adds.
// Source: KubeVirt v1.9.0 pkg/virt-controller/services/template.go (podLabels).
func OfPod(vmi *virtv1.VirtualMachineInstance) placement.Labels {
	all := make(placement.Labels, len(vmi.Labels)+3)
	for name, value := range vmi.Labels {
		all[name] = value
	}
	all[virtv1.AppLabel] = "virt-launcher"
	all[virtv1.CreatedByLabel] = string(vmi.UID)
	all[virtv1.DeprecatedVirtualMachineNameLabel] = vmi.Name
	return all
}
