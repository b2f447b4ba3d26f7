//go:build linux

package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Format returns the format of a disk's image.
func Format(d hypervisor.Disk) string {
	if d.Format == "" {
		return "raw"
	}
	return d.Format
}

// CreateImage makes an empty image of a disk's size.
func (l *Launcher) CreateImage(ctx context.Context, d hypervisor.Disk, path string) error {
	_, err := l.image(ctx, "create", "-q", "-f", Format(d), path, bytesOf(d))
	return err
}

// GrowImage gives an image that no QEMU uses the size of its disk, which is larger.
func (l *Launcher) GrowImage(ctx context.Context, d hypervisor.Disk, path string) error {
	return l.resize(ctx, d, path)
}

// CutImage gives an image that no QEMU uses the size of its disk. What is beyond is lost.
func (l *Launcher) CutImage(ctx context.Context, d hypervisor.Disk, path string) error {
	return l.resize(ctx, d, path, "--shrink")
}

func (l *Launcher) resize(ctx context.Context, d hypervisor.Disk, path string,
	how ...string) error {
	_, err := l.image(ctx, slices.Concat([]string{"resize", "-q", "-f", Format(d)}, how,
		[]string{path, bytesOf(d)})...)
	return err
}

// SnapshotImage keeps what is in an image that no QEMU uses under a name, inside of it.
func (l *Launcher) SnapshotImage(ctx context.Context, name, path string) error {
	_, err := l.image(ctx, "snapshot", "-q", "-c", name, path)
	return err
}

// DeleteSnapshot removes a snapshot from an image that no QEMU uses.
func (l *Launcher) DeleteSnapshot(ctx context.Context, name, path string) error {
	_, err := l.image(ctx, "snapshot", "-q", "-d", name, path)
	return err
}

// RevertSnapshot gives an image that no QEMU uses the contents that a snapshot has kept.
func (l *Launcher) RevertSnapshot(ctx context.Context, name, path string) error {
	_, err := l.image(ctx, "snapshot", "-q", "-a", name, path)
	return err
}

// HasSnapshot reports whether a qcow2 image that no QEMU uses has a snapshot of a name.
func (l *Launcher) HasSnapshot(ctx context.Context, name, path string) (bool, error) {
	said, err := l.image(ctx, "info", "--output=json", "-f", "qcow2", path)
	if err != nil {
		return false, err
	}
	var info struct{ Snapshots []struct{ Name string } }
	if err := json.Unmarshal(said, &info); err != nil {
		return false, Refuse(hypervisor.Transient, "qemu-img info %s: %v", path, err)
	}
	return slices.ContainsFunc(info.Snapshots, func(s struct{ Name string }) bool { return s.Name == name }), nil
}

// ImageSize returns how large an image that no QEMU uses is to a guest.
func (l *Launcher) ImageSize(ctx context.Context, d hypervisor.Disk, path string,
) (hypervisor.Bytes, error) {
	said, err := l.image(ctx, "info", "--output=json", "-f", Format(d), path)
	if err != nil {
		return 0, err
	}
	var info struct {
		Size hypervisor.Bytes `json:"virtual-size"`
	}
	if err := json.Unmarshal(said, &info); err != nil {
		return 0, Refuse(hypervisor.Transient, "qemu-img info %s: %v", path, err)
	}
	return info.Size, nil
}

// bytesOf is the size of a disk as qemu-img takes it.
func bytesOf(d hypervisor.Disk) string { return strconv.FormatInt(int64(d.Size), 10) }

// image runs qemu-img, which is next to QEMU or in the path, and returns what it said.
func (l *Launcher) image(ctx context.Context, args ...string) ([]byte, error) {
	program := filepath.Join(filepath.Dir(l.Path), "qemu-img")
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("qemu-img"); err != nil {
			return nil, Refuse(hypervisor.Unsupported,
				"%v: install it (Debian: qemu-utils)", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 6*l.Timeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, args...).Output()
	if err == nil {
		return said, nil
	}
	words := ""
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		words = strings.TrimSpace(string(failed.Stderr))
	}
	return nil, Refuse(hypervisor.Transient, "qemu-img %s: %v: %s", args[0], err, words)
}
