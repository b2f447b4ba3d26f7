package controller

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// release takes back the claim of a VM that names a migration which is not there: an operator has
// asked for it, and the VM's host has confirmed that nothing moves it. Who has claimed the VM
// meanwhile has written its record, and nothing happens.
func (c *Controller) release(ctx context.Context, vm hypervisor.VMID, now time.Time) error {
	g := c.cache.vms[vm]
	if g == nil || g.rec == nil || !g.rec.Released() || c.cache.migrations[g.rec.ActiveMigration] != nil {
		return nil
	}
	claim, by := g.rec.ActiveMigration, g.rec.Release.By
	next := draft(&c.nextVM, g.rec)
	next.ActiveMigration, next.Release, next.Unclaimed = "", nil, ""
	stored, err := c.put(ctx, next, now)
	if stored {
		c.recorder.Note(now, "", vm, "is released: "+by+" says that "+string(claim)+
			" is no more, and its host that the VM is there")
	}
	return err
}
