package fake

import (
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A FaultEffect is what goes wrong with a call.
type FaultEffect uint8

// The ways in which a call goes wrong.
const (
	noFault FaultEffect = iota
	// FailBefore answers Transient, without effect.
	FailBefore
	// FailAfter answers Unknown, after the effect.
	FailAfter
	// Hang answers Unknown, without effect, after the caller waited for Delay.
	Hang
	// LateAnswer has the effect and answers well, after the caller waited for Delay.
	LateAnswer
	// LateEffect answers Unknown; the effect comes after Delay, unless the host
	// crashes first or a later call changes the VM: no backend lets one overtake another.
	LateEffect
)

// String returns the name of how a call goes wrong.
func (h FaultEffect) String() string {
	return [...]string{"invalid", "FailBefore", "FailAfter", "Hang", "LateAnswer", "LateEffect",
		"invalid"}[min(h, LateEffect+1)]
}

// A Fault goes wrong with the next calls that it matches.
type Fault struct {
	Host hypervisor.HostName
	// Op is the method, as "Migrate", or the command or adjustment, as "Activate". Default: any.
	Op    string
	VM    hypervisor.VMID // default: any
	How   FaultEffect
	Times int           // how many calls; default: 1
	Delay time.Duration // what it costs the caller, or how late the effect is
}

// Inject adds a fault; of several that match a call the oldest is met. It refuses
// a fault that says not how (Invalid) or on which host (NotFound).
func (f *Network) Inject(fault Fault) error {
	return f.strike("Inject", fault.Host, func(*Host) error {
		if fault.How == noFault || fault.How > LateEffect || fault.Times < 0 || fault.Delay < 0 {
			return refuse(hypervisor.Invalid, "%+v", fault)
		}
		fault.Times = max(1, fault.Times)
		f.faults = append(f.faults, &fault)
		return nil
	})
}

// ClearFaults forgets the injected faults that have not been met.
func (f *Network) ClearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// meet returns the fault that a call meets; the zero Fault is none.
func (f *Network) meet(h *Host, op operation) Fault {
	for i, fault := range f.faults {
		if fault.Host != h.host.Name || fault.VM != "" && fault.VM != op.vm ||
			fault.Op != "" && fault.Op != op.method && fault.Op != op.name() {
			continue
		}
		if fault.Times--; fault.Times == 0 {
			f.faults = slices.Delete(f.faults, i, i+1)
		}
		return *fault
	}
	return Fault{}
}

// putOff lets a call act later. The answer is not waited for.
func (h *Host) putOff(op operation, fault Fault, act func()) error {
	late := &postponed{op.vm}
	h.late = append(h.late, late)
	h.network.world.In(fault.Delay, func() {
		if i := slices.Index(h.late, late); i >= 0 {
			h.late = slices.Delete(h.late, i, i+1)
			act()
		}
	})
	return h.fail(op, hypervisor.Unknown, errors.New("injected: the effect comes later"))
}

// CrashHost cuts a host from power: what ran there has crashed, what was coming
// in is gone, its peers hear nothing, and it answers Transient until RestartHost.
func (f *Network) CrashHost(name hypervisor.HostName) error {
	return f.strike("CrashHost", name, func(h *Host) error {
		if h.wire.Off {
			return nil
		}
		h.wire.Off = true
		h.late = nil
		for _, d := range slices.Concat(h.sorted, h.unseen) {
			d.die("the host crashed")
		}
		h.jobs.Forget(&h.wire)
		h.forgot = true
		return nil
	})
}

// RestartHost brings a crashed host back: its own VMs are shut off, its peers
// notice that their connections are gone.
func (f *Network) RestartHost(name hypervisor.HostName) error {
	return f.strike("RestartHost", name, func(h *Host) error {
		if !h.wire.Off {
			return nil
		}
		h.wire.Off = false
		h.listed.Doubt()
		for _, d := range slices.Concat(h.sorted, h.unseen) {
			d.Unresolved = false // the job's name is part of the definition
			if d.State != hypervisor.Shutoff {
				d.Become(hypervisor.Shutoff)
			}
		}
		f.world.Restarted(&h.wire)
		return nil
	})
}

// KillDomain ends the process of a domain: it has crashed, or, incoming, is gone.
// It does nothing to a VM without a process.
func (f *Network) KillDomain(host hypervisor.HostName, vm hypervisor.VMID) error {
	return f.strike("KillDomain", host, func(h *Host) error {
		d := h.find(vm)
		if d == nil {
			d = h.behind(vm)
		}
		if d != nil {
			d.die("the process died")
		}
		return nil
	})
}

// die ends the process of a domain, if it has one.
func (d *domain) die(why string) {
	if !occupies(d.State) {
		return
	}
	incoming := d.State == hypervisor.Receiving || d.State == hypervisor.Received
	if !incoming {
		d.Become(hypervisor.Crashed)
	}
	if d.transfer != nil {
		d.transfer.Lose(d, why)
	}
	if incoming {
		d.Vanish()
	}
}

// CutLink drops everything between two hosts, unnoticed. Transfers stand still. As long as the source
// has the VM nothing times out by itself; once it has stopped the connection breaks after a quarter of
// an hour, as that of Linux does.
func (f *Network) CutLink(a, b hypervisor.HostName) error {
	return f.onLink("CutLink", a, b, f.world.Cut)
}

// HealLink undoes CutLink: what stalled goes on, and a process whose peer died meanwhile is told.
func (f *Network) HealLink(a, b hypervisor.HostName) error {
	return f.onLink("HealLink", a, b, f.world.Heal)
}

// ResetLink closes every connection between two hosts.
func (f *Network) ResetLink(a, b hypervisor.HostName) error {
	return f.onLink("ResetLink", a, b, f.world.Reset)
}

// strike does something to a host, or answers NotFound.
func (f *Network) strike(op string, name hypervisor.HostName, act func(*Host) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[name]
	if h == nil {
		return &hypervisor.Error{Op: op, Host: name, Kind: hypervisor.NotFound}
	}
	err := act(h)
	f.world.Settle()
	return h.explain(op, "", err)
}

// onLink does something to the link between two hosts, or answers NotFound.
func (f *Network) onLink(op string, a, b hypervisor.HostName, act func(a, b *transferHost)) error {
	return f.strike(op, a, func(one *Host) error {
		other := f.hosts[b]
		if other == nil || other == one {
			return refuse(hypervisor.NotFound, "no link to %q", b)
		}
		act(&one.wire, &other.wire)
		return nil
	})
}
