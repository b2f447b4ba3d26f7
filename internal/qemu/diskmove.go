//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// copyID returns what the copy of a disk to another image of its host is called in QEMU.
func copyID(disk string) string { return "copy." + NodeName(disk) }

// NodeOf returns the node that holds the contents of a disk that does not move now.
func (in *Instance) NodeOf(ctx context.Context, disk string) (string, error) {
	nodes, err := in.QueryNamedNodes(ctx)
	return nodeOf(nodes, disk), err
}

// DiskSize returns how large the guest sees a disk.
func (in *Instance) DiskSize(ctx context.Context, disk string) (hypervisor.Bytes, error) {
	sizes, _, err := in.diskSizes(ctx, []hypervisor.Disk{{Name: disk}})
	if err == nil && sizes[disk] <= 0 {
		err = Refuse(hypervisor.Transient, "QEMU has no disk %s", disk)
	}
	return sizes[disk], err
}

// SnapshotsOf returns the node that holds the contents of a disk, and the names of the snapshots that its image
// keeps.
func (in *Instance) SnapshotsOf(ctx context.Context, disk string) (node string, names []string, err error) {
	nodes, err := in.QueryNamedNodes(ctx)
	node = nodeOf(nodes, disk)
	for _, n := range nodes {
		if n.Name == node {
			for _, s := range n.Image.Snapshots {
				names = append(names, s.Name)
			}
		}
	}
	return node, names, err
}

// CopyDisk begins to copy disk i of a VM to an image that is there, as large, and empty.
func (in *Instance) CopyDisk(ctx context.Context, vm hypervisor.VM, i int, to string) error {
	name := vm.Hardware.Disks[i].Name
	from, err := in.NodeOf(ctx, name)
	if err != nil {
		return Observing(err)
	}
	node := DiskNode(vm.AtPath(name, to), i, in.launcher.Settings(vm.ID))
	if from == NodeName(name) {
		node["node-name"] = otherNode(name)
		node["file"].(map[string]any)["node-name"] = otherFile(name)
	}
	if err := in.BlockdevAdd(ctx, node); err != nil {
		return Refuse(hypervisor.Invalid, "disk %s: open %s: %w", name, to, err)
	}
	if err := in.blockdevCopy(ctx, copyID(name), from, node["node-name"].(string)); err != nil {
		return errors.Join(fmt.Errorf("copy disk %s: %w", name, err), in.BlockdevDel(ctx, node["node-name"].(string)))
	}
	return nil
}

// Copy returns the copy of a disk to another image: JobNull when QEMU knows of none.
func (in *Instance) Copy(ctx context.Context, disk string) (Job, error) {
	jobs, err := in.QueryJobs(ctx)
	for _, j := range jobs {
		if j.ID == copyID(disk) {
			return j, nil
		}
	}
	return Job{ID: copyID(disk), Status: JobNull}, err
}

// SwitchDisk lets the guest go over to a copy that is ready.
func (in *Instance) SwitchDisk(ctx context.Context, disk string) error {
	return in.blockJobComplete(ctx, copyID(disk))
}

// TidyCopy removes what copying a disk has left in QEMU: the job, and the image that the guest does
// not, or no more, use. It answers [ErrEnding] as long as the copy is ending.
func (in *Instance) TidyCopy(ctx context.Context, disk string) error {
	j, err := in.Copy(ctx, disk)
	switch {
	case err != nil:
		return err
	case j.Status == JobNull:
	case j.Status == JobConcluded:
		if err := in.JobDismiss(ctx, j.ID); err != nil {
			return err
		}
	case j.Status == JobAborting:
		return Refuse(hypervisor.Transient, "%s: %w", j.ID, ErrEnding)
	default:
		return errors.Join(in.BlockJobCancel(ctx, j.ID, true), Refuse(hypervisor.Transient, "%s: %w", j.ID, ErrEnding))
	}
	nodes, err := in.QueryNamedNodes(ctx)
	has := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n NamedNode) bool { return n.Name == name })
	}
	if err != nil || !has(NodeName(disk)) || !has(otherNode(disk)) {
		return err
	}
	// QEMU does not remove the one that the guest uses.
	one := in.BlockdevDel(ctx, otherNode(disk))
	if _, inUse := errors.AsType[*Error](one); !inUse {
		return one
	}
	other := in.BlockdevDel(ctx, NodeName(disk))
	if _, inUse := errors.AsType[*Error](other); inUse {
		return Refuse(hypervisor.Transient, "both images of disk %s are in use: %w; %w", disk, one, other)
	}
	return other
}
