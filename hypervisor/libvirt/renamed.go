//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// Renamed answers Conflict when the host has a domain with the UUID of the VM under another name:
// another client has renamed it, or defined it anew. What that does, the VM does; that no domain has the
// VM's own name proves nothing.
func (d *domain) Renamed(ctx context.Context) error {
	uuid := domxml.UUIDOf(d.ID)
	name, err := conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (string, error) {
		dom, err := c.LookupDomainByUUIDString(uuid)
		if errors.Is(err, libvirt.ERR_NO_DOMAIN) {
			return d.Name, nil
		}
		if err != nil {
			return "", err
		}
		defer func() { _ = dom.Free() }()
		return dom.GetName()
	})
	if err != nil || name == d.Name {
		return err
	}
	return backend.Errorf(hypervisor.Conflict, "the domain %q has the UUID of the VM, %s: it "+
		"was renamed, or defined anew: shut it down and give it its name back: virsh "+
		"domrename %s %s", name, uuid, name, d.Name)
}
