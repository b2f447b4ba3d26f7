package importer

import (
	"strconv"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
)

// An overhead is the memory that the pod of a VM requests beside its guest's.
type overhead struct {
	// known is what KubeVirt says that it is; 0 is that it does not say.
	known hypervisor.Bytes
	// counted is what KubeVirt counts it to, before it is multiplied.
	counted hypervisor.Bytes
	// none: the pod requests none of it, unless its guest has huge pages.
	none bool
}

// What the programs in a pod need: virt-launcher and its monitor, virtlogd, virtqemud and QEMU, and one thread
// for I/O; then the rest, where it is there.
// Source: KubeVirt v1.8.0 pkg/hypervisor/kvm/hypervisorbackend.go (GetMemoryOverhead).
const (
	ofPrograms  = (25+100+25+40+30)*hypervisor.MiB + ofCPU
	ofCPU       = 8 * hypervisor.MiB
	ofVideo     = 32 * hypervisor.MiB
	ofFirmware  = 128 * hypervisor.MiB // of arm64
	ofVFIO      = 1 * hypervisor.GiB
	ofSEV       = 256 * hypervisor.MiB
	ofTPM       = 53 * hypervisor.MiB
	ofProbe     = 10 * hypervisor.MiB
	ofProbes    = 100 * hypervisor.MiB
	ofGuarantee = 100 * hypervisor.MiB
	pageEntries = 512 // memory for each byte of page tables, of what the VM itself requests
)

// overheadOf reads what a VM's pod needs. What plug-ins of networks and downward metrics add, some MiB, is not known.
// Source: KubeVirt v1.8.0 pkg/hypervisor/kvm/hypervisorbackend.go (GetMemoryOverhead);
// services/renderresources.go (WithMemoryOverhead, WithHugePages).
func (o *object) overheadOf(vmi *kubeobject.VirtualMachineInstance, cpus int) overhead {
	d := &vmi.Spec.Domain
	h := overhead{counted: ofPrograms + hypervisor.Bytes(cpus)*ofCPU, none: d.Resources.OvercommitGuestOverhead}
	if m := vmi.Status.Memory; m != nil && m.MemoryOverhead != nil {
		h.known = o.bytes("status.memory.memoryOverhead", m.MemoryOverhead)
	}
	for _, part := range []struct {
		is bool
		of hypervisor.Bytes
	}{
		{d.Devices.AutoattachGraphicsDevice == nil || *d.Devices.AutoattachGraphicsDevice, ofVideo},
		{vmi.Spec.Architecture == "arm64", ofFirmware},
		{vmi.UsesVFIO(), ofVFIO},
		{d.LaunchSecurity != nil && (d.LaunchSecurity.SEV != nil || d.LaunchSecurity.SNP != nil), ofSEV},
		{d.Devices.TPM != nil && (d.Devices.TPM.Enabled == nil || *d.Devices.TPM.Enabled), ofTPM},
		{vmi.Spec.LivenessProbe.Executes(), ofProbe},
		{vmi.Spec.ReadinessProbe.Executes(), ofProbe},
		{vmi.Spec.LivenessProbe.Executes() || vmi.Spec.ReadinessProbe.Executes(), ofProbes},
		{vmi.IsCPUDedicated() || guaranteed(&d.Resources), ofGuarantee},
	} {
		if part.is {
			h.counted += part.of
		}
	}
	if q, found := d.Resources.Requests[kubeobject.ResourceMemory]; found {
		h.counted += o.bytes("spec.domain.resources.requests.memory", &q) / pageEntries
	}
	if m := d.Memory; m != nil && m.ReservedOverhead != nil {
		h.counted += o.bytes("spec.domain.memory.reservedOverhead.addedOverhead", m.ReservedOverhead.AddedOverhead)
	}
	return h
}

// guaranteed reports whether a pod gets all that it may use.
// Source: KubeVirt v1.8.0 api/core/v1/types.go (WantsToHaveQOSGuaranteed).
func guaranteed(r *kubeobject.ResourceRequirements) bool {
	same := func(name kubeobject.ResourceName) bool {
		request, limit := r.Requests[name], r.Limits[name]
		return !request.IsZero() && request.AsApproximateFloat64() == limit.AsApproximateFloat64()
	}
	request, limit := r.Requests[kubeobject.ResourceMemory], r.Limits[kubeobject.ResourceMemory]
	return same(kubeobject.ResourceCPU) && (same(kubeobject.ResourceMemory) || request.IsZero() && !limit.IsZero())
}

// overheadRatio reads by how much the configuration multiplies overheads.
func (o *object) overheadRatio(c *kubeobject.KubeVirtConfiguration) {
	const most = 100
	text := c.AdditionalGuestMemoryOverheadRatio
	if text == nil || *text == "" {
		return
	}
	ratio, err := strconv.ParseFloat(*text, 64)
	if err != nil || !(ratio >= 1 && ratio <= most) {
		o.errorf("spec.configuration.additionalGuestMemoryOverheadRatio", "needs a number from 1 to %d, has %q", most, *text)
		return
	}
	o.ratio = ratio
}

// of returns the overhead of a pod, whose guest may have huge pages.
func (h *overhead) of(huge bool, ratio float64) hypervisor.Bytes {
	switch {
	case h.none && !huge:
		return 0
	case h.known > 0:
		return h.known
	}
	all := h.counted
	if ratio > 1 {
		all += hypervisor.Bytes(float64(all) * (ratio - 1))
	}
	return all
}
