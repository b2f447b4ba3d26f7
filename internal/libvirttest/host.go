//go:build linux

package libvirttest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// hostNamespaces are what a host has for itself, switchNamespaces what the switch
// has: it must see the numbers of the hosts' processes to plug links into them.
const (
	hostNamespaces = switchNamespaces | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWPID
	switchNamespaces = syscall.CLONE_NEWNET
)

// patience is how long anything may take on a busy machine before it is given
// up. Nothing is expected to take nearly as long. GODWIT_TEST_PATIENCE multiplies it.
var patience = testutil.Limit(testutil.DefaultLimit)

// ownDirs are the directories that every host has for itself.
var ownDirs = []struct{ outside, inside string }{
	{"run", "/run"},
	{"var-lib", "/var/lib/libvirt"},
	{"var-cache", "/var/cache/libvirt"},
	{"var-log", "/var/log/libvirt"},
	{"etc", "/etc/libvirt"},
}

// A host is one of the two.
type host struct {
	Sandbox
	lab    *Lab
	name   string
	number int    // 1, 2
	dir    string // from outside
	shown  int64  // how much of the log an earlier test has had
}

// powerOn boots the host, but for its link and its daemon. What is in
// /run is of an earlier life.
func (h *host) powerOn() error {
	err := os.RemoveAll(filepath.Join(h.dir, "run"))
	spec := Spec{Name: h.name, Files: h.files(),
		Dirs: []string{"/run/lock", pulseDir, imagesDir},
		Late: []Mount{{Outside: hostsFile, Inside: "/etc/hosts"}}}
	for _, d := range ownDirs {
		outside := filepath.Join(h.dir, d.outside)
		err = errors.Join(err, os.MkdirAll(outside, 0o700))
		spec.Mounts = append(spec.Mounts, Mount{Outside: outside, Inside: d.inside})
	}
	if err == nil {
		err = h.Launch(hostNamespaces, filepath.Join(h.dir, "init.log"))
	}
	if err == nil {
		err = h.Boot(spec)
	}
	if err != nil {
		return fmt.Errorf("boot %s: %w", h.name, err)
	}
	return nil
}

// socket is where libvirtd listens, from outside.
func (h *host) socket() string { return filepath.Join(h.dir, "run/libvirt/libvirt-sock") }

// startDaemon starts libvirtd and waits until it answers.
func (h *host) startDaemon() error {
	err := h.StartDaemon(daemonOut, "libvirtd", "-l", "-f", daemonCnf, "-p", "/run/libvirtd.pid")
	if err != nil {
		return fmt.Errorf("start libvirtd on %s: %w", h.name, err)
	}
	if err := h.awaitDaemon(); err != nil {
		return fmt.Errorf("start libvirtd on %s: %w\n%s", h.name, err, h.log())
	}
	return nil
}

// awaitDaemon waits until libvirtd answers. It listens before it has started its
// drivers, and answers only afterwards.
func (h *host) awaitDaemon() error {
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.Dial("unix", h.socket())
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it does not listen after %v: %w", patience, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	_, err := h.virsh(time.Until(deadline), "uri")
	return err
}

func (h *host) signalDaemon(s syscall.Signal) error {
	if err := h.SignalDaemon(s); err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	return nil
}
