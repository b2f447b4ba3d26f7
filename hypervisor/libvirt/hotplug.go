//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"slices"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// hotplug gives a VM that runs more memory, CPUs and larger disks, and its definition the same ones.
// What it has of them its XML says, whatever we come to, but not how large disks are: their sizes are
// noted last, and what was not noted is found when it is asked for again.
func (d guest) hotplug(ctx context.Context, f found, vm hypervisor.VM) error {
	if err := settled(f); err != nil {
		return err
	}
	grow, err := growth(f.VM, vm)
	switch {
	case err != nil:
		return err
	case f.Observed.Run == runsPostCopy || f.Observed.Run == runsPostCopyFailed:
		return backend.Errorf(hypervisor.Conflict, "it has come by post-copy, and some of its memory has not")
	}
	next, err := f.VM.Grow(vm)
	if err != nil {
		return backend.Errorf(hypervisor.Conflict, "%w", err)
	}
	if next.Equal(f.VM) {
		return nil
	}
	sizes, err := d.growable(ctx, f, grow)
	if err != nil {
		return err
	}
	if err := d.Node.Reserve(ctx, next); err != nil {
		return err
	}
	defer d.Node.Unreserve(d.ID) // what runs has taken its room
	for _, disk := range grow {
		if err := d.growLive(ctx, disk, sizes[disk.Name]); err != nil {
			return err
		}
	}
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
		return dom.AttachDeviceFlags(xml, impact(f.Observed))
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
	where := libvirt.DomainModificationImpact(impact(f.Observed))
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

// An imageSize is how large the guest sees a disk, and what libvirt calls it.
type imageSize struct {
	dev  string
	size hypervisor.Bytes
}

// growable returns how large disks are, and refuses those that are larger already: none of them shrinks.
func (d guest) growable(ctx context.Context, f found, disks []hypervisor.Disk) (map[string]imageSize, error) {
	all := map[string]imageSize{}
	for _, disk := range disks {
		dev, err := domxml.Target(f.Observed.XML, disk.Name)
		if err != nil {
			return nil, backend.Errorf(backend.KindOf(err), "%w", err)
		}
		size, err := d.capacity(ctx, dev)
		switch {
		case err != nil:
			return nil, err
		case size > disk.Size:
			return nil, backend.Errorf(hypervisor.Invalid, "disk %s: it has %v already, and never shrinks",
				disk.Name, size)
		}
		all[disk.Name] = imageSize{dev, size}
	}
	return all, nil
}

// capacity returns how large the guest sees a disk.
func (d guest) capacity(ctx context.Context, dev string) (hypervisor.Bytes, error) {
	return conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (hypervisor.Bytes, error) {
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return 0, err
		}
		defer func() { _ = dom.Free() }()
		info, err := dom.GetBlockInfo(dev, 0)
		if err != nil {
			return 0, err
		}
		return hypervisor.Bytes(info.Capacity), nil
	})
}

// growLive gives a disk its size. libvirt does not tell whether QEMU has refused it: what has not grown
// was.
func (d guest) growLive(ctx context.Context, disk hypervisor.Disk, has imageSize) error {
	if has.size == disk.Size {
		return nil // by a resize that we did not survive
	}
	err := d.Do(ctx, func(dom *libvirt.Domain) error {
		return dom.BlockResize(has.dev, uint64(disk.Size), libvirt.DOMAIN_BLOCK_RESIZE_BYTES)
	})
	if err == nil || backend.KindOf(err) != hypervisor.Unknown {
		return err
	}
	if now, look := d.capacity(ctx, has.dev); look == nil && now == has.size {
		return backend.Errorf(hypervisor.Conflict, "disk %s of %v to %v: %w", disk.Name, has.size, disk.Size,
			backend.Bare(err))
	}
	return err
}
