package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Builder puts a fleet together from what a file says, piece by piece and in
// any order, and reports what does not fit. It must come from [NewBuilder].
type Builder struct {
	report
	fleet    Fleet
	hosts    map[hypervisor.HostName]int // the lines of the hosts, by name
	vms      map[hypervisor.VMID]int
	policies map[string]int
	moves    map[hypervisor.VMID]int // unfinished migrations, by VM
	// files are where VMs are described, where that is not the file of the first one.
	files map[hypervisor.VMID]string
}

// report is what a builder finds wrong: its methods are the builder's, its type is no promise.
type report = yamldoc.Report

// NewBuilder returns a builder of a fleet without anything, with the default
// configuration. The file is only named in problems.
func NewBuilder(file string) *Builder {
	return &Builder{
		report: report{File: file},
		fleet: Fleet{
			Config:           migration.DefaultCluster(),
			EvictionStrategy: evacuation.None,
			Namespaces:       make(map[string]placement.Labels),
		},
		hosts:    make(map[hypervisor.HostName]int),
		vms:      make(map[hypervisor.VMID]int),
		policies: make(map[string]int),
		moves:    make(map[hypervisor.VMID]int),
	}
}

// grow makes room for so many hosts and VMs more. As many are expected, and there may be others.
func (b *Builder) grow(hosts, vms int) {
	b.fleet.Hosts, b.fleet.VMs = slices.Grow(b.fleet.Hosts, hosts), slices.Grow(b.fleet.VMs, vms)
	b.hosts = make(map[hypervisor.HostName]int, hosts)
	b.vms = make(map[hypervisor.VMID]int, vms)
}

// AddHost adds a host that the file describes in this line.
func (b *Builder) AddHost(line int, h Host) {
	if first, twice := b.hosts[h.Name]; twice {
		b.Errorf(line, hostField(h.Name)+" name",
			"there is already a host of this name in line %d", first)
		return
	}
	switch {
	case len(b.fleet.Hosts) >= MaxNames:
		b.Errorf(line, hostField(h.Name), "a fleet has at most %d hosts", MaxNames)
	case h.Name == "" || len(h.Name) > MaxName || hides(string(h.Name)):
		b.Errorf(line, hostField(h.Name), "a name has 1 to %d characters, all printable", MaxName)
	case h.Memory < 0 || h.CPUs < 0 || h.Link <= 0:
		b.Errorf(line, hostField(h.Name), "it needs memory, CPUs and a link that are not "+
			"negative, has %s, %d and %s", h.Memory, h.CPUs, h.Link)
	default:
		b.hosts[h.Name] = line
		b.fleet.Hosts = append(b.fleet.Hosts, h)
	}
}

// AddVM adds a VM that the file describes in this line.
func (b *Builder) AddVM(line int, v VM) {
	if first, twice := b.vms[v.ID]; twice {
		b.Errorf(line, vmField(v.ID)+" name",
			"there is already a VM of this name in line %d", first)
		return
	}
	switch {
	case len(b.fleet.VMs) >= MaxNames:
		b.Errorf(line, vmField(v.ID), "a fleet has at most %d VMs", MaxNames)
	case v.ID == "" || len(v.ID) > 2*MaxName+1 || hides(string(v.ID)):
		b.Errorf(line, vmField(v.ID), "a name has 1 to %d characters, all printable", MaxName)
	case hides(v.Placement.Tenant):
		b.Errorf(line, vmField(v.ID)+" tenant", "%q is not printable", v.Placement.Tenant)
	case v.Memory <= 0 || v.CPUs <= 0:
		b.Errorf(line, vmField(v.ID), "it needs memory and CPUs, has %s and %d", v.Memory, v.CPUs)
	default:
		b.vms[v.ID] = line
		b.fleet.VMs = append(b.fleet.VMs, v)
	}
}

// DescribedIn says in which file of a folder a VM is described: what is found at the end names it.
func (b *Builder) DescribedIn(vm hypervisor.VMID, file string) {
	if b.files == nil {
		b.files = map[hypervisor.VMID]string{}
	}
	b.files[vm] = file
}

// hides reports whether a terminal may act on a name instead of printing it.
func hides(name string) bool { return strings.ContainsFunc(name, yamldoc.Unprintable) }

// hostField and vmField are what problems with a host and with a VM name.
func hostField(name hypervisor.HostName) string { return "host " + string(name) }
func vmField(id hypervisor.VMID) string         { return "vm " + string(id) }

// AddPolicy adds a policy. What KubeVirt's admission refuses is a problem.
func (b *Builder) AddPolicy(line int, p migration.Policy) {
	field := fmt.Sprintf("policy %s", p.Name)
	if first, twice := b.policies[p.Name]; twice {
		b.Errorf(line, field+" name", "there is already a policy of this name in line %d", first)
		return
	}
	for _, wrong := range p.Validate() {
		b.Errorf(line, field+" "+wrong.Field, "needs %s, has %s", wrong.Need, wrong.Have)
	}
	b.policies[p.Name] = line
	b.fleet.Policies = append(b.fleet.Policies, p)
}

// AddMigration adds a migration that has not ended.
func (b *Builder) AddMigration(line int, m Migration) {
	field := fmt.Sprintf("migration %s", m.ID)
	if first, twice := b.moves[m.VM]; twice {
		b.Warnf(line, field, "line %d has another unfinished migration of %s", first, m.VM)
	}
	b.moves[m.VM] = line
	b.fleet.Migrations = append(b.fleet.Migrations, m)
}

// AddNamespace sets the labels of a namespace.
func (b *Builder) AddNamespace(name string, labels placement.Labels) {
	b.fleet.Namespaces[name] = labels
}

