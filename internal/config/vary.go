package config

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
)

// VarySpec says what differs from seed to seed, in the words of package internal/config.
// What is left out is as the scenario says.
type VarySpec struct {
	Dirty      string `yaml:"dirty,omitempty"`      // a factor for how fast each VM writes, as lognormal(0.3)
	WorkingSet string `yaml:"workingSet,omitempty"` // a factor for the size of each VM's hot set
	Link       string `yaml:"link,omitempty"`       // a factor for the speed of each host's link
	// Faults are events that may come, as "10% within 1h crash-agent any-host for=30s".
	Faults []string `yaml:"faults,omitempty"`
}

// Vary is what differs from seed to seed. The zero value changes nothing.
type Vary struct {
	Dirty, WorkingSet, Link Distribution
	Faults                  []Fault
}

// vary reads what differs. Each fault is drawn once, to see whether it can be.
func (r *reader) vary(s *Scenario) {
	spec := &r.spec.Vary
	for _, d := range []struct {
		name, text string
		field      *Distribution
	}{
		{"dirty", spec.Dirty, &s.Vary.Dirty},
		{"workingSet", spec.WorkingSet, &s.Vary.WorkingSet},
		{"link", spec.Link, &s.Vary.Link},
	} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.field, err = ParseDistribution(d.text); err != nil {
			r.wrong("vary."+d.name, "%v", err)
		}
	}
	for i, text := range spec.Faults {
		f, err := ParseFault(text, readDuration)
		if err == nil {
			certain := Scenario{Fleet: s.Fleet, Vary: Vary{Faults: []Fault{f}}}
			certain.Vary.Faults[0].Chance, certain.Vary.Faults[0].Times = 1, 1
			_, err = certain.faults(s.Seed)
		}
		if err != nil {
			r.wrong(fmt.Sprintf("vary.faults[%d]", i), "%v", err)
			continue
		}
		s.Vary.Faults = append(s.Vary.Faults, f)
	}
}

// Draw returns the scenario as it is in the world of a seed: with the loads, links
// and faults that were drawn for it. It is the scenario itself when nothing
// varies, and shares with it what does not. An error says that an event that was
// drawn does not fit the VM or the host that was.
func (s *Scenario) Draw(seed uint64) (*Scenario, error) {
	v := &s.Vary
	if v.Dirty.Fixed() && v.WorkingSet.Fixed() && v.Link.Fixed() && len(v.Faults) == 0 {
		return s, nil
	}
	drawn, fleet := *s, *s.Fleet
	drawn.Fleet = &fleet
	if !v.Link.Fixed() {
		links := Link.Of(seed)
		fleet.Hosts = slices.Clone(fleet.Hosts)
		for i := range fleet.Hosts {
			h := &fleet.Hosts[i]
			h.Link = max(1, times(h.Link, v.Link.Draw(links)))
		}
	}
	faults, err := s.faults(seed)
	drawn.Events = slices.Concat(s.Events, faults)
	if !v.Dirty.Fixed() || !v.WorkingSet.Fixed() {
		drawn.drift(seed)
	}
	return &drawn, err
}

// drift changes how the guests write, from the beginning and by events.
func (s *Scenario) drift(seed uint64) {
	rates, sets := Dirty.Of(seed), WorkingSet.Of(seed)
	all := drifts{}
	s.Fleet.VMs = slices.Clone(s.Fleet.VMs)
	for i := range s.Fleet.VMs {
		v := &s.Fleet.VMs[i]
		all[v.ID] = drift{rate: s.Vary.Dirty.Draw(rates), set: s.Vary.WorkingSet.Draw(sets)}
		v.Workload = all[v.ID].of(v.Workload)
	}
	for i := range s.Events {
		s.Events[i].What = all.event(s.Events[i].What)
	}
}

// drifts are how far guests are from what the scenario says.
type drifts map[hypervisor.VMID]drift

// event returns an event with the loads that were drawn.
func (d drifts) event(e sim.Event) sim.Event {
	switch e := e.(type) {
	case sim.Load:
		if by, is := d[e.VM]; is {
			e.Load = by.of(e.Load)
		}
		return e
	case sim.When:
		e.Do = d.event(e.Do)
		return e
	}
	return e
}

// drift is two factors: for the rates of a guest, and for the size of its hot set.
type drift struct{ rate, set float64 }

// of returns the load of the guest. Its hot set grows at the expense of the cold one.
func (d drift) of(w fake.Workload) fake.Workload {
	written := w.Hot + w.Cold
	w.Rate, w.ColdRate = times(w.Rate, d.rate), times(w.ColdRate, d.rate)
	w.Hot = min(written, times(w.Hot, d.set))
	w.Cold = written - w.Hot
	return w
}

// times multiplies an amount or a speed, and stays far from where it overflows.
func times[N hypervisor.Bytes | hypervisor.Bandwidth](n N, factor float64) N {
	return N(min(float64(n)*factor, maxMemory))
}

// faults draws the events that come.
func (s *Scenario) faults(seed uint64) ([]Scheduled, error) {
	if len(s.Vary.Faults) == 0 {
		return nil, nil
	}
	var hosts, vms []string
	for _, h := range s.Fleet.Hosts {
		hosts = append(hosts, string(h.Name))
	}
	for i := range s.Fleet.VMs {
		if v := &s.Fleet.VMs[i]; v.Host != "" {
			vms = append(vms, string(v.ID))
		}
	}
	known, chance := s.names(), Faults.Of(seed)
	var all []Scheduled
	for _, f := range s.Vary.Faults {
		events, err := f.Draw(chance, hosts, vms)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			what, err := known.parse(fmt.Sprintf("%v %s", e.At, e.Text))
			if err != nil {
				return nil, err
			}
			all = append(all, what)
		}
	}
	return all, nil
}
