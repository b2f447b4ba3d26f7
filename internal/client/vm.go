package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// AddVM adds a VM. Without a Host the controller finds one for it.
func (d *Client) AddVM(ctx context.Context, v *store.VM) (*store.VM, error) {
	life, err := store.NewLife(ctx, d.Store, "")
	if err != nil {
		return nil, err
	}
	return d.addVM(ctx, v, *life)
}

// addVM adds a VM with a life that is yet to have an id.
func (d *Client) addVM(ctx context.Context, v *store.VM, life store.Life) (*store.VM, error) {
	what := "add vm " + string(v.VM.ID)
	if !named(v.VM.ID) {
		return nil, refuse("add vm", "%.100q is not a name: write namespace/name, each of letters, "+
			"digits and -._", v.VM.ID)
	}
	if v.VM.Memory <= 0 || v.VM.CPUs <= 0 {
		return nil, refuse(what, "it needs memory and CPUs")
	}
	if v.Host != "" {
		h, err := d.Store.Get(ctx, hostKey(v.Host))
		if err != nil {
			return nil, err
		}
		if h == nil {
			return nil, d.Missing(ctx, hostKey(v.Host))
		}
	}
	life.ID = rand.Text()
	counted := *v
	counted.Life, counted.Moves = &life, max(1, v.Moves)
	fresh := counted.WithVersion(0)
	stored, err := d.Store.Put(ctx, fresh)
	switch {
	case errors.Is(err, store.Stale):
		return nil, refuse(what, "a VM of this name exists already: delete it first, or choose "+
			"another name")
	case errors.Is(err, store.Unanswered):
		stored, err = d.landed(ctx, fresh, err)
	}
	if err != nil {
		return nil, err
	}
	return stored.(*store.VM), nil
}

// changeVM changes what an operator decides about a VM, and notes the operator and the request.
func (d *Client) changeVM(ctx context.Context, id hypervisor.VMID, what string,
	how func(*store.VM) error) (*store.VM, error) {
	r, err := d.change(ctx, vmKey(id), func(r store.Record) (store.Record, error) {
		next := *r.(*store.VM)
		if as := next.Rename; as != nil && what != "rename to "+string(as.To) {
			return nil, refuse(what+" vm "+string(id), "it is being renamed to %s: use that name when godwit vm "+
				"list shows it", as.To)
		}
		if err := how(&next); err != nil || d.By == "" || same(r, &next) {
			return &next, err
		}
		next.Asked = &store.Asked{By: d.By, What: what, At: d.Now().UTC().Round(0)}
		return &next, nil
	})
	if err != nil {
		return nil, err
	}
	return r.(*store.VM), nil
}

// StartVM starts a stopped VM.
func (d *Client) StartVM(ctx context.Context, id hypervisor.VMID) (*store.VM, error) {
	return d.changeVM(ctx, id, "start", func(v *store.VM) error {
		v.Start()
		return nil
	})
}

// StopVM shuts a VM down until StartVM. Kill powers it off without a guest shutdown.
func (d *Client) StopVM(ctx context.Context, id hypervisor.VMID, kill bool) (*store.VM, error) {
	return d.changeVM(ctx, id, "stop", func(v *store.VM) error {
		if v.Pause && !kill && !v.Ended {
			return refuse("stop vm "+string(id), "its guest is paused, and cannot shut down: godwit vm "+
				"resume it first, or power it off with --kill")
		}
		v.Stopped, v.Kill = true, kill
		return nil
	})
}

// RebootVM reboots a VM's guest. A requested size takes effect then.
func (d *Client) RebootVM(ctx context.Context, id hypervisor.VMID) (*store.VM, error) {
	return d.changeVM(ctx, id, "reboot", func(v *store.VM) error {
		switch {
		case v.Stopped:
			return refuse("reboot vm "+string(id), "it is stopped: godwit vm start it instead")
		case v.Pause:
			return refuse("reboot vm "+string(id), "it is paused: godwit vm resume it first")
		}
		v.Reboots++
		return nil
	})
}

// PauseVM pauses a VM's guest, which keeps its memory, until ResumeVM. A VM that is being migrated is
// paused when the migration has ended.
func (d *Client) PauseVM(ctx context.Context, id hypervisor.VMID) (*store.VM, error) {
	return d.changeVM(ctx, id, "pause", func(v *store.VM) error {
		if v.Stopped {
			return refuse("pause vm "+string(id), "it is stopped, and has no memory to keep")
		}
		v.Pause = true
		return nil
	})
}

