package client

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// RenameVM gives a VM that is stopped another name, in its namespace. The agent of its host does it.
func (d *Client) RenameVM(ctx context.Context, id, to hypervisor.VMID) (*store.VM, error) {
	space, _ := divide(id)
	if !strings.Contains(string(to), "/") {
		to = hypervisor.VMID(space) + "/" + to
	}
	what := "rename vm " + string(id) + " to " + string(to)
	switch other, _ := divide(to); {
	case !named(to):
		return nil, refuse("rename vm "+string(id), "%.100q is not a name: write a-z A-Z 0-9 . _ -", to)
	case other != space:
		return nil, refuse(what, "a VM stays in its namespace")
	case to == id:
		return nil, refuse(what, "it has this name")
	}
	taken, err := d.Store.Get(ctx, vmKey(to))
	if err != nil {
		return nil, err
	}
	if taken != nil {
		return nil, refuse(what, "a VM of this name exists already: delete it first, or choose another name")
	}
	return d.changeVM(ctx, id, "rename to "+string(to), func(v *store.VM) error {
		if r := v.Rename; r != nil && r.To == to {
			return nil
		}
		if why := v.CannotRename(); why != "" {
			return refuse(what, "%s", why)
		}
		v.Rename = &store.Rename{To: to, ID: rand.Text(), By: d.By}
		return nil
	})
}
