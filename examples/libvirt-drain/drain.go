//go:build linux && libvirt_dlopen

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// interval is how often every participant looks.
const interval = 50 * time.Millisecond

// A drain empties hosts[0].
type drain struct {
	out    io.Writer
	began  time.Time
	hosts  []*libvirt.Host
	limits migration.Cluster
	agents []*agent.Agent
	store  store.Store
}

// run lets every participant look, in turn, until nothing is left.
func (d *drain) run(ctx context.Context) error {
	d.store = store.NewMemory()
	for i, h := range d.hosts {
		if err := d.admit(ctx, i, h); err != nil {
			return err
		}
	}
	// Big VMs may take their time; one that does not converge is slowed down.
	slow, patience := true, 10*time.Minute
	boss := controller.New(controller.Config{Cluster: &d.limits, Policies: []migration.Policy{{
		Name: "drain", Selectors: &migration.Selectors{}, OptionsOverrides: migration.OptionsOverrides{
			AllowAutoConverge: &slow, CompletionTimeoutPerGiB: &patience}}}}, d.store, d)
	for told := time.Now(); ; {
		now := time.Now()
		_, err := boss.Reconcile(ctx, now)
		for _, a := range d.agents {
			_, e := a.Reconcile(ctx, now)
			err = errors.Join(err, e)
		}
		left, what, look := d.look(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %d left: %s", context.Cause(ctx), left, what)
		case look == nil && left == 0:
			d.say("", "the host runs nothing any more")
			return nil
		}
		if err = errors.Join(err, look); err != nil { // it is tried again
			d.say("", err.Error())
		}
		if now.Sub(told) >= time.Second {
			told = now
			d.say("", fmt.Sprintf("%d left: %s", left, what))
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// admit makes a host known, and what runs on the one that is drained.
func (d *drain) admit(ctx context.Context, i int, h *libvirt.Host) error {
	host, err := h.Host(ctx)
	if err != nil {
		return err
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return err
	}
	known := &store.Host{Host: host}
	if i == 0 {
		known.Taints = []placement.Taint{{Key: d.limits.NodeDrainTaintKey,
			Effect: placement.NoSchedule}}
	}
	for _, v := range domains {
		switch {
		case !v.State.HoldsState():
		case i > 0: // it stays, no agent here keeps it running, and its room is taken
			known.Host.Memory -= v.VM.Memory
			known.Host.CPUs -= v.VM.CPUs
		default:
			if err := d.leave(ctx, h, v, host.Name); err != nil {
				return err
			}
		}
	}
	d.agents = append(d.agents, agent.New(host.Name, agent.Config{Poll: 4 * interval}, h, d.store, d))
	_, err = d.store.Put(ctx, known)
	return err
}

// leave makes a VM known that is to go, and asks for its migration, so that it has a
// name that no earlier drain has used: hosts remember their jobs.
func (d *drain) leave(ctx context.Context, h *libvirt.Host, v hypervisor.Domain,
	host hypervisor.HostName) error {
	p, err := h.Progress(ctx, v.Job)
	if err != nil {
		return err
	}
	if v.Unresolved || p.Status != hypervisor.JobNone && !p.Status.Final() {
		return fmt.Errorf("%s takes part in job %s, which is %v: see libvirt.Resolve, or wait",
			v.VM.ID, v.Job, p.Status)
	}
	vm := &store.VM{VM: v.VM, Host: host, Strategy: evacuation.LiveMigrate, Migratable: true}
	if _, err := d.store.Put(ctx, vm); err != nil {
		return err
	}
	_, err = d.store.Put(ctx, &store.Migration{Spec: migration.Spec{VM: v.VM.ID,
		ID:      migration.ID(fmt.Sprintf("%s#%d", v.VM.ID, d.began.Unix())),
		Created: d.began, By: migration.Evacuation}})
	return err
}

// look counts what is left on the host, and says how it goes. A VM that has stopped there is
// left until its migration has failed or nothing of the VM is here any more: libvirt stops the
// source before the target has told.
func (d *drain) look(ctx context.Context) (left int, what string, err error) {
	domains, err := d.hosts[0].Domains(ctx)
	known, lost := d.store.Changes(ctx, store.Everything, 0)
	leaves := map[hypervisor.VMID]bool{}
	for _, r := range known.Records {
		if m, ok := r.(*store.Migration); ok && m.Source.Began && !m.Source.Released &&
			m.State.Phase != migration.Failed {
			leaves[m.Spec.VM] = true
		}
	}
	var list []string
	for _, v := range domains {
		moves := leaves[v.VM.ID]
		delete(leaves, v.VM.ID)
		rests := v.State == hypervisor.Shutoff || v.State == hypervisor.Crashed && !v.Unresolved
		if rests && !moves {
			continue // it does not run anywhere
		}
		left++
		text := fmt.Sprintf("%s %v", v.VM.ID, v.State)
		p, e := d.hosts[0].Progress(ctx, v.Job)
		if e == nil {
			text += how(p)
		}
		list = append(list, text)
	}
	for _, vm := range slices.Sorted(maps.Keys(leaves)) { // gone, and not reported yet
		left++
		list = append(list, string(vm)+" is on its way")
	}
	return left, strings.Join(list, ", "), errors.Join(err, lost)
}

// how says how a migration goes.
func how(p hypervisor.Progress) string {
	switch {
	case p.Status == hypervisor.JobNone:
		return ""
	case p.Status == hypervisor.JobActive && p.Total > 0:
		return fmt.Sprintf(" %d%% %v", 100*(p.Total-min(p.Total, p.Remaining))/p.Total, p.Bandwidth)
	}
	return " " + p.Status.String()
}

// Note implements store.EventRecorder.
func (d *drain) Note(_ time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	if who != "" {
		what = string(who) + ": " + what
	}
	d.say(string(vm), what)
}

// say prints a line with the time since the beginning.
func (d *drain) say(vm, what string) {
	if vm != "" {
		what = vm + "  " + what
	}
	fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), what)
}
