package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

const (
	// measureFor is how long a guest is measured. QEMU looks at 512 pages of each GiB before and after: what is
	// written again and again meanwhile counts once, as it does in a pass of a transfer.
	// Source: QEMU 7.2 qapi/migration.json (calc-dirty-rate: calc-time, sample-pages).
	measureFor = time.Second
	// measureLate is when a measurement that has told nothing is given up.
	measureLate = 30 * time.Second
)

// A gauge says which guest of the host is measured. It is one at a time: that takes CPU time of the host.
type gauge struct {
	vm      hypervisor.VMID // "" is none
	until   time.Time       // then it is given up
	waiting []hypervisor.VMID
	asked   map[hypervisor.VMID]time.Time // measurements that have told nothing so far
}

// busy reports whether another guest is measured.
func (g *gauge) busy(vm hypervisor.VMID, now time.Time) bool {
	return g.vm != "" && g.vm != vm && now.Before(g.until)
}

// begin notes that a guest is measured from now on.
func (g *gauge) begin(vm hypervisor.VMID, now time.Time, every time.Duration) {
	if g.asked == nil {
		g.asked = map[hypervisor.VMID]time.Time{}
	}
	maps.DeleteFunc(g.asked, func(_ hypervisor.VMID, at time.Time) bool { return now.Sub(at) > every })
	g.vm, g.until, g.asked[vm] = vm, now.Add(measureLate), now
	g.waiting = slices.DeleteFunc(g.waiting, func(other hypervisor.VMID) bool { return other == vm })
}

// measure has measured how fast the guest of a VM that runs writes memory, if it is time, and stores what was
// found. A VM that migrates is not measured: its transfer tells.
func (a *Agent) measure(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) error {
	every := a.config.MeasureEvery
	if every == 0 {
		return nil
	}
	vm := v.VM.ID
	if d.Measured.After(v.Dirtied.Last()) {
		var err error
		v, err = a.tell(ctx, v, func(next *store.VM) { next.Dirtied = v.Dirtied.With(d.DirtyRate, d.Measured) })
		if err != nil {
			return err
		}
		delete(a.gauge.asked, vm)
		a.free(vm)
	}
	last := v.Dirtied.Last()
	if asked := a.gauge.asked[vm]; asked.After(last) {
		if last = asked; a.gauge.vm == vm && now.Before(a.gauge.until) {
			a.queue.At(v.Key(), now.Add(a.config.Poll)) // it is under way
			return nil
		}
		a.free(vm)
	}
	if due := last.Add(every); !last.IsZero() && now.Before(due) {
		a.queue.At(v.Key(), due)
		return nil
	}
	return a.beginMeasuring(ctx, v, now)
}

// beginMeasuring has a guest measured, or lets it wait until another one was.
func (a *Agent) beginMeasuring(ctx context.Context, v *store.VM, now time.Time) error {
	vm := v.VM.ID
	if a.gauge.busy(vm, now) {
		if !slices.Contains(a.gauge.waiting, vm) {
			a.gauge.waiting = append(a.gauge.waiting, vm)
		}
		a.queue.At(v.Key(), a.gauge.until)
		return nil
	}
	host, err := a.hv.Host(ctx)
	if err != nil || !host.Abilities.Has(hypervisor.CanMeasureDirtyRate) {
		return err
	}
	a.gauge.begin(vm, now, a.config.MeasureEvery)
	err = a.hv.Do(ctx, vm, hypervisor.MeasureDirtyRate{For: measureFor})
	if refuses(err, hypervisor.Conflict, hypervisor.Invalid, hypervisor.Unsupported) {
		err = nil // another time
		a.free(vm)
	}
	a.queue.At(v.Key(), now.Add(measureFor+a.config.Poll))
	return err
}

// free lets the next guest be measured, once one was.
func (a *Agent) free(vm hypervisor.VMID) {
	if a.gauge.vm != vm {
		return
	}
	a.gauge.vm = ""
	for len(a.gauge.waiting) > 0 {
		next := a.home.Get(a.gauge.waiting[0])
		if a.gauge.waiting = a.gauge.waiting[1:]; next != nil {
			a.queue.Add(next.Key())
			return
		}
	}
}