// ResumeVM lets the guest of a VM run on that PauseVM has paused.
func (d *Client) ResumeVM(ctx context.Context, id hypervisor.VMID) (*store.VM, error) {
	return d.changeVM(ctx, id, "resume", func(v *store.VM) error {
		if !v.Pause && !v.Paused {
			return refuse("resume vm "+string(id), "godwit has not paused it: if its guest is paused all the "+
				"same, godwit vm pause adopts that, and then godwit vm resume lets it run on")
		}
		v.Pause = false
		return nil
	})
}

// AttachDisk attaches a disk to a VM, running or not. A VM that is being migrated gets it when the
// migration has ended.
func (d *Client) AttachDisk(ctx context.Context, id hypervisor.VMID, disk hypervisor.Disk) (*store.VM,
	error) {
	what := "attach disk " + disk.Name + " to vm " + string(id)
	switch {
	case !backend.DiskName(disk.Name):
		return nil, refuse(what, "%.100q is not a disk's name: write lower-case letters, digits and -",
			disk.Name)
	case disk.Format != "" && !slices.Contains(diskFormats, disk.Format):
		return nil, refuse(what, "unknown format %.100q: write raw or qcow2", disk.Format)
	case disk.Path != "" && !path.IsAbs(disk.Path):
		return nil, refuse(what, "%.100q is not an absolute path", disk.Path)
	case disk.Local() && disk.Size <= 0:
		return nil, refuse(what, "give the path of a shared disk with --path, or the size of a local one "+
			"with --size")
	}
	return d.changeVM(ctx, id, "attach disk "+disk.Name, func(v *store.VM) error {
		for _, has := range v.WantedDisks() {
			if has.Name == disk.Name && has != disk {
				return refuse(what, "it has another disk of this name: detach that first, or choose "+
					"another name")
			}
			if has == disk {
				return nil
			}
		}
		v.DiskChanges = append(slices.Clip(v.DiskChanges), store.DiskChange{Attach: &disk, By: d.By})
		return nil
	})
}

// DetachDisk detaches a disk from a VM, running or not, or takes back that it is attached. Its file
// stays.
func (d *Client) DetachDisk(ctx context.Context, id hypervisor.VMID, name string) (*store.VM, error) {
	return d.changeVM(ctx, id, "detach disk "+name, func(v *store.VM) error {
		is := func(disk hypervisor.Disk) bool { return disk.Name == name }
		if slices.ContainsFunc(v.WantedDisks(), is) {
			v.DiskChanges = append(slices.Clip(v.DiskChanges), store.DiskChange{Detach: name, By: d.By})
			return nil
		}
		if slices.ContainsFunc(v.Disks(), is) {
			return nil // it is asked for already
		}
		return unknownDisk(name, v.WantedDisks())
	})
}

// MoveDisk moves the image of a disk to another path of the VM's host, while the VM runs. With keep, the
// old image stays. A VM that is being migrated has it moved when the migration has ended.
func (d *Client) MoveDisk(ctx context.Context, id hypervisor.VMID, move store.DiskMove) (*store.VM, error) {
	what := "move disk " + move.Disk + " of vm " + string(id)
	if !path.IsAbs(move.To) || path.Clean(move.To) != move.To {
		return nil, refuse(what, "%.100q is not the absolute path of a file", move.To)
	}
	return d.changeVM(ctx, id, "move disk "+move.Disk+" to "+move.To, func(v *store.VM) error {
		i := slices.IndexFunc(v.WantedDisks(), func(disk hypervisor.Disk) bool { return disk.Name == move.Disk })
		if i < 0 {
			return unknownDisk(move.Disk, v.WantedDisks())
		}
		if has := v.WantedDisks()[i]; has.ReadOnly {
			return refuse(what, "it is read only: attach a copy of it instead")
		}
		for _, c := range v.DiskChanges {
			switch {
			case c.Move == nil || c.Move.Disk != move.Disk:
			case c.Move.To == move.To && !c.Move.Cancel:
				return nil
			default:
				return refuse(what, "it is to %s already: wait, or godwit vm move-disk --cancel", c.Words())
			}
		}
		for _, disk := range v.WantedDisks() {
			if disk.Path == move.To {
				return refuse(what, "disk %s is there already", disk.Name)
			}
		}
		for _, s := range v.Snapshots {
			if s.Disk == move.Disk {
				return refuse(what, "its snapshot %s would not move with it: godwit vm snapshot delete it first", s.Name)
			}
		}
		v.DiskChanges = append(slices.Clip(v.DiskChanges), store.DiskChange{Move: &move, By: d.By})
		return nil
	})
}

