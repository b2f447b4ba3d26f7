//go:build linux && libvirt_dlopen

package libvirt

// This file keeps libvirtd from starting VMs by itself. It would do so when its host boots, before
// anything can tell it that the VM was started on another host meanwhile: the VM would run twice.

import (
	"context"
	"errors"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// disableAutostart has libvirtd not start a domain. A transient one it never starts.
func disableAutostart(dom *libvirt.Domain) error {
	defined, err := dom.IsPersistent()
	if err != nil || !defined {
		return err
	}
	starts, err := dom.GetAutostart()
	if err != nil || !starts {
		return err
	}
	return dom.SetAutostart(false)
}

// DisableAutostarts has libvirtd start none of the domains of which something is kept here. One that libvirtd does not
// change now, as its QEMU hangs, keeps no others from it: the agent asks again for each of its VMs.
func (n *node) DisableAutostarts(ctx context.Context) error {
	return n.Conn.Act(ctx, func(c *conn.Connect) error {
		return eachAutostarted(c, func(dom *libvirt.Domain, name string) error {
			if d := n.Find(domxml.IDOf(n.Namespace, name)); d != nil && d.Kept() {
				_ = disableAutostart(dom)
			}
			return nil
		})
	})
}

// eachAutostarted calls do for each domain that libvirtd starts with its host.
func eachAutostarted(c *conn.Connect, do func(*libvirt.Domain, string) error) error {
	doms, err := c.ListAllDomains(libvirt.CONNECT_LIST_DOMAINS_AUTOSTART)
	bad := []error{err}
	for i := range doms {
		if name, err := doms[i].GetName(); err == nil { // otherwise it went in between
			bad = append(bad, do(&doms[i], name))
		}
		_ = doms[i].Free()
	}
	return errors.Join(bad...)
}

// DisableAutostart has libvirtd not start a VM when the host boots: its caller starts it. It
// is done without a call to what is started, sent or received here, and to what was when the Host is
// opened. Nothing switches it on again. A VM that is not here is no error.
func (h *Host) DisableAutostart(ctx context.Context, vm hypervisor.VMID) error {
	return h.node.Change(ctx, "DisableAutostart", vm, func(d *domain) error {
		if err := d.Do(ctx, disableAutostart); !errors.Is(err, hypervisor.NotFound) {
			return err
		}
		return nil
	})
}

// Autostarted lists the domains of any client that libvirtd starts when the host boots, by name.
func (h *Host) Autostarted(ctx context.Context) ([]string, error) {
	names, err := conn.Ask(ctx, h.node.Conn, func(c *conn.Connect) (names []string, err error) {
		err = eachAutostarted(c, func(_ *libvirt.Domain, name string) error {
			names = append(names, name)
			return nil
		})
		return names, err
	})
	return names, h.node.Explain("Autostarted", "", err)
}
