//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// ListenForDisks exports the local disks of a VM from a waiting QEMU, and returns
// where: at an IP address, or, without one, at a unix socket.
func (in *Instance) ListenForDisks(ctx context.Context, vm hypervisor.VM, listen string,
) (string, error) {
	disks := vm.LocalDisks()
	if len(disks) == 0 {
		return "", nil
	}
	_ = in.NBDStop(ctx) // of an attempt that we did not survive
	creds := ""
	if t := in.tls; t != nil {
		creds = credentials
	}
	at := Socket{Type: "unix", Path: disksSocket(in.launcher.Settings(vm.ID))}
	if listen != "" {
		port, err := FreePort(listen)
		if err != nil {
			return "", Refuse(hypervisor.Transient, "find a port for disks: %v", err)
		}
		at = Socket{Type: "inet", Host: listen, Port: strconv.Itoa(port)}
	}
	if err := in.NBDStart(ctx, at, creds); err != nil {
		return "", err
	}
	for _, disk := range disks {
		if err := in.NBDExport(ctx, NodeName(disk.Name), disk.Name); err != nil {
			return "", err
		}
	}
	if at.Type == "unix" {
		return "unix:" + at.Path, nil
	}
	return "tcp:" + net.JoinHostPort(at.Host, at.Port), nil
}

// FreePort finds a port for QEMU, which does not always tell which one it has
// chosen.
func FreePort(ip string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Mirror begins to copy the local disks of a VM to where the target exports its
// own. They share the bandwidth that the migration may use; 0 is no limit.
func (in *Instance) Mirror(ctx context.Context, vm hypervisor.VM, to string,
	limit hypervisor.Bandwidth) error {
	network, where, _ := strings.Cut(to, ":")
	server := map[string]any{"type": "unix", "path": where}
	if network == "tcp" {
		host, port, err := net.SplitHostPort(where)
		if err != nil {
			return Refuse(hypervisor.Invalid,
				"the target exports its disks at %q: %v", to, err)
		}
		server = map[string]any{"type": "inet", "host": host, "port": port}
	}
	nodes, err := in.QueryNamedNodes(ctx)
	if err != nil {
		return err
	}
	disks := vm.LocalDisks()
	for _, disk := range disks {
		node := map[string]any{"driver": "nbd", "node-name": mirrorNode(disk.Name),
			"server": server, "export": disk.Name}
		if t := in.tls; t != nil {
			node["tls-creds"] = credentials
			if t.Hostname != "" {
				node["tls-hostname"] = t.Hostname
			}
		}
		if err := in.BlockdevAdd(ctx, node); err != nil {
			return fmt.Errorf("reach disk %s at the target: %w", disk.Name, err)
		}
		err = in.BlockdevMirror(ctx, mirrorID(disk.Name), nodeOf(nodes, disk.Name),
			mirrorNode(disk.Name), share(limit, len(disks)))
		if err != nil {
			return fmt.Errorf("copy disk %s: %w", disk.Name, err)
		}
	}
	return nil
}

// LimitMirrors limits the copies of local disks together; 0 is no limit. One that has ended needs none.
func (in *Instance) LimitMirrors(ctx context.Context, vm hypervisor.VM, limit hypervisor.Bandwidth) error {
	disks := vm.LocalDisks()
	for _, disk := range disks {
		err := in.BlockJobSetSpeed(ctx, mirrorID(disk.Name), share(limit, len(disks)))
		if _, refused := errors.AsType[*Error](err); err != nil && !refused {
			return err
		}
	}
	return nil
}

// share returns what one of n has of a limit, which is never nothing: that would be no limit.
func share(limit hypervisor.Bandwidth, n int) int64 {
	if limit <= 0 {
		return 0
	}
	return max(1, int64(limit)/int64(n))
}

func mirrorNode(disk string) string { return "to." + NodeName(disk)[len("disk."):] }

// FinishMirrors lets copies that are ready end. The guest stands, so that they
// are complete then.
func (in *Instance) FinishMirrors(ctx context.Context, vm hypervisor.VM) error {
	jobs, err := in.Mirrors(ctx, vm)
	for _, j := range jobs {
		if j.Status == JobReady || j.Status == JobStandby {
			err = errors.Join(err, in.BlockJobCancel(ctx, j.ID, false))
		}
	}
	return err
}

// ErrEnding says that copies were told to end, and have not ended yet.
var ErrEnding = errors.New("it is ending")

// DropMirrors removes all that copying disks has left in the source's QEMU. It
// answers Transient and [ErrEnding] as long as a copy is ending.
func (in *Instance) DropMirrors(ctx context.Context, vm hypervisor.VM) error {
	jobs, err := in.Mirrors(ctx, vm)
	for _, j := range jobs {
		switch j.Status {
		case JobNull:
		case JobConcluded:
			err = errors.Join(err, in.JobDismiss(ctx, j.ID))
		default:
			err = errors.Join(err, in.BlockJobCancel(ctx, j.ID, true),
				Refuse(hypervisor.Transient, "%s: %w", j.ID, ErrEnding)) // to be done again
		}
	}
	if err != nil {
		return err
	}
	nodes, err := in.QueryNamedNodes(ctx)
	if err != nil {
		return err
	}
	for _, disk := range vm.LocalDisks() {
		for _, n := range nodes {
			if n.Name == mirrorNode(disk.Name) {
				err = errors.Join(err, in.BlockdevDel(ctx, n.Name))
			}
		}
	}
	return err
}

// Plug gives the last disk of vm to its QEMU. What we did not survive to note is
// there already, or half of it: a node that is not in use has no device.
func (in *Instance) Plug(ctx context.Context, vm hypervisor.VM) error {
	i := len(vm.Hardware.Disks) - 1
	name := vm.Hardware.Disks[i].Name
	nodes, err := in.QueryNamedNodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Name != NodeName(name) {
			continue
		}
		err := in.BlockdevDel(ctx, n.Name)
		if _, inUse := errors.AsType[*Error](err); inUse {
			return nil
		}
		if err != nil {
			return err
		}
	}
	node := DiskNode(vm, i, in.launcher.Settings(vm.ID))
	if err := in.BlockdevAdd(ctx, node); err != nil {
		return Refuse(hypervisor.Invalid, "disk %s: %w", name, err)
	}
	if err := in.DeviceAdd(ctx, DiskDevice(vm.Hardware, i)); err != nil {
		return errors.Join(err, in.BlockdevDel(ctx, NodeName(name)))
	}
	return nil
}