// CancelDiskMove takes back that a disk moves. It is refused when the VM has gone over to the new image.
func (d *Client) CancelDiskMove(ctx context.Context, id hypervisor.VMID, disk string) (*store.VM, error) {
	return d.changeVM(ctx, id, "cancel the move of disk "+disk, func(v *store.VM) error {
		what := "cancel the move of disk " + disk + " of vm " + string(id)
		i := slices.IndexFunc(v.DiskChanges, func(c store.DiskChange) bool { return c.Move != nil && c.Move.Disk == disk })
		switch {
		case i < 0:
			return refuse(what, "it does not move")
		case v.DiskChanges[i].Move.Switched:
			return refuse(what, "the VM is on its new image already: move it back instead")
		case !v.DiskChanges[i].Move.Begun:
			v.DiskChanges = slices.Delete(slices.Clone(v.DiskChanges), i, i+1)
			return nil
		}
		v.ChangeMove(i, func(m *store.DiskMove) { m.Cancel = true })
		v.DiskChanges[i].By = d.By
		return nil
	})
}

// unknownDisk returns the error for a name that is none of some disks.
func unknownDisk(name string, disks []hypervisor.Disk) error {
	var known []string
	for _, d := range disks {
		known = append(known, d.Name)
	}
	return unknown("disk", name, known)
}

// A Size is what a VM is resized to. What is zero stays as it is.
type Size struct {
	Memory hypervisor.Bytes
	CPUs   int
	// MaxMemory and MaxCPUs are what it can grow to while it runs, from its next start on.
	MaxMemory hypervisor.Bytes
	MaxCPUs   int
	Disks     map[string]hypervisor.Bytes // by name
}

// none reports whether everything stays as it is.
func (s Size) none() bool {
	return s.Memory == 0 && s.CPUs == 0 && s.MaxMemory == 0 && s.MaxCPUs == 0 && len(s.Disks) == 0
}

// enlarge gives disks of vm their sizes. A disk of which none is known is not compared with one that is
// wanted later: nothing would come of it.
func (s Size) enlarge(what string, vm hypervisor.VM) (hypervisor.VM, error) {
	if len(s.Disks) == 0 {
		return vm, nil
	}
	var disks []hypervisor.Disk
	if vm.Hardware != nil {
		disks = slices.Clone(vm.Hardware.Disks)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Disks)) {
		i := slices.IndexFunc(disks, func(d hypervisor.Disk) bool { return d.Name == name })
		if i < 0 {
			return vm, unknownDisk(name, disks)
		}
		switch size := s.Disks[name]; {
		case disks[i].Size == 0:
			return vm, refuse(what, "disk %s has no size in the VM's description: grow it where it is kept", name)
		case size < disks[i].Size:
			return vm, refuse(what, "disk %s has %v, and never shrinks: %v is less", name, disks[i].Size, size)
		case size%backend.Sector != 0:
			return vm, refuse(what, "disk %s: %v is no multiple of %d bytes", name, size, backend.Sector)
		default:
			disks[i].Size = size
		}
	}
	return vm.WithDisks(disks), nil
}

// room refuses room to grow that no VM can be started with.
func room(memory hypervisor.Bytes, cpus int) error {
	switch {
	case memory < 0 || memory%hypervisor.DIMMUnit != 0:
		return fmt.Errorf("max-memory: %v is no multiple of %v", memory, hypervisor.DIMMUnit)
	case cpus < 0 || cpus > backend.MaxCPUs:
		return fmt.Errorf("max-cpus: %d is not between 0 and %d", cpus, backend.MaxCPUs)
	}
	return nil
}

