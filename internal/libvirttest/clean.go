//go:build linux

package libvirttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tidyPatience is how long libvirtd may take to forget what a test has left. A
// host that takes longer loses its power.
const tidyPatience = 3 * time.Second

// Clean makes the lab as good as new for the next test, to which it then belongs:
// hosts and daemons run, the link is whole, there is no domain, pool, network or
// file. Connections of an earlier test to a libvirtd may have been closed. It costs
// next to nothing when nothing is to be done.
func (l *Lab) Clean(t testing.TB) {
	t.Helper()
	l.t = t
	l.must(l.tidy())
	for _, h := range l.hosts {
		h.markLog()
	}
	t.Cleanup(func() { l.showLogs(t) })
}

func (l *Lab) tidy() error {
	if l.cut {
		if err := l.setLink(false); err != nil {
			return err
		}
	}
	// First all QEMUs of both, so that no libvirtd waits for the other's.
	if err := l.each(l.wake); err != nil {
		return err
	}
	if err := l.each(func(h *host) error {
		err := h.forget()
		if err == nil && !h.dirty() {
			return nil
		}
		return l.renew(h)
	}); err != nil {
		return err
	}
	return l.emptyDirs()
}

// wake gets a host and its daemon to run, and kills all else that runs in it.
func (l *Lab) wake(h *host) error {
	if h.PID() == 0 {
		return l.bootHost(h)
	}
	if err := h.Sweep(); err != nil {
		return errors.Join(h.Kill(), l.unplug(h), l.bootHost(h))
	}
	err := h.signalDaemon(syscall.SIGCONT)
	if err == nil {
		err = h.awaitDaemon()
	} else {
		err = h.startDaemon()
	}
	if err != nil {
		return l.renew(h)
	}
	return nil
}

// leftovers are the files by which libvirtd remembers something, by kind.
var leftovers = map[string][]string{
	"domain":  {"/etc/libvirt/qemu/*.xml", "/run/libvirt/qemu/*.xml", "/run/libvirt/qemu/*.pid"},
	"pool":    {"/etc/libvirt/storage/*.xml", "/run/libvirt/storage/*.xml"},
	"network": {"/etc/libvirt/qemu/networks/*.xml", "/run/libvirt/network/*.xml"},
}

func (h *host) dirty() bool {
	for kind := range leftovers {
		if len(h.names(kind)) > 0 {
			return true
		}
	}
	return false
}

// names lists what libvirtd remembers of a kind, without asking it.
func (h *host) names(kind string) []string {
	seen := map[string]bool{}
	var names []string
	for _, pattern := range leftovers[kind] {
		found, _ := filepath.Glob(h.lab.Outside(h.name, pattern))
		for _, path := range found {
			name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			if !seen[name] && name+filepath.Ext(path) != "driver.pid" { // the daemon's own
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// forget has libvirtd forget all that it remembers.
func (h *host) forget() error {
	deadline := time.Now().Add(tidyPatience)
	for h.dirty() {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("clean %s: libvirtd does not forget what it has", h.name)
		}
		var script []string
		for _, d := range h.names("domain") {
			script = append(script, "destroy '"+d+"'", "undefine '"+d+"' --nvram "+
				"--managed-save --snapshots-metadata --checkpoints-metadata")
		}
		for _, p := range h.names("pool") {
			script = append(script, "pool-destroy '"+p+"'", "pool-undefine '"+p+"'")
		}
		for _, n := range h.names("network") {
			script = append(script, "net-destroy '"+n+"'", "net-undefine '"+n+"'")
		}
		// Half of it fails because it is gone already; what is left is seen.
		for _, line := range script {
			_, _ = h.virsh(left, line)
		}
	}
	return nil
}

// renew takes the power from a host that cannot be cleaned, and its disks with it.
func (l *Lab) renew(h *host) error {
	err := errors.Join(h.Kill(), l.unplug(h))
	for _, dir := range []string{"etc", "var-lib"} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(h.dir, dir)))
	}
	if err != nil {
		return err
	}
	return l.bootHost(h)
}

// emptyDirs removes the files of a test.
func (l *Lab) emptyDirs() error {
	dirs := []string{l.SharedDir()}
	for _, h := range l.hosts {
		for _, inside := range []string{imagesDir, pulseDir, "/var/log/libvirt/qemu"} {
			dirs = append(dirs, l.Outside(h.name, inside))
		}
	}
	var bad []error
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			bad = append(bad, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(bad...)
}