// AddQuota adds a limit that VMs are charged against.
func (b *Builder) AddQuota(l placement.QuotaLimit) { b.fleet.Quotas = append(b.fleet.Quotas, l) }

// Configure sets the cluster's configuration.
func (b *Builder) Configure(line int, field string, written migration.ClusterOverrides) {
	b.fleet.Config = written.Complete()
	for _, wrong := range b.fleet.Config.Validate() {
		b.Errorf(line, field+"."+wrong.Field, "needs %s, has %s", wrong.Need, wrong.Have)
	}
}

// EvictBy sets the cluster's eviction strategy.
func (b *Builder) EvictBy(s evacuation.Strategy) { b.fleet.EvictionStrategy = s }

// Fleet returns the fleet, or all [Problems]. A VM on a host that the file does
// not describe is one; VMs that need more than their host has are a warning. The
// builder must not be used afterwards.
func (b *Builder) Fleet() (*Fleet, error) {
	b.checkHosts()
	b.checkCompany()
	b.checkMigrations()
	f := &b.fleet
	sortBy(f.Hosts, func(h *Host) hypervisor.HostName { return h.Name })
	sortBy(f.VMs, func(v *VM) hypervisor.VMID { return v.ID })
	slices.SortFunc(f.Policies, func(x, y migration.Policy) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(f.Migrations, func(x, y Migration) int { return cmp.Compare(x.ID, y.ID) })
	b.checkRoom()
	b.checkPolicies()
	if err := b.Err(); err != nil {
		return nil, err
	}
	f.Warnings = b.Warnings()
	return f, nil
}

// sortBy puts what is large in order: each is moved once, to its place. No two are equal.
func sortBy[T any, K cmp.Ordered](all []T, key func(*T) K) {
	place := make([]int, len(all)) // of which it is
	for i := range place {
		place[i] = i
	}
	slices.SortFunc(place, func(i, j int) int { return cmp.Compare(key(&all[i]), key(&all[j])) })
	for i := range place {
		first, at := all[i], i
		for place[at] != i {
			next := place[at]
			all[at], place[at] = all[next], at
			at = next
		}
		all[at], place[at] = first, at
	}
}

// checkHosts: every VM that runs somewhere runs on a host of the fleet.
func (b *Builder) checkHosts() {
	last := b.File
	defer func() { b.File = last }()
	for i := range b.fleet.VMs {
		v := &b.fleet.VMs[i]
		for _, host := range [...]hypervisor.HostName{v.Host, v.EvacuateFrom} {
			if _, found := b.hosts[host]; !found && host != "" {
				b.File = cmp.Or(b.files[v.ID], last)
				b.Errorf(b.vms[v.ID], vmField(v.ID)+" host", "there is no host %q", host)
				break
			}
		}
	}
}

// checkCompany: the VMs that a VM is to be with, or apart from, are VMs of the fleet.
func (b *Builder) checkCompany() {
	for i := range b.fleet.VMs {
		v := &b.fleet.VMs[i]
		for _, other := range slices.Concat(v.Placement.With, v.Placement.Without) {
			if _, found := b.vms[other]; !found {
				b.Errorf(b.vms[v.ID], vmField(v.ID)+" with or without", "there is no VM %q", other)
			}
		}
	}
}

// checkMigrations: what moves is a VM of the fleet. A migration may outlive its
// VM, and then ends by itself.
func (b *Builder) checkMigrations() {
	kept := b.fleet.Migrations[:0]
	for _, m := range b.fleet.Migrations {
		if _, found := b.vms[m.VM]; found {
			kept = append(kept, m)
			continue
		}
		b.Warnf(b.moves[m.VM], fmt.Sprintf("migration %s", m.ID),
			"left out: there is no VM %s", m.VM)
	}
	b.fleet.Migrations = kept
}

// checkRoom: the VMs of a host fit it. Real hosts are sometimes over-committed,
// so this only warns.
func (b *Builder) checkRoom() {
	type demand struct{ memory, cpus hypervisor.Bytes }
	needs := make(map[hypervisor.HostName]demand, len(b.fleet.Hosts))
	for i := range b.fleet.VMs {
		v := &b.fleet.VMs[i]
		need := needs[v.Host]
		need.memory = saturate(need.memory, saturate(v.Memory-v.Balloon, v.Overhead))
		need.cpus = saturate(need.cpus, hypervisor.Bytes(cmp.Or(v.CPURequest, v.CPUs)))
		needs[v.Host] = need
	}
	for i := range b.fleet.Hosts {
		h := &b.fleet.Hosts[i]
		need := needs[h.Name]
		if need.memory > h.Memory {
			b.Warnf(b.hosts[h.Name], hostField(h.Name), "its VMs need %s of memory, it has %s",
				need.memory, h.Memory)
		}
		if int(need.cpus) > h.CPUs {
			b.Warnf(b.hosts[h.Name], hostField(h.Name), "its VMs need %d CPUs, it has %d",
				int(need.cpus), h.CPUs)
		}
	}
}

// checkPolicies: every policy can win for some VM.
func (b *Builder) checkPolicies() {
	for _, p := range migration.OverlappingPolicies(b.fleet.Policies) {
		b.Warnf(0, p.Field, "needs %s, has %s", p.Need, p.Have)
	}
	for _, p := range b.fleet.Policies {
		if p.Selectors == nil {
			b.Warnf(b.policies[p.Name], "policy "+p.Name, "without selectors it matches no VM")
		}
	}
}

// saturate returns a+b, or the largest amount.
func saturate(a, b hypervisor.Bytes) hypervisor.Bytes {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