// ResizeVM changes the memory, the CPUs and the sizes of disks of a VM. One that runs grows at once where
// it was started with room for that, and its host can do it; everything else takes effect at its next
// start or reboot.
func (d *Client) ResizeVM(ctx context.Context, id hypervisor.VMID, to Size) (*store.VM, error) {
	what := "resize vm " + string(id)
	if to.none() || to.Memory < 0 || to.CPUs < 0 {
		return nil, refuse(what, "give its memory, its CPUs, or the size of a disk")
	}
	if err := room(to.MaxMemory, to.MaxCPUs); err != nil {
		return nil, refuse(what, "%v", err)
	}
	return d.changeVM(ctx, id, "resize", func(v *store.VM) error {
		if to.Memory > 0 {
			v.VM.Memory = to.Memory
		}
		if to.CPUs > 0 {
			v.VM.CPUs = to.CPUs
		}
		if to.MaxMemory > 0 || to.MaxCPUs > 0 {
			var h hypervisor.Hardware
			if v.VM.Hardware != nil {
				h = *v.VM.Hardware // it is shared: replaced, never changed
			}
			h.MaxMemory, h.MaxCPUs = cmp.Or(to.MaxMemory, h.MaxMemory), cmp.Or(to.MaxCPUs, h.MaxCPUs)
			v.VM.Hardware = &h
		}
		vm, err := to.enlarge(what, v.VM)
		v.VM = vm
		return err
	})
}

// LabelVM sets labels of a VM, by which migration policies select it; an empty value removes one. A migration
// that has begun keeps the options that it has.
func (d *Client) LabelVM(ctx context.Context, id hypervisor.VMID, labels migration.Labels) (*store.VM, error) {
	return d.changeVM(ctx, id, "label", func(v *store.VM) error {
		v.Labels = labelled(v.Labels, labels)
		return nil
	})
}

// DeleteVM deletes the record of a stopped VM. Its disks stay.
func (d *Client) DeleteVM(ctx context.Context, id hypervisor.VMID) error {
	what := "delete vm " + string(id)
	for try := 1; ; try++ {
		r, err := d.Store.Get(ctx, vmKey(id))
		if err != nil {
			return err
		}
		v, is := r.(*store.VM)
		switch {
		case !is:
			return d.Missing(ctx, vmKey(id))
		case v.ActiveMigration != "":
			return refuse(what, "migration %s moves it: wait, or godwit cancel it", v.ActiveMigration)
		case v.Host != "" && (!v.Stopped || !v.Ended):
			return refuse(what, "it runs, or may run, on %s: stop it first with godwit vm stop, and "+
				"wait until it has stopped", v.Host)
		}
		err = d.Store.Delete(ctx, v)
		if !errors.Is(err, store.Stale) || try == tries {
			return err
		}
	}
}

// ReleaseVM removes the claim on a VM by a migration that no longer exists. It takes effect when the
// VM's host has confirmed that the VM runs there. It is refused while the migration exists, and
// while the host is lost.
func (d *Client) ReleaseVM(ctx context.Context, id hypervisor.VMID, by string) (*store.VM, error) {
	what := "release vm " + string(id)
	if strings.TrimSpace(by) == "" {
		return nil, refuse(what, "the operator's name is missing: write --by NAME")
	}
	return d.changeVM(ctx, id, "release", func(v *store.VM) error {
		m, err := d.Store.Get(ctx, store.Key{Kind: store.MigrationKind, Name: string(v.ActiveMigration)})
		if err != nil {
			return err
		}
		h, err := d.Store.Get(ctx, hostKey(v.Host))
		if err != nil {
			return err
		}
		claimant, _ := m.(*store.Migration)
		home, _ := h.(*store.Host)
		if why := store.Holder(v, claimant, home); why != "" {
			return refuse(what, "%s", why)
		}
		v.Release = &store.Release{By: by, Claim: v.ActiveMigration}
		return nil
	})
}

// Evict requests that a VM leaves its host.
func (d *Client) Evict(ctx context.Context, id hypervisor.VMID) (*store.VM, error) {
	return d.changeVM(ctx, id, "evict", func(v *store.VM) error {
		if v.Host == "" {
			return refuse("evict vm "+string(id), "it has no host yet")
		}
		v.EvacuateFrom = v.Host
		return nil
	})
}

// named reports whether a name may be given to a VM: it appears in files, traces and on
// terminals.
func named(id hypervisor.VMID) bool {
	namespace, name := divide(id)
	return IsName(namespace) && IsName(name)
}

// IsName reports whether text may name a VM, a namespace, a host or a controller: letters, digits
// and "-._", as in the files that inventories read.
func IsName(text string) bool {
	for _, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= inventory.MaxName
}
