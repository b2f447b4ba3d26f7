package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// unclaim confirms that the claim of a VM is stale which an operator wants to be taken back: the VM
// is here, and no transfer of that name is under way. Else it says why not, and looks again later.
func (a *Agent) unclaim(ctx context.Context, v *store.VM, now time.Time) error {
	d, err := a.hv.Domain(ctx, v.VM.ID)
	if err != nil {
		return err
	}
	p, err := a.hv.Progress(ctx, v.ActiveMigration)
	if err != nil {
		return err
	}
	if !v.Unheld(d, p) {
		a.queue.At(v.Key(), now.Add(a.config.Retry))
		_, err := a.troubled(ctx, v, fmt.Sprintf("its claim by %s is not taken back: it is %v here, "+
			"and that migration is %v", v.ActiveMigration, d.State, p.Status), now)
		return err
	}
	if err := a.stays(v.VM.ID); err != nil {
		return err
	}
	_, err = a.tell(ctx, v, func(next *store.VM) { next.Unclaimed, next.Trouble = v.ActiveMigration, "" })
	if err == nil {
		a.recorder.Note(now, a.host, v.VM.ID, "is here, and "+string(v.ActiveMigration)+" does not hold it")
	}
	return err
}
