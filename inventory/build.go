package inventory

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/migration/placement"
)

// ReadFleet reads godwit's own YAML, a [Spec], of at most 4 MiB. The
// name is the file's, for problems. An error is [Problems], unless r fails.
func ReadFleet(name string, r io.Reader) (*Fleet, error) {
	data, err := yamldoc.ReadAll(name, r, yamldoc.MaxSize)
	if err != nil {
		return nil, err
	}
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return nil, err
	}
	var spec Spec
	if err := doc.Decode(&spec); err != nil {
		return nil, err
	}
	if spec.EvictionStrategy == "" { // the default in a fleet file is that VMs move
		spec.EvictionStrategy = evacuation.LiveMigrate.String()
	}
	return spec.Fleet(name, doc.Line)
}

// Positions returns the line of a field, such as "vms[3].host", or 0 when it is
// not known; nil knows no line.
type Positions func(field string) int

// Of returns the line of a field; nil does, too.
func (p Positions) Of(field string) int {
	if p == nil {
		return 0
	}
	return p(field)
}

// Fleet checks a spec and returns what it describes, or all [Problems]. The name
// is that of the file the spec comes from; lines may be nil.
func (s *Spec) Fleet(name string, lines Positions) (*Fleet, error) {
	b := newSpecBuilder(name, lines)
	b.grow(len(s.Hosts), len(s.VMs))
	b.facts = newAttributeReader(s.Shared, func(field, format string, args ...any) {
		b.wrong(path{list: field}, format, args...)
	})
	b.defaults = b.readDefaults(s)
	if s.EvictionStrategy != "" {
		b.EvictBy(b.strategy(path{list: "evictionStrategy"}, s.EvictionStrategy))
	}
	for name, labels := range s.Namespaces {
		b.AddNamespace(name, labels)
	}
	for i := range s.Hosts {
		b.host(entry("hosts", i), &s.Hosts[i])
	}
	for i := range s.VMs {
		b.vm(entry("vms", i), &s.VMs[i])
	}
	b.fleet.Network = b.defaults.Network
	b.config(path{list: "config"}, s.Config)
	for i := range s.Policies {
		b.policy(entry("policies", i), &s.Policies[i])
	}
	return b.Fleet()
}

// specBuilder builds a fleet from a spec. Its methods take the path of what they
// read and report what is wrong with it.
type specBuilder struct {
	*Builder
	lines    Positions // nil: they are not known
	defaults Defaults
	facts    *attributeReader
	hostsAt  map[string][]string // expanded host patterns of VMs
}

func newSpecBuilder(name string, lines Positions) *specBuilder {
	return &specBuilder{Builder: NewBuilder(name), lines: lines}
}

func (b *specBuilder) wrong(at path, format string, args ...any) {
	if b.Full() {
		b.Errorf(0, "", "")
		return
	}
	b.Errorf(b.line(at), at.String(), format, args...)
}

func (b *specBuilder) line(at path) int {
	if b.lines == nil {
		return 0 // and so the path need not be written
	}
	return b.lines(at.String())
}

func (b *specBuilder) host(at path, s *HostSpec) {
	h := Host{
		Host: hypervisor.Host{
			Memory: b.bytes(at.dot(".memory"), s.Memory, true),
			CPUs:   s.CPUs,
			Link:   b.bandwidth(at.dot(".link"), s.Link),
		},
		Labels:   withPlace(s.Labels, s.Zone, s.Rack),
		Cordoned: s.Cordoned || s.Down,
		Down:     s.Down,
	}
	if s.CPUs <= 0 {
		b.wrong(at.dot(".cpus"), "needs 1 or more, has %d", s.CPUs)
	}
	if h.Link == 0 {
		h.Link = b.defaults.LinkOf(s.Labels)
	}
	for i, text := range s.Taints {
		taint, err := parseTaint(text)
		if err != nil {
			b.wrong(at.dot(fmt.Sprintf(".taints[%d]", i)), "%v", err)
		}
		h.Taints = append(h.Taints, taint)
	}
	h.Facts = b.known(at, s, h.Host)
	h.Memory = hypervisor.Bytes(h.Facts.Memory.Capacity())
	h.CPUs = int(h.Facts.CPUs.Capacity())
	line := b.line(at)
	for _, name := range b.names(at.dot(".name"), s.Name, MaxNames-len(b.fleet.Hosts)) {
		h.Name = hypervisor.HostName(name)
		b.AddHost(line, h)
	}
}

