//go:build linux && libvirt_dlopen

package libvirt

// This file asks, before a byte moves, what is in the way of a migration: of the
// domain, of its target's libvirtd, and of the target itself.
//
// It decides nothing about errors: what a libvirtd refuses is a reason, what it does
// not answer is an error.

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"libvirt.org/go/libvirt"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// reasons are collected: all of them matter.
type reasons []hypervisor.Reason

func (r *reasons) add(check, need, have string) {
	*r = append(*r, hypervisor.Reason{Check: check, Need: need, Have: have})
}

// lacks asks the libvirtd of a target what it lacks for a VM.
func lacks(ctx context.Context, d *domain, vm hypervisor.VM) ([]hypervisor.Reason, error) {
	h := hypervisor.Hardware{}
	if vm.Hardware != nil {
		h = *vm.Hardware
	}
	settings := d.Node.Settings
	return conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) ([]hypervisor.Reason, error) {
		var why reasons
		_, err := c.GetDomainCapabilities(settings.Emulator, "x86_64", h.Machine, settings.Type, 0)
		if err != nil && conn.Classify(err) != hypervisor.Unknown {
			why.add("machine", settings.Type+" "+h.Machine, "not known here")
		} else if err != nil {
			return nil, err
		}
		if other, err := c.LookupDomainByUUIDString(domxml.UUIDOf(vm.ID)); err == nil {
			if name, err := other.GetName(); err == nil && name != d.Name {
				why.add("uuid", domxml.UUIDOf(vm.ID), "taken by domain "+name)
			}
			_ = other.Free()
		}
		for _, disk := range h.Disks {
			if !disk.Local() && !present(c, disk.Path) {
				why.add("disk "+disk.Name, disk.Path, "no such file here")
			}
		}
		if h.Firmware != "" && !present(c, h.Firmware) {
			why.add("firmware", h.Firmware, "no such file here")
		}
		if free, known := freePages(d.Node, c, h.Hugepages); known && free < vm.Memory {
			need, has := hypervisor.Apart(vm.Memory, free)
			why.add("hugepages of "+h.Hugepages.String(), need, has)
		}
		return why, nil
	})
}

// probeName begins the name of a storage pool that exists while a directory is looked into.
// The rest is chance: what a process that died has left must not be in the way.
const probeName = "godwit-probe-"

// present reports whether a host has a file, through libvirt: the host may be far
// away. Where libvirt cannot tell, the file counts as there.
func present(c *conn.Connect, file string) bool {
	pool, done, err := poolOf(c, path.Dir(file))
	if err != nil {
		return !errors.Is(err, errNoDirectory)
	}
	defer done()
	vol, err := pool.LookupStorageVolByName(path.Base(file))
	if errors.Is(err, libvirt.ERR_NO_STORAGE_VOL) {
		if pool.Refresh(0) == nil {
			vol, err = pool.LookupStorageVolByName(path.Base(file))
		}
	}
	if err == nil {
		_ = vol.Free()
	}
	return !errors.Is(err, libvirt.ERR_NO_STORAGE_VOL)
}

// errNoDirectory says that libvirt makes no pool of a directory, because there is none.
var errNoDirectory = errors.New("libvirtd cannot look into this directory")

