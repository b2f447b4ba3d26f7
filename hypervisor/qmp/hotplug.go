//go:build linux

package qmp

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// hotplug gives a VM that runs more memory, CPUs and larger disks. What it is to become is written first, and what
// its QEMU has of that afterwards, whether or not all of it could be had: what was plugged in stays,
// and a target is started with it.
func (d guest) hotplug(ctx context.Context, p found, vm hypervisor.VM) error {
	h := d.Node
	if err := resizable(p.Rec.VM, vm); err != nil {
		return err
	}
	switch {
	case !h.QEMU.Abilities().Has(hypervisor.CanResizeLive):
		return p.Conflict()
	case p.Look.inPostCopy():
		return qemu.Refuse(hypervisor.Conflict, "it has come by post-copy, and some of its memory has not")
	}
	next, err := p.Rec.VM.Grow(vm)
	if err != nil {
		return qemu.Refuse(hypervisor.Conflict, "%w", err)
	}
	if next.Equal(p.Rec.VM) && p.Rec.Hotplug == nil {
		return nil
	}
	if err := h.Check(next); err != nil {
		return err
	}
	grow := growth(p.Rec.VM, next)
	if err := p.VM.Growable(ctx, grow); err != nil {
		return err
	}
	if err := h.Reserve(next, nil); err != nil {
		return err
	}
	if err = d.Put(true, func(r *domainRecord) { r.Hotplug = &next }); err != nil {
		h.Keep(p.Rec.VM)
		return err
	}
	if err = p.VM.GrowDisks(ctx, grow); err == nil {
		err = p.VM.Grow(ctx, next)
	}
	return errors.Join(err, d.hotplugged(ctx, p.VM))
}

// hotplugged notes what a QEMU has of what its VM was to become by a resize, if there was one. The
// caller holds the domain's lock.
func (d *domain) hotplugged(ctx context.Context, vm *qemu.Instance) error {
	rec := d.Record()
	if rec == nil || rec.Hotplug == nil || vm == nil {
		return nil
	}
	has, err := vm.Grown(ctx, rec.VM, *rec.Hotplug)
	if err == nil {
		err = d.Put(true, func(r *domainRecord) { r.VM, r.Hotplug = has, nil })
	}
	if err != nil {
		return qemu.Observing(err)
	}
	d.Node.Keep(has)
	return vm.Pin(ctx, has)
}

// replugs reports whether it is to be noted what a QEMU has of a resize that we did not survive.
func replugs(d *domainRecord, l look) bool {
	return d.Hotplug != nil && l.Heard() && (l.Run == qemu.Running || l.Run == qemu.Paused)
}
