//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"slices"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// hotplug gives a VM that runs more memory and CPUs, and its definition the same ones. What it has of
// them its XML says, whatever we come to.
func (d guest) hotplug(ctx context.Context, f found, vm hypervisor.VM) error {
	if err := settled(f); err != nil {
		return err
	}
	grow, err := growth(f.VM, vm)
	switch {
	case err != nil:
		return err
	case f.Sight.Run == runsPostCopy || f.Sight.Run == runsPostCopyFailed:
		return backend.Errorf(hypervisor.Conflict, "it has come by post-copy, and some of its memory has not")
	case len(grow) > 0:
		return backend.Errorf(hypervisor.Conflict, "it is %v: its disks grow while it is shut off", f.State)
	}
	next, err := f.VM.Grow(vm)
	if err != nil {
		return backend.Errorf(hypervisor.Conflict, "%w", err)
	}
	if next.Equal(f.VM) {
		return nil
	}
	if err := d.Node.Reserve(ctx, next); err != nil {
		return err
	}
	defer d.Node.Unreserve(d.ID) // what runs has taken its room
	if next.Memory > f.VM.Memory {
		if err := d.plugMemory(ctx, f, next.Memory-f.VM.Memory); err != nil {
			return err
		}
	}
	if next.CPUs > f.VM.CPUs {
		if err := d.plugCPUs(ctx, f, next); err != nil {
			return err
		}
	}
	return d.describe(ctx, f, next)
}

// plugMemory plugs a module in. libvirt does so here and in the definition, or in neither.
// Source: libvirt 9.0 qemu_driver.c (qemuDomainAttachDeviceLiveAndConfig).
func (d guest) plugMemory(ctx context.Context, f found, size hypervisor.Bytes) error {
	xml, err := domxml.ModuleXML(size)
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	err = d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.AttachDeviceFlags(xml, impact(f.Sight))
	})
	if err == nil || backend.KindOf(err) != hypervisor.Unknown {
		return err
	}
	now, look := d.Find(ctx)
	if look == nil && now.State == f.State && now.VM.Memory == f.VM.Memory {
		return backend.Errorf(hypervisor.NoRoom, "memory for %v more: %w", size, backend.Bare(err))
	}
	return err
}

// plugCPUs plugs CPUs in, those with the lowest numbers first, and lets all run where they are to.
func (d guest) plugCPUs(ctx context.Context, f found, next hypervisor.VM) error {
	where := libvirt.DomainModificationImpact(impact(f.Sight))
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		if err := dom.SetVcpusFlags(uint(next.CPUs), libvirt.DomainVcpuFlags(where)); err != nil {
			return err
		}
		for i, cpus := range next.Hardware.Pins {
			on := make([]bool, slices.Max(cpus)+1)
			for _, cpu := range cpus {
				on[cpu] = true
			}
			if err := dom.PinVcpuFlags(uint(i), on, where); err != nil {
				return err
			}
		}
		return nil
	})
}