// poolOf returns the pool of a directory, made if there is none until done is called.
func poolOf(c *conn.Connect, dir string) (pool *libvirt.StoragePool, done func(), err error) {
	pool, err = c.LookupStoragePoolByTargetPath(dir)
	made := false
	if errors.Is(err, libvirt.ERR_NO_STORAGE_POOL) {
		text, errXML := (&lx.StoragePool{Type: "dir", Name: probeName + rand.Text(),
			Target: &lx.StoragePoolTarget{Path: dir}}).Marshal()
		if errXML != nil {
			return nil, nil, errXML
		}
		pool, err = c.StoragePoolCreateXML(text, 0)
		switch {
		case errors.Is(err, libvirt.ERR_OPERATION_FAILED): // others look into it just now
			pool, err = c.LookupStoragePoolByTargetPath(dir)
		case err != nil && conn.Classify(err) != hypervisor.Unsupported:
			err = fmt.Errorf("%s: %w: %w", dir, errNoDirectory, err)
		default:
			made = err == nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return pool, func() {
		if made {
			drop(pool)
		}
		_ = pool.Free() // last: afterwards it must not be used
	}, nil
}

// drop removes a pool, as soon as libvirt is at nothing with it that others have asked.
func drop(pool *libvirt.StoragePool) {
	for range 100 {
		if err := pool.Destroy(); err == nil || errors.Is(err, libvirt.ERR_NO_STORAGE_POOL) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// freePages returns how much memory in pages of a size is free; known is false when
// ordinary pages will do, or libvirt does not tell. It is none on a host that has no pages of this size: libvirt
// answers an error then, the same as for a failure, and only its capabilities tell the two apart.
func freePages(n *node, c *conn.Connect, size hypervisor.Bytes) (free hypervisor.Bytes, known bool) {
	if size == 0 {
		return 0, false
	}
	pages, err := c.GetFreePages([]uint64{uint64(size / hypervisor.KiB)}, 0, 64, 0)
	if err != nil {
		pages, err = c.GetFreePages([]uint64{uint64(size / hypervisor.KiB)}, 0, 1, 0)
	}
	for _, n := range pages {
		free += hypervisor.Bytes(n) * size
	}
	return free, err == nil || without(n, c, size)
}

// without reports that the host's capabilities name the sizes of its pages, and not this one.
func without(n *node, c *conn.Connect, size hypervisor.Bytes) bool {
	text, err := n.Capabilities(c)
	var caps lx.Caps
	if err != nil || caps.Unmarshal(text) != nil || caps.Host.NUMA == nil || caps.Host.NUMA.Cells == nil {
		return false
	}
	named := false
	for _, cell := range caps.Host.NUMA.Cells.Cells {
		for _, p := range cell.PageInfo {
			if named = true; p.Unit != "KiB" || hypervisor.Bytes(p.Size)*hypervisor.KiB == size {
				return false
			}
		}
	}
	return named
}

// obstacles says what is in the way of sending a domain: what it is made of, and what
// its target's libvirtd says to it.
func obstacles(ctx context.Context, d *domain, f found, t targetAddress) (
	[]hypervisor.Reason, error) {
	resting := f.State == hypervisor.Shutoff
	why := reasons{}
	if resting {
		saved := false
		err := d.Do(ctx, func(dom *libvirt.Domain) (err error) {
			saved, err = dom.HasManagedSaveImage(0)
			return err
		})
		if err != nil {
			return nil, err
		}
		if saved {
			why.add("saved state", "none: it does not move with the definition",
				"a managed save: start the VM, or remove it with virsh managedsave-remove")
		}
	} else {
		found, err := domxml.Of(f.Observed.XML, d.Node.Settings)
		if err != nil {
			return nil, err
		}
		for _, b := range found {
			if b.Weight == domxml.Forbidden {
				why.add(b.Check+" at "+b.Path, b.Need, b.Have)
			}
		}
	}
	kept, err := keptOf(ctx, d)
	if err != nil {
		return nil, err
	}
	why = slices.Concat(why, kept, behind(f))
	peer, err := d.Node.Reach(ctx, t.Peer)
	if err != nil {
		return nil, err
	}
	cpu, err := cpuOf(ctx, d, f)
	if err != nil {
		return nil, err
	}
	far, err := conn.Ask(ctx, peer, func(c *conn.Connect) ([]hypervisor.Reason, error) {
		return farther(c, d.Name, f.Observed, cpu)
	})
	return append(why, far...), err
}

// behind are the disks that a VM at rest would leave behind: libvirt's offline migration
// moves its definition and copies no image.
// Source: libvirt 9.0 qemu_migration.c ("offline migration cannot handle non-shared
// storage").
func behind(f found) []hypervisor.Reason {
	var why []hypervisor.Reason
	if f.State != hypervisor.Shutoff {
		return nil
	}
	for _, disk := range f.VM.LocalDisks() {
		why = append(why, hypervisor.Reason{Check: "disk " + disk.Name,
			Need: "shared, or the VM running: libvirt copies no image of a VM that is shut off",
			Have: "a local disk of a VM that is shut off"})
	}
	return why
}

// keptOf returns the snapshots and checkpoints of a domain, which libvirt does not move. What
// is copied of a disk is its present contents.
// Source: libvirt 9.0 qemu_migration.c (qemuMigrationSrcIsAllowed).
func keptOf(ctx context.Context, d *domain) ([]hypervisor.Reason, error) {
	snapshots, checkpoints := 0, 0
	err := d.Do(ctx, func(dom *libvirt.Domain) error {
		n, err := dom.SnapshotNum(0)
		if err != nil {
			return err
		}
		all, err := dom.ListAllCheckpoints(0)
		for i := range all {
			_ = all[i].Free()
		}
		snapshots, checkpoints = n, len(all)
		return err
	})
	var why []hypervisor.Reason
	for _, k := range []struct {
		what string
		n    int
	}{{"snapshot", snapshots}, {"checkpoint", checkpoints}} {
		if k.n > 0 {
			why = append(why, hypervisor.Reason{Check: k.what + "s", Need: "none: they do not move",
				Have: fmt.Sprintf("%d: remove them with virsh %s-delete", k.n, k.what)})
		}
	}
	return why, err
}

// A guestCPU is what a guest needs of the processor at its target.
type guestCPU struct {
	xml     string // empty: nothing that could be missing
	machine string
	// whole: it sees the processor as it is.
	whole bool
}

// cpuOf returns what the guest needs. Where QEMU translates, nothing is needed.
func cpuOf(ctx context.Context, d *domain, f found) (guestCPU, error) {
	var dom lx.Domain
	if !f.Observed.Run.Alive() || d.Node.Settings.Type != domxml.KVM {
		return guestCPU{}, nil
	}
	return conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (guestCPU, error) {
		handle, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return guestCPU{}, err
		}
		defer func() { _ = handle.Free() }()
		text, err := handle.GetXMLDesc(libvirt.DOMAIN_XML_MIGRATABLE)
		if err != nil {
			return guestCPU{}, err
		}
		if err := dom.Unmarshal(text); err != nil || dom.CPU == nil || dom.OS == nil ||
			dom.OS.Type == nil || dom.Type != domxml.KVM {
			return guestCPU{}, nil
		}
		g := guestCPU{machine: dom.OS.Type.Machine, whole: dom.CPU.Mode == "host-passthrough"}
		if !g.whole {
			text, err := xml.Marshal(dom.CPU)
			if err != nil {
				return g, err
			}
			g.xml = string(text)
			if fits, err := compare(c, g); err == nil && !fits {
				return guestCPU{}, nil // it runs here with less, and so it may there
			}
			return g, nil
		}
		caps, err := d.Node.Capabilities(c)
		if err != nil {
			return g, err
		}
		g.xml, err = hostCPU(caps)
		return g, err
	})
}

// hostCPU returns the processor in a host's capabilities.
func hostCPU(capabilities string) (string, error) {
	var caps lx.Caps
	if err := caps.Unmarshal(capabilities); err != nil || caps.Host.CPU == nil {
		return "", err
	}
	text, err := xml.Marshal(caps.Host.CPU)
	return string(text), err
}

// farther asks the target's libvirtd what it says to the domain.
func farther(c *conn.Connect, own string, s observation, cpu guestCPU) (
	[]hypervisor.Reason, error) {
	var why reasons
	for _, look := range []func() (*libvirt.Domain, error){
		func() (*libvirt.Domain, error) { return c.LookupDomainByName(own) },
		func() (*libvirt.Domain, error) { return c.LookupDomainByUUIDString(s.UUID) },
	} {
		other, err := look()
		if errors.Is(err, libvirt.ERR_NO_DOMAIN) {
			continue
		}
		if err != nil {
			return nil, err
		}
		name, errName := other.GetName()
		uuid, errUUID := other.GetUUIDString()
		_ = other.Free()
		if err := errors.Join(errName, errUUID); err != nil {
			return nil, err
		}
		if name != own || uuid != s.UUID {
			why.add("name and uuid", own+" "+s.UUID+" free at the target",
				"domain "+name+" "+uuid)
			break
		}
		why.add("name and uuid", own+" free at the target", "the same domain is there")
		break
	}
	for _, uuid := range secrets(s.XML) {
		secret, err := c.LookupSecretByUUIDString(uuid)
		if errors.Is(err, libvirt.ERR_NO_SECRET) {
			why.add("secret", uuid, "not at the target: define it there with virsh secret-define")
			continue
		}
		if err == nil {
			_ = secret.Free()
		}
	}
	if fits, err := compare(c, cpu); err != nil || !fits {
		why.add("cpu", "the features of the guest's processor", "a target that lacks some of them")
		return why, err
	}
	return why, nil
}

// compare asks a target whether a guest's processor can be had there.
func compare(c *conn.Connect, cpu guestCPU) (bool, error) {
	if cpu.xml == "" {
		return true, nil
	}
	var result libvirt.CPUCompareResult
	var err error
	if cpu.whole {
		result, err = c.CompareCPU(cpu.xml, 0)
	} else {
		result, err = c.CompareHypervisorCPU("", "x86_64", cpu.machine, domxml.KVM, cpu.xml, 0)
	}
	if err != nil && conn.Classify(err) == hypervisor.Unsupported {
		return true, nil // it cannot tell, and libvirt will ask again
	}
	return result != libvirt.CPU_COMPARE_INCOMPATIBLE, err
}

// secrets returns the UUIDs of the secrets that the disks of a domain need.
func secrets(text string) []string {
	var dom lx.Domain
	if err := dom.Unmarshal(text); err != nil || dom.Devices == nil {
		return nil // libvirt asks again
	}
	var uuids []string
	add := func(s *lx.DomainDiskSecret) {
		if s != nil && s.UUID != "" {
			uuids = append(uuids, s.UUID)
		}
	}
	encryption := func(e *lx.DomainDiskEncryption) {
		if e != nil {
			for i := range e.Secrets {
				add(&e.Secrets[i])
			}
		}
	}
	auth := func(a *lx.DomainDiskAuth) {
		if a != nil {
			add(a.Secret)
		}
	}
	for _, disk := range dom.Devices.Disks {
		encryption(disk.Encryption)
		auth(disk.Auth)
		if disk.Source != nil {
			encryption(disk.Source.Encryption)
			if n := disk.Source.Network; n != nil {
				auth(n.Auth)
			}
		}
	}
	return uuids
}
