package inventory

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration/placement"
)

// What a file need not say.
const (
	// DefaultLink is the speed of a host's migration network.
	DefaultLink = 10 * hypervisor.Gbit
	// DefaultClass is the workload of a VM of which nothing is known. An idle
	// one would make every plan look better than it is.
	DefaultClass = "web"
)

// class is a named workload. Shares are in parts per thousand of the memory.
type class struct {
	name      string
	hot, zero int
	rate      hypervisor.Bandwidth // of writes to the hot set
	cold      hypervisor.Bandwidth // of writes to everything else that was ever written
}

const mibps = hypervisor.Bandwidth(hypervisor.MiB)

// The classes, from calm to busy. It is not published how fast the memory of real
// fleets changes: these are round numbers to plan with, not measurements. The
// order of magnitude of busy agrees with the one guest that QEMU's commit
// 7ca1dfad documents, a Java server that dirtied 264 MiB/s of 256 GB.
var classes = [...]class{
	{name: "idle", hot: 5, zero: 600, rate: mibps, cold: mibps / 16},
	{name: "web", hot: 20, zero: 300, rate: 20 * mibps, cold: mibps},
	{name: "database", hot: 100, zero: 50, rate: 200 * mibps, cold: 10 * mibps},
	{name: "busy", hot: 200, zero: 100, rate: 600 * mibps, cold: 20 * mibps},
	{name: "in-memory", hot: 400, zero: 20, rate: 1200 * mibps, cold: 50 * mibps},
}

// Class returns how a VM with this memory behaves when it is of the named class,
// and whether there is such a class. The hot set is a share of the memory, the
// rates are absolute, and the cold set is what is neither hot nor zero:
//
//	class      hot set  written at   rest written at  never written
//	idle        0.5 %     1 MiB/s        64 KiB/s        60 %
//	web           2 %    20 MiB/s         1 MiB/s        30 %
//	database     10 %   200 MiB/s        10 MiB/s         5 %
//	busy         20 %   600 MiB/s        20 MiB/s        10 %
//	in-memory    40 %  1200 MiB/s        50 MiB/s         2 %
func Class(name string, memory hypervisor.Bytes) (fake.Workload, bool) {
	for _, c := range classes {
		if c.name == name {
			hot := share(memory, c.hot)
			return fake.Workload{
				Rate: c.rate, Hot: hot,
				ColdRate: c.cold, Cold: memory - hot - share(memory, c.zero),
				Zero: c.zero,
			}, true
		}
	}
	return fake.Workload{}, false
}

// Classes lists the names that [Class] knows, from calm to busy.
func Classes() []string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = c.name
	}
	return names
}

// share returns thousandths of b, rounded down, without overflow.
func share(b hypervisor.Bytes, thousandths int) hypervisor.Bytes {
	t := hypervisor.Bytes(thousandths)
	return b/1000*t + b%1000*t/1000
}

// A Load says how a VM behaves, for any memory. Its zero value says nothing.
type Load struct {
	Class string // as [Class] knows it; "" starts from a guest that writes nothing
	// The others replace what the class says; 0 does not.
	Dirty      hypervisor.Bandwidth // of writes to the hot set
	WorkingSet hypervisor.Bytes     // size of the hot set; with no class: all memory
	ColdDirty  hypervisor.Bandwidth // of writes to everything else
}

// Workload returns how a VM with this memory behaves. A working set larger than
// the memory is all of it; an unknown class writes nothing: see [Load.Validate].
func (l Load) Workload(memory hypervisor.Bytes) fake.Workload {
	w, known := Class(l.Class, memory)
	if !known {
		w = fake.Workload{Cold: memory}
		if l.Dirty > 0 {
			w.Hot, w.Cold = memory, 0
		}
	}
	if l.Dirty > 0 {
		w.Rate = l.Dirty
	}
	if l.ColdDirty > 0 {
		w.ColdRate = l.ColdDirty
	}
	if l.WorkingSet > 0 {
		w.Hot = min(l.WorkingSet, memory)
		unused := share(memory, w.Zero)
		w.Cold = max(0, memory-w.Hot-unused)
	}
	return w
}

// Validate returns an error when the class is unknown or a number is negative.
func (l Load) Validate() error {
	_, known := Class(l.Class, 0)
	switch {
	case !known && l.Class != "":
		return fmt.Errorf("unknown class %q; use %s", l.Class, strings.Join(Classes(), ", "))
	case l.Dirty < 0 || l.WorkingSet < 0 || l.ColdDirty < 0:
		return fmt.Errorf("a rate or a working set is negative")
	}
	return nil
}

// Defaults are what a file does not say. What it does say always wins.
type Defaults struct {
	Link hypervisor.Bandwidth // 0 is [DefaultLink]
	Load Load                 // the zero value is [DefaultClass]
	// Overrides are defaults for some hosts and VMs. Of those that match, the
	// one with the most labels wins, and among equals the last.
	Overrides []Override
	// Network is the fleet's: see [Fleet].
	Network hypervisor.Bandwidth
}

// An Override is a default for the hosts, or the VMs, with all these labels. A
// nil selector selects none, an empty one all. What it leaves zero it does not
// say, so that one with fewer labels, or the general default, does.
type Override struct {
	Hosts placement.Labels
	Link  hypervisor.Bandwidth // for Hosts
	VMs   placement.Labels
	Load  Load // for VMs
}

// LinkOf returns the speed of a host with these labels.
func (d Defaults) LinkOf(labels placement.Labels) hypervisor.Bandwidth {
	link, best := d.Link, -1
	for _, o := range d.Overrides {
		if o.Link > 0 && len(o.Hosts) >= best && selects(o.Hosts, labels) {
			link, best = o.Link, len(o.Hosts)
		}
	}
	if link <= 0 {
		return DefaultLink
	}
	return link
}

// LoadOf returns how VMs with these labels behave.
func (d Defaults) LoadOf(labels placement.Labels) Load {
	load, best := d.Load, -1
	for _, o := range d.Overrides {
		if o.Load != (Load{}) && len(o.VMs) >= best && selects(o.VMs, labels) {
			load, best = o.Load, len(o.VMs)
		}
	}
	if load == (Load{}) {
		return Load{Class: DefaultClass}
	}
	return load
}

// Validate returns the first thing that is wrong, or nil.
func (d Defaults) Validate() error {
	if err := d.Load.Validate(); err != nil {
		return fmt.Errorf("defaults: %w", err)
	}
	if d.Link < 0 {
		return fmt.Errorf("defaults: the link is negative")
	}
	for i, o := range d.Overrides {
		if err := o.validate(); err != nil {
			return fmt.Errorf("defaults: overrides[%d]: %w", i, err)
		}
	}
	return nil
}

// validate returns the first thing that is wrong, or nil.
func (o Override) validate() error {
	switch {
	case o.Link < 0:
		return fmt.Errorf("the link is negative")
	case o.Hosts == nil && o.VMs == nil:
		return fmt.Errorf("it selects neither hosts nor vms")
	case (o.Hosts == nil) != (o.Link == 0):
		return fmt.Errorf("hosts and link go together")
	case (o.VMs == nil) != (o.Load == Load{}):
		return fmt.Errorf("vms and a class or rates go together")
	}
	return o.Load.Validate()
}

// selects reports whether labels has everything that selector asks for; a nil
// selector selects nothing.
func selects(selector, labels placement.Labels) bool {
	for name, value := range selector {
		if have, found := labels[name]; !found || have != value {
			return false
		}
	}
	return selector != nil
}