// known returns what is known of a host.
func (b *specBuilder) known(at path, s *HostSpec, size hypervisor.Host) *placement.Facts {
	if reflect.ValueOf(&s.HostAttributes).Elem().IsZero() {
		return plainFacts(size) // as of most: nothing is said
	}
	return b.facts.Host(at.String(), &s.HostAttributes, size)
}

// withPlace adds zone and rack to labels that do not have them.
func withPlace(labels placement.Labels, zone, rack string) placement.Labels {
	if zone == "" && rack == "" {
		return labels
	}
	all := maps.Clone(labels)
	for name, value := range map[string]string{"zone": zone, "rack": rack} {
		if _, said := labels[name]; said || value == "" {
			continue
		}
		if all == nil {
			all = placement.Labels{}
		}
		all[name] = value
	}
	return all
}

func (b *specBuilder) vm(at path, s *VMSpec) {
	namespace := s.Namespace
	if namespace == "" {
		namespace = "default"
	}
	b.dns(at.dot(".namespace"), namespace)
	v := VM{
		VM: hypervisor.VM{
			Memory: b.bytes(at.dot(".memory"), s.Memory, true),
			CPUs:   s.CPUs,
		},
		Namespace:           namespace,
		Labels:              s.Labels,
		Strategy:            b.strategy(at.dot(".strategy"), s.Strategy),
		Migratable:          s.WhyNot == "",
		NotMigratableReason: s.WhyNot,
		Placement:           b.constraints(at, s),
	}
	if s.Migratable != nil {
		v.Migratable = *s.Migratable
	}
	if v.Migratable && s.WhyNot != "" {
		b.wrong(at.dot(".whyNot"), "it is migratable")
	}
	switch {
	case s.CPUs < 0:
		b.wrong(at.dot(".cpus"), "needs 1 or more, has %d", s.CPUs)
	case s.CPUs == 0:
		v.CPUs = 1
	}
	load := b.load(at, s.LoadSpec)
	if load == (Load{}) && s.Dirty == "" && s.ColdDirty == "" { // 0 is said, too
		load = b.defaults.LoadOf(s.Labels)
	} else if load.WorkingSet > v.Memory && v.Memory > 0 {
		set, memory := hypervisor.Apart(load.WorkingSet, v.Memory)
		b.wrong(at.dot(".workingSet"), "%s is more than the memory, %s", set, memory)
	}
	v.Workload = load.Workload(v.Memory)
	if s.Dirty != "" && load.Dirty == 0 { // also where its class says otherwise
		v.Workload.Rate = 0
	}
	if s.ColdDirty != "" && load.ColdDirty == 0 {
		v.Workload.ColdRate = 0
	}
	b.demand(at, s, &v)
	b.deal(at, s, v)
}

// demand reads what the VM asks of its host beside what Kubernetes knows.
func (b *specBuilder) demand(at path, s *VMSpec, v *VM) {
	if reflect.ValueOf(&s.VMAttributes).Elem().IsZero() {
		return // as most are: nothing is said
	}
	want := placement.VM{Memory: v.Memory, CPUs: v.CPUs, Constraints: v.Placement}
	v.Hardware = b.facts.VM(at.String(), &s.VMAttributes, v.Namespace, &want)
	v.Placement = want.Constraints
	v.Overhead, v.Balloon, v.Disk = want.Overhead, want.Balloon, want.Disk
	v.CPURequest = want.CPURequest
}

// deal adds a VM for each name, on the hosts in turn.
func (b *specBuilder) deal(at path, s *VMSpec, v VM) {
	hosts := b.hostNames(at.dot(".host"), s.Host)
	line := b.line(at)
	names := b.names(at.dot(".name"), s.Name, MaxNames-len(b.fleet.VMs))
	b.fleet.VMs = slices.Grow(b.fleet.VMs, len(names))
	for i, name := range names {
		v.ID = hypervisor.VMID(v.Namespace + "/" + name)
		if len(hosts) > 0 {
			v.Host = hypervisor.HostName(hosts[i%len(hosts)])
		}
		v.Pause = s.Paused
		if s.Marked {
			v.EvacuateFrom = v.Host
		}
		b.AddVM(line, v)
	}
}

// hostNames remembers what patterns stand for: many VMs repeat a few of them.
func (b *specBuilder) hostNames(at path, pattern string) []string {
	if pattern == "" {
		return nil
	}
	if hosts, known := b.hostsAt[pattern]; known {
		return hosts
	}
	hosts := b.names(at, pattern, len(b.fleet.Hosts))
	if len(b.hostsAt) < 100 {
		if b.hostsAt == nil {
			b.hostsAt = make(map[string][]string)
		}
		b.hostsAt[pattern] = hosts
	}
	return hosts
}

