//go:build linux && libvirt_dlopen

package libvirt

// This file keeps the images of local disks in a storage pool of libvirt's, so
// that it works on a libvirtd that is far away, and so that libvirt itself makes them
// at the target of a migration.

import (
	"cmp"
	"context"
	"errors"
	"path"

	"libvirt.org/go/libvirt"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
)

// poolName is what the pool is called.
const poolName = "godwit"

// storageOpen returns the pool of a directory, which is made when it is not there. A pool
// that another client has made for the directory does as well.
func storageOpen(c *conn.Connect, dir string) (*libvirt.StoragePool, error) {
	pool, err := c.LookupStoragePoolByTargetPath(dir)
	if err == nil {
		return pool, nil
	}
	if !errors.Is(err, libvirt.ERR_NO_STORAGE_POOL) {
		return nil, err
	}
	xml, err := (&lx.StoragePool{Type: "dir", Name: poolName,
		Target: &lx.StoragePoolTarget{Path: dir}}).Marshal()
	if err != nil {
		return nil, err
	}
	if pool, err = c.LookupStoragePoolByName(poolName); err != nil {
		pool, err = c.StoragePoolDefineXML(xml, 0)
	}
	if err != nil {
		return nil, err
	}
	err = pool.Build(libvirt.STORAGE_POOL_BUILD_NEW)
	if errors.Is(err, libvirt.ERR_OPERATION_FAILED) ||
		errors.Is(err, libvirt.ERR_OPERATION_INVALID) {
		err = nil // the directory is there
	}
	if err == nil {
		err = pool.Create(0)
	}
	if err == nil {
		err = pool.SetAutostart(true)
	}
	if err != nil {
		_ = pool.Free()
		return nil, err
	}
	return pool, nil
}

// within does something with the volume of a disk.
func within(ctx context.Context, n *node, name, disk string,
	do func(*libvirt.StoragePool, *libvirt.StorageVol) error) error {
	image := n.Settings.Image(name, disk)
	if image == "" {
		return backend.Errorf(hypervisor.Unsupported, "this host has no place for local disks")
	}
	return n.Conn.Act(ctx, func(c *conn.Connect) error {
		pool, err := storageOpen(c, path.Dir(image))
		if err != nil {
			return err
		}
		defer func() { _ = pool.Free() }()
		vol, err := pool.LookupStorageVolByName(path.Base(image))
		if errors.Is(err, libvirt.ERR_NO_STORAGE_VOL) {
			if err = pool.Refresh(0); err == nil { // libvirt did not see it come
				vol, err = pool.LookupStorageVolByName(path.Base(image))
			}
		}
		if errors.Is(err, libvirt.ERR_NO_STORAGE_VOL) {
			return do(pool, nil)
		}
		if err != nil {
			return err
		}
		defer func() { _ = vol.Free() }()
		return do(pool, vol)
	})
}

// makeDisks makes the images of local disks that are not there.
func makeDisks(ctx context.Context, n *node, name string, vm hypervisor.VM) error {
	for _, d := range vm.LocalDisks() {
		if err := makeDisk(ctx, n, name, d); err != nil {
			return err
		}
	}
	return nil
}

// volumes returns the local disks of a VM whose images are there.
func volumes(ctx context.Context, n *node, name string, vm hypervisor.VM,
) ([]hypervisor.Disk, error) {
	var found []hypervisor.Disk
	for _, d := range vm.LocalDisks() {
		there := make(chan hypervisor.Disk, 2) // within may look twice
		look := func(_ *libvirt.StoragePool, v *libvirt.StorageVol) error {
			if v != nil {
				there <- d
			}
			return nil
		}
		if err := within(ctx, n, name, d.Name, look); err != nil {
			return nil, err
		}
		if len(there) > 0 {
			found = append(found, d)
		}
	}
	return found, nil
}

// makeDisk makes the image of a disk unless it is there.
func makeDisk(ctx context.Context, n *node, name string, d hypervisor.Disk) error {
	return within(ctx, n, name, d.Name, func(p *libvirt.StoragePool, v *libvirt.StorageVol) error {
		if v != nil {
			return nil
		}
		xml, err := (&lx.StorageVolume{Name: path.Base(n.Settings.Image(name, d.Name)),
			Capacity:   &lx.StorageVolumeSize{Unit: "bytes", Value: uint64(d.Size)},
			Allocation: &lx.StorageVolumeSize{Value: 0},
			Target: &lx.StorageVolumeTarget{Format: &lx.StorageVolumeTargetFormat{
				Type: cmp.Or(d.Format, "raw")}}}).Marshal()
		if err != nil {
			return err
		}
		vol, err := p.StorageVolCreateXML(xml, 0)
		if err != nil {
			return err
		}
		return vol.Free()
	})
}

// remove removes the images of local disks: the VM has moved, and they with it, or has
// not come, and libvirt has made them for it.
func remove(ctx context.Context, n *node, name string, vm hypervisor.VM) error {
	for _, d := range vm.LocalDisks() {
		err := within(ctx, n, name, d.Name,
			func(_ *libvirt.StoragePool, v *libvirt.StorageVol) error {
				if v == nil {
					return nil
				}
				return v.Delete(0)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// growDisk gives the image of a disk its size and returns what takes that back.
func growDisk(ctx context.Context, n *node, name string, d hypervisor.Disk) (
	undo func() error, err error) {
	was, err := resize(ctx, n, name, d, 0)
	back := d
	back.Size = was
	return func() error {
		_, err := resize(ctx, n, name, back, libvirt.STORAGE_VOL_RESIZE_SHRINK)
		return err
	}, err
}

// resize gives the image of a disk its size and returns the one that it had.
func resize(ctx context.Context, n *node, name string, d hypervisor.Disk,
	flags libvirt.StorageVolResizeFlags) (was hypervisor.Bytes, err error) {
	disk, size := d.Name, d.Size
	err = within(ctx, n, name, disk, func(_ *libvirt.StoragePool, v *libvirt.StorageVol) error {
		if v == nil {
			return backend.Errorf(hypervisor.NotFound, "disk %s has no image", disk)
		}
		info, err := v.GetInfo()
		if err != nil {
			return err
		}
		was = hypervisor.Bytes(info.Capacity)
		if was == size {
			return nil
		}
		return v.Resize(uint64(size), flags)
	})
	return was, err
}
