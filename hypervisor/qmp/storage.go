package qmp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/machine"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// makeDisks makes the images of local disks that are not there yet, and refuses a
// VM whose shared disks are not there. An incoming VM must bring its local disks:
// what is there already would be overwritten.
func (d *domain) makeDisks(ctx context.Context, vm hypervisor.VM, incoming bool) error {
	if vm.Hardware == nil {
		return nil
	}
	var bad []error
	for _, disk := range vm.Hardware.Disks {
		path := disk.Path
		if disk.Local() {
			path = d.host.settings(vm.ID).LocalDisk(disk.Name)
		}
		_, err := os.Stat(path)
		switch {
		case err == nil && disk.Local() && incoming:
			err = refuse(hypervisor.Conflict, "disk %s: %s is here already: move it away",
				disk.Name, path)
		case errors.Is(err, fs.ErrNotExist) && disk.Local():
			err = d.host.makeDisk(ctx, path, disk)
		case errors.Is(err, fs.ErrNotExist):
			err = refuse(hypervisor.Invalid, "disk %s: %s does not exist: make it, or correct "+
				"Hardware.Disks", disk.Name, path)
		}
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// makeDisk makes an empty image.
func (h *Host) makeDisk(ctx context.Context, path string, d hypervisor.Disk) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return refuse(hypervisor.Transient, "disk %s: %v", d.Name, err)
	}
	return h.image(ctx, "create", "-q", "-f", format(d), path, strconv.FormatInt(int64(d.Size), 10))
}

func format(d hypervisor.Disk) string {
	if d.Format == "" {
		return "raw"
	}
	return d.Format
}

// image runs qemu-img, which is next to QEMU or in the path.
func (h *Host) image(ctx context.Context, args ...string) error {
	program := filepath.Join(filepath.Dir(h.config.QEMU), "qemu-img")
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("qemu-img"); err != nil {
			return refuse(hypervisor.Unsupported, "%v: install it (Debian: qemu-utils)", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 6*h.config.Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return refuse(hypervisor.Transient, "qemu-img %s: %v: %s", args[0], err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

// dropDisks removes the images of local disks: the VM has moved away, or never
// came.
func (d *domain) dropDisks() error {
	if err := os.RemoveAll(d.host.journal.Disks(d.id)); err != nil {
		return refuse(hypervisor.Transient, "remove local disks: %v", err)
	}
	return nil
}

// listenForDisks exports the local disks of a waiting QEMU, and returns where.
func (d *domain) listenForDisks(ctx context.Context, vm *instance) (string, error) {
	disks := locals(d.record().VM)
	if len(disks) == 0 {
		return "", nil
	}
	_ = vm.NBDStop(ctx) // of an attempt that we did not survive
	creds := ""
	if t := d.host.config.TLS; t != nil {
		creds = credentials
	}
	at := qapi.Socket{Type: "unix", Path: disksSocket(d.host.settings(d.id))}
	if listen := d.host.config.Listen; listen != "" {
		port, err := freePort(listen)
		if err != nil {
			return "", refuse(hypervisor.Transient, "find a port for disks: %v", err)
		}
		at = qapi.Socket{Type: "inet", Host: listen, Port: strconv.Itoa(port)}
	}
	if err := vm.NBDStart(ctx, at, creds); err != nil {
		return "", err
	}
	for _, disk := range disks {
		if err := vm.NBDExport(ctx, machine.NodeName(disk.Name), disk.Name); err != nil {
			return "", err
		}
	}
	if at.Type == "unix" {
		return "unix:" + at.Path, nil
	}
	return "tcp:" + net.JoinHostPort(at.Host, at.Port), nil
}

// mirror begins to copy local disks to where the target exports its own.
func (d *domain) mirror(ctx context.Context, vm *instance, to string) error {
	network, where, _ := strings.Cut(to, ":")
	server := map[string]any{"type": "unix", "path": where}
	if network == "tcp" {
		host, port, err := net.SplitHostPort(where)
		if err != nil {
			return refuse(hypervisor.Invalid, "the target exports its disks at %q: %v", to, err)
		}
		server = map[string]any{"type": "inet", "host": host, "port": port}
	}
	for _, disk := range locals(d.record().VM) {
		node := map[string]any{"driver": "nbd", "node-name": mirrorNode(disk.Name),
			"server": server, "export": disk.Name}
		if t := d.host.config.TLS; t != nil {
			node["tls-creds"] = credentials
			if t.Hostname != "" {
				node["tls-hostname"] = t.Hostname
			}
		}
		if err := vm.BlockdevAdd(ctx, node); err != nil {
			return fmt.Errorf("reach disk %s at the target: %w", disk.Name, err)
		}
		err := vm.BlockdevMirror(ctx, mirrorID(disk.Name), machine.NodeName(disk.Name),
			mirrorNode(disk.Name))
		if err != nil {
			return fmt.Errorf("copy disk %s: %w", disk.Name, err)
		}
	}
	return nil
}

func mirrorNode(disk string) string { return "to." + machine.NodeName(disk)[len("disk."):] }

// finishMirrors lets copies that are ready end. The guest stands, so that they
// are complete then.
func (d *domain) finishMirrors(ctx context.Context, vm *instance) error {
	jobs, err := vm.mirrors(ctx, d.record().VM)
	for _, j := range jobs {
		if j.Status == qapi.JobReady || j.Status == qapi.JobStandby {
			err = errors.Join(err, vm.BlockJobCancel(ctx, j.ID, false))
		}
	}
	return err
}

// dropMirrors removes all that copying disks has left in the source's QEMU.
func (d *domain) dropMirrors(ctx context.Context, vm *instance) error {
	jobs, err := vm.mirrors(ctx, d.record().VM)
	for _, j := range jobs {
		switch j.Status {
		case qapi.JobNull:
		case qapi.JobConcluded:
			err = errors.Join(err, vm.JobDismiss(ctx, j.ID))
		default:
			err = errors.Join(err, vm.BlockJobCancel(ctx, j.ID, true),
				refuse(hypervisor.Transient, "%s is ending", j.ID)) // then Keep is due again
		}
	}
	if err != nil {
		return err
	}
	nodes, err := vm.QueryNamedNodes(ctx)
	if err != nil {
		return err
	}
	for _, disk := range locals(d.record().VM) {
		for _, n := range nodes {
			if n.Name == mirrorNode(disk.Name) {
				err = errors.Join(err, vm.BlockdevDel(ctx, n.Name))
			}
		}
	}
	return err
}