func (b *specBuilder) names(at path, pattern string, limit int) []string {
	names, err := ExpandNames(pattern, max(1, limit))
	if err != nil {
		b.wrong(at, "%v", err)
		return nil
	}
	if len(names) > 0 {
		b.dns(at, names[0])
	}
	return names
}

// dns: names appear in IDs, in traces and on terminals.
func (b *specBuilder) dns(at path, name string) {
	ok := name != "" && len(name) <= MaxName
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("-._", c))
	}
	if !ok {
		b.wrong(at, "%q is no name: 1 to %d of a-z A-Z 0-9 . _ -", name, MaxName)
	}
}

func (b *specBuilder) constraints(at path, s *VMSpec) placement.Constraints {
	c := placement.Constraints{
		Selector: s.NodeSelector, Affinity: s.Affinity, Apart: []string(s.Apart),
	}
	for i, text := range s.Tolerations {
		t, err := parseToleration(text)
		if err != nil {
			b.wrong(at.dot(fmt.Sprintf(".tolerations[%d]", i)), "%v", err)
		}
		c.Tolerations = append(c.Tolerations, t)
	}
	for i, term := range s.Affinity {
		for j, r := range term {
			if err := checkRequirement(r); err != nil {
				b.wrong(at.dot(fmt.Sprintf(".affinity[%d][%d]", i, j)), "%v", err)
			}
		}
	}
	return c
}

func (b *specBuilder) strategy(at path, word string) evacuation.Strategy {
	s, err := evacuation.ParseStrategy(word)
	if err != nil {
		b.wrong(at, "%v", err)
	}
	return s
}

func (b *specBuilder) readDefaults(spec *Spec) Defaults {
	s := &spec.Defaults
	d := Defaults{
		Link:    b.bandwidth(path{list: "defaults.link"}, s.Link),
		Load:    b.load(path{list: "defaults"}, s.LoadSpec),
		Network: b.bandwidth(path{list: "network.speed"}, spec.Network.Speed),
	}
	for i, o := range s.Overrides {
		at := entry("defaults.overrides", i)
		override := Override{
			Hosts: o.Hosts, Link: b.bandwidth(at.dot(".link"), o.Link),
			VMs: o.VMs, Load: b.load(at, o.LoadSpec),
		}
		if err := override.validate(); err != nil && b.Err() == nil {
			b.wrong(at, "%v", err)
		}
		d.Overrides = append(d.Overrides, override)
	}
	return d
}

func (b *specBuilder) load(at path, s LoadSpec) Load {
	load := Load{
		Class:      s.Class,
		Dirty:      b.rate(at.dot(".dirty"), s.Dirty),
		WorkingSet: b.bytes(at.dot(".workingSet"), s.WorkingSet, false),
		ColdDirty:  b.rate(at.dot(".coldDirty"), s.ColdDirty),
	}
	if err := load.Validate(); err != nil {
		b.wrong(at.dot(".class"), "%v", err)
	}
	return load
}

// bytes reads an amount that is more than 0; needed says that it must be there.
func (b *specBuilder) bytes(at path, text string, needed bool) hypervisor.Bytes {
	if text == "" && !needed {
		return 0
	}
	n, err := ParseBytes(text)
	if err == nil && n == 0 {
		err = fmt.Errorf("needs more than 0")
	}
	if err != nil {
		b.wrong(at, "%v", err)
	}
	return n
}

// rate reads how fast a guest writes, if it is there: 0 is one that writes nothing.
func (b *specBuilder) rate(at path, text string) hypervisor.Bandwidth {
	if text == "" {
		return 0
	}
	n, err := ParseBandwidth(text)
	if err != nil {
		b.wrong(at, "%v", err)
	}
	return n
}

// bandwidth reads a speed that is more than 0, if it is there.
func (b *specBuilder) bandwidth(at path, text string) hypervisor.Bandwidth {
	if text == "" {
		return 0
	}
	n, err := ParseBandwidth(text)
	if err == nil && n == 0 {
		err = fmt.Errorf("needs more than 0")
	}
	if err != nil {
		b.wrong(at, "%v", err)
	}
	return n
}

// duration reads a duration, if it is there.
func (b *specBuilder) duration(at path, text string) *time.Duration {
	if text == "" {
		return nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		b.wrong(at, "%v", err)
	}
	return &d
}
