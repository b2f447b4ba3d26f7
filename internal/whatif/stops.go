package whatif

import (
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Stops are the VMs of a plan that are not migrated one by one: those that are shut down, since they
// cannot be migrated, and those that leave with others.
type Stops struct {
	Terms evacuation.Terms
	// Restart are those that are started where the plan moves them, Off those that stay off, with
	// their hosts.
	Restart map[hypervisor.VMID]bool
	Off     map[hypervisor.VMID]hypervisor.HostName
	// Together are those that leave with others: the first alone must not be moved.
	Together map[hypervisor.VMID]bool
}

// StopsOf returns the VMs that a plan with these moves shuts down, and those that leave together.
func StopsOf(d *plan.DrainedFleet, s *config.Scenario, waves []plan.Wave, terms evacuation.Terms) *Stops {
	stops := &Stops{Terms: terms, Restart: map[hypervisor.VMID]bool{},
		Off: map[hypervisor.VMID]hypervisor.HostName{}, Together: map[hypervisor.VMID]bool{}}
	for _, all := range d.Groups {
		for _, vm := range all {
			stops.Together[vm] = true
		}
	}
	for _, vm := range d.Restarted(waves) {
		stops.Restart[vm] = true
	}
	for i := range s.Fleet.VMs {
		if v := &s.Fleet.VMs[i]; slices.Contains(d.ShutDown, v.ID) {
			stops.Off[v.ID] = v.Host
		}
	}
	return stops
}

func (s *Stops) restarts(vm hypervisor.VMID) bool { return s != nil && s.Restart[vm] }

func (s *Stops) together(vm hypervisor.VMID) bool { return s != nil && s.Together[vm] }

// Restarted lists the VMs that are restarted, by ID.
func (s *Stops) Restarted() []hypervisor.VMID {
	return append([]hypervisor.VMID{}, slices.Sorted(maps.Keys(s.Restart))...)
}

// off returns the hosts of the VMs that stay off.
func (s *Stops) off() map[hypervisor.VMID]hypervisor.HostName {
	if s == nil {
		return nil
	}
	return s.Off
}

func (s *Stops) terms() evacuation.Terms {
	if s == nil {
		return evacuation.Terms{}
	}
	return s.Terms
}

// on returns the stops while only some hosts are emptied.
func (s *Stops) on(hosts []hypervisor.HostName) *Stops {
	if s == nil {
		return nil
	}
	some := *s
	some.Off = maps.Clone(s.Off)
	maps.DeleteFunc(some.Off, func(_ hypervisor.VMID, host hypervisor.HostName) bool {
		return !slices.Contains(hosts, host)
	})
	return &some
}

// alone returns the stops for the play of a single move.
func (s *Stops) alone() *Stops {
	if s == nil {
		return nil
	}
	return &Stops{Terms: s.Terms, Restart: s.Restart, Together: s.Together}
}

// shutDown asks for the VMs to be shut down that are to stay off.
func (o *operator) shutDown() {
	for _, vm := range slices.Sorted(maps.Keys(o.play.Stops.off())) {
		o.world.At(0, sim.Evict{VM: vm, Grace: o.play.Stops.Terms.Grace})
	}
	for len(o.play.Waves) == 0 && o.left > 0 && o.world.Now() < o.until {
		if o.world.Run(workqueue.Later(o.world.Now(), time.Second)) != sim.TimeIsUp {
			return
		}
	}
}

// request returns the event with which the operator asks for a move.
func (o *operator) request(m plan.Move) sim.Event {
	if !o.play.Stops.restarts(m.VM) {
		ask := sim.Migrate{VM: m.VM, Target: m.Target}
		if o.play.Stops.together(m.VM) { // it is played alone: see grouped
			ask.Force = placement.Yes
		}
		return ask
	}
	p := o.run.Results[m.VM]
	p.Attempts, p.Began, p.Done = p.Attempts+1, o.world.Now(), false // an earlier wave may have restarted it, too
	o.run.Results[m.VM] = p
	return sim.Evict{VM: m.VM, Target: m.Target, Grace: o.play.Stops.Terms.Grace}
}

// watchVM is [sim.Config]'s WatchVM: it follows the VMs that are shut down.
func (o *operator) watchVM(at time.Duration, before, after *store.VM) {
	vm := after.VM.ID
	if host, off := o.play.Stops.off()[vm]; off && after.Ended && !before.Ended {
		o.gone(at, host)
	}
	if !o.play.Stops.restarts(vm) {
		return
	}
	if before.Host != after.Host {
		o.gone(at, before.Host)
	}
	p := o.run.Results[vm]
	if p.Attempts == 0 || p.Done || after.Evicted != nil || after.Operation != store.Nothing ||
		before.Operation != store.Starting {
		return
	}
	p.Done, p.Took = true, at-p.Began
	o.run.Results[vm] = p
	o.open--
}
