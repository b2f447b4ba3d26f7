package plan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// An UpgradePlan says which VMs an upgrade of hosts strands, and in which order the hosts are upgraded
// so that none is.
type UpgradePlan struct {
	Hosts []hypervisor.HostName `json:"hosts"` // that are drained, by name
	Added []hypervisor.HostName `json:"added"` // that come with the upgrade, by name
	// Forward are the VMs on Hosts that no new host takes, even if it is empty.
	Forward []Incompatible `json:"cannotMove"`
	// Back are the VMs that a new host takes, and that no old one takes from there.
	Back []Incompatible `json:"cannotReturn"`
	// Steps are the hosts in order, as far as an order was found.
	Steps []UpgradeStep `json:"steps"`
	// Stuck are the hosts that are not upgraded, and why not after all Steps.
	Stuck []UpgradeObstacle `json:"stuck"`
	// Proven says that no order upgrades them all: one of Forward has nowhere else to go either.
	Proven bool `json:"proven"`
}

// Incompatible is a VM that cannot be migrated to some hosts.
type Incompatible struct {
	VM   hypervisor.VMID     `json:"vm"`
	Host hypervisor.HostName `json:"host"` // that it is on, or would be on
	// Refusals say for each of the hosts why it refuses; hosts that refuse for the same reasons are
	// one entry of Hosts.
	Refusals []SharedRefusal `json:"refusals"`
}

// A SharedRefusal is why hosts refuse a VM.
type SharedRefusal struct {
	Hosts []hypervisor.HostName `json:"hosts"`
	Why   []placement.Reason    `json:"reasons"`
}

// An UpgradeStep is one host that is drained and upgraded.
type UpgradeStep struct {
	Host  hypervisor.HostName `json:"host"`
	Moves int                 `json:"moves"`
	Waves []Wave              `json:"waves"`
	// Once says that its VMs go to hosts that are not upgraded any more: they move once.
	Once bool `json:"once"`
	// Restarted are the VMs that cannot be migrated: each of their moves is a restart. ShutDown are those that
	// are shut down and stay off. Both by ID.
	Restarted []hypervisor.VMID `json:"restarted"`
	ShutDown  []hypervisor.VMID `json:"shutDown"`
}

// An UpgradeObstacle is a host that cannot be drained.
type UpgradeObstacle struct {
	Host hypervisor.HostName `json:"host"`
	Left []hypervisor.VMID   `json:"left"`
	Text string              `json:"text"` // a proof; "" when there is none
}

// Done reports whether every host is upgraded.
func (p *UpgradePlan) Done() bool { return len(p.Stuck) == 0 }

// Upgrade plans an upgrade. New are the hosts as they are afterwards: one with the name of an old host is
// what becomes of it, the others are added before the first step. Hosts are drained one after the
// other; those of them that are not in new are taken away.
func Upgrade(f *inventory.Fleet, new []inventory.Host, hosts []hypervisor.HostName,
	params evacuation.Params) UpgradePlan {
	params.Strategy = f.EvictionStrategy
	u := &upgrader{fleet: f, params: params, after: map[hypervisor.HostName]*inventory.Host{},
		plan: UpgradePlan{Hosts: slices.Sorted(slices.Values(hosts)), Added: []hypervisor.HostName{},
			Forward: []Incompatible{}, Back: []Incompatible{}, Steps: []UpgradeStep{},
			Stuck: []UpgradeObstacle{}}}
	for i := range new {
		u.after[new[i].Name] = &new[i]
		if !slices.ContainsFunc(f.Hosts, func(h inventory.Host) bool { return h.Name == new[i].Name }) {
			u.plan.Added = append(u.plan.Added, new[i].Name)
		}
	}
	slices.Sort(u.plan.Added)
	u.compare(new)
	u.order()
	return u.plan
}

type upgrader struct {
	fleet  *inventory.Fleet
	params evacuation.Params
	after  map[hypervisor.HostName]*inventory.Host
	plan   UpgradePlan
	drains int // that were planned
}

// Both forms of a host are asked about one VM: these tell their names apart. No name of a host has a space.
const oldForm, newForm = " (old)", " (new)"

func oldName(h hypervisor.HostName) hypervisor.HostName { return h + oldForm }
func newName(h hypervisor.HostName) hypervisor.HostName { return h + newForm }

// ownName returns the name that a host has before and after its upgrade.
func ownName(h hypervisor.HostName) hypervisor.HostName {
	return hypervisor.HostName(strings.TrimSuffix(strings.TrimSuffix(string(h), oldForm), newForm))
}

// ownNames returns refusals by hosts with their own names.
func ownNames(all []SharedRefusal) []SharedRefusal {
	forms := strings.NewReplacer(oldForm, "", newForm, "")
	for i := range all {
		for j, host := range all[i].Hosts {
			all[i].Hosts[j] = ownName(host)
		}
		all[i].Why = slices.Clone(all[i].Why)
		for j := range all[i].Why {
			why := &all[i].Why[j]
			why.Need, why.Have = forms.Replace(why.Need), forms.Replace(why.Have)
		}
	}
	return all
}

// compare asks for each VM whether empty new hosts take it, and whether it could return.
func (u *upgrader) compare(new []inventory.Host) {
	upgraded := map[hypervisor.HostName]bool{}
	for _, name := range u.plan.Hosts {
		upgraded[name] = true
	}
	var olds, news, stay []placement.Host
	for i := range u.fleet.Hosts {
		h := inventory.PlacementHost(&u.fleet.Hosts[i])
		if h.Cordoned = false; !upgraded[h.Name] {
			stay = append(stay, h)
			continue
		}
		h.Name = oldName(h.Name)
		olds = append(olds, h)
	}
	for i := range new {
		h := inventory.PlacementHost(&new[i])
		if h.Cordoned = false; upgraded[h.Name] {
			h.Name = newName(h.Name)
		}
		news = append(news, h)
	}
	known, kinds, at := map[string]fate{}, factKinds(olds), byName(olds)
	for i := range u.fleet.VMs {
		v := &u.fleet.VMs[i]
		if !upgraded[v.Host] {
			continue
		}
		vm := inventory.PlacementVM(v)
		// Others are not looked at: they move as well.
		vm.Constraints.With, vm.Constraints.Without, vm.Constraints.Groups = nil, nil, nil
		source := at[oldName(v.Host)]
		m := moving{&vm, u.params.Unmovable(evacuation.Terms{}, v.Strategy, v.Migratable) != evacuation.Keep}
		kind := m.kind(kinds[oldName(v.Host)])
		to, alike := known[kind]
		if !alike || source == nil {
			to = m.fate(source, olds, news, stay)
			known[kind] = to
		}
		switch {
		case !to.moves:
			u.plan.Forward = append(u.plan.Forward, Incompatible{v.ID, v.Host, to.refusals})
			u.plan.Proven = u.plan.Proven || to.stranded && v.Migratable
		case !to.returns:
			u.plan.Back = append(u.plan.Back, Incompatible{v.ID, to.from, to.refusals})
		}
	}
}

// A fate is what becomes of VMs that are alike, on old hosts that are alike.
type fate struct {
	moves, returns bool
	stranded       bool // no host that stays takes them either
	from           hypervisor.HostName
	refusals       []SharedRefusal // of the new hosts; or, from a host that takes them, of the old ones
}

// moving is a VM that leaves its host.
type moving struct {
	vm       *placement.VM
	restarts bool // it is shut down, and started anew at once or later: what only a live move needs is not asked
}

func (m moving) fate(source *placement.Host, olds, news, stay []placement.Host) fate {
	takes := m.accepting(source, news)
	if len(takes) == 0 {
		return fate{refusals: m.refusals(source, news), stranded: len(m.accepting(source, stay)) == 0}
	}
	seen := map[*placement.Facts]bool{}
	for _, from := range takes {
		if from.Facts != nil && seen[from.Facts] {
			continue // a host of the same range is alike
		}
		seen[from.Facts] = true
		if len(m.accepting(from, olds)) > 0 {
			return fate{moves: true, returns: true}
		}
	}
	return fate{moves: true, from: ownName(takes[0].Name), refusals: m.refusals(takes[0], olds)}
}

// kind is the same for VMs that are alike, and leave alike, on hosts that are alike.
func (m moving) kind(source string) string {
	text, err := json.Marshal(struct {
		Size        placement.Size
		Constraints *placement.Constraints
		Restarts    bool
	}{placement.SizeOf(m.vm), &m.vm.Constraints, m.restarts})
	if err != nil {
		return string(m.vm.ID) // a kind of its own
	}
	return string(text) + source
}

// factKinds returns a text for each host that is the same for those of which the same is known.
func factKinds(hosts []placement.Host) map[hypervisor.HostName]string {
	all := map[hypervisor.HostName]string{}
	texts := map[*placement.Facts]string{}
	for i := range hosts {
		h := &hosts[i]
		text, known := texts[h.Facts]
		if !known {
			bytes, err := json.Marshal(h.Facts)
			if text = string(bytes); err != nil {
				text = string(h.Name)
			}
			texts[h.Facts] = text
		}
		all[h.Name] = text
	}
	return all
}

// accepting returns which hosts take a VM that is on a source, if they are empty.
func (m moving) accepting(source *placement.Host, hosts []placement.Host) (takes []*placement.Host) {
	if source == nil {
		return nil
	}
	o := placement.Options{Source: source.Name,
		Move: placement.CompareHosts(m.vm, source.Name, []placement.Host{*source})}
	o.Move.Rebuild = m.restarts
	for i := range hosts {
		if placement.Fits(m.vm, &hosts[i], o) {
			takes = append(takes, &hosts[i])
		}
	}
	return takes
}

// refusals says why hosts refuse a VM that is on a source, though they are empty.
func (m moving) refusals(source *placement.Host, hosts []placement.Host) (all []SharedRefusal) {
	if source == nil {
		return nil
	}
	e := placement.Explain(&placement.Config{Filters: placement.AllFilters()},
		&placement.Request{VM: m.vm, Source: source.Name, Rebuild: m.restarts}, append([]placement.Host{*source}, hosts...))
	for i := range e.Hosts {
		v := &e.Hosts[i]
		if v.Host == source.Name || len(v.Why) == 0 {
			continue
		}
		at := slices.IndexFunc(all, func(r SharedRefusal) bool { return slices.Equal(r.Why, v.Why) })
		if at < 0 {
			at, all = len(all), append(all, SharedRefusal{Why: v.Why})
		}
		all[at].Hosts = append(all[at].Hosts, v.Host)
	}
	return ownNames(all)
}

// byName finds hosts by their names.
func byName(hosts []placement.Host) map[hypervisor.HostName]*placement.Host {
	all := make(map[hypervisor.HostName]*placement.Host, len(hosts))
	for i := range hosts {
		all[hosts[i].Name] = &hosts[i]
	}
	return all
}

// mostDrains is how many drains are planned for each host until an order is given up.
const mostDrains = 8

// order looks for an order of the hosts in which each can be drained: depth first, the hosts with the
// fewest VMs before the others, since they make room soonest.
func (u *upgrader) order() {
	f := *u.fleet
	f.Hosts = slices.Clone(f.Hosts)
	for _, name := range u.plan.Added {
		f.Hosts = append(f.Hosts, *u.after[name])
	}
	sortHosts(f.Hosts)
	best := []UpgradeStep{}
	u.search(&f, u.plan.Hosts, nil, &best)
	u.plan.Steps = append(u.plan.Steps, best...)
	if len(best) == len(u.plan.Hosts) {
		u.plan.Proven = false
		return
	}
	now, rest := &f, u.plan.Hosts
	for _, s := range best {
		now, rest = u.upgraded(now, s), slices.DeleteFunc(slices.Clone(rest),
			func(h hypervisor.HostName) bool { return h == s.Host })
	}
	for _, host := range rest {
		u.plan.Stuck = append(u.plan.Stuck, u.obstacle(now, host))
	}
}

// search upgrades the remaining hosts in some order, and keeps the longest that it finds. It reports
// whether it is done.
func (u *upgrader) search(f *inventory.Fleet, rest []hypervisor.HostName, steps []UpgradeStep,
	best *[]UpgradeStep) bool {
	if len(steps) > len(*best) {
		*best = slices.Clone(steps)
	}
	if len(rest) == 0 {
		return true
	}
	vms := map[hypervisor.HostName]int{}
	for i := range f.VMs {
		vms[f.VMs[i].Host]++
	}
	next := slices.Clone(rest)
	slices.SortStableFunc(next, func(a, b hypervisor.HostName) int { return cmp.Compare(vms[a], vms[b]) })
	for _, host := range next {
		if u.drains >= mostDrains*(len(u.plan.Hosts)+4) {
			return false
		}
		step, ok := u.drain(f, host, rest)
		if !ok {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(rest), func(h hypervisor.HostName) bool { return h == host })
		if u.search(u.upgraded(f, step), others, append(steps, step), best) {
			return true
		}
	}
	return false
}

// drain plans how one host is emptied: to hosts that stay as they are, so that VMs move once, or
// else to any.
func (u *upgrader) drain(f *inventory.Fleet, host hypervisor.HostName, rest []hypervisor.HostName) (
	UpgradeStep, bool) {
	later := make(map[hypervisor.HostName]bool, len(rest))
	for _, name := range rest {
		later[name] = true
	}
	for _, once := range []bool{true, false} {
		u.drains++
		now := *f
		now.Hosts = slices.Clone(f.Hosts)
		for i := range now.Hosts {
			if h := &now.Hosts[i]; once && later[h.Name] {
				h.Cordoned = true
			}
		}
		d := DrainFleet(&now, []hypervisor.HostName{host}, u.params)
		a := Drain(d.Fleet, []hypervisor.HostName{host})
		if len(a.Left) == 0 {
			waves := d.Groups.Waves(a.Waves)
			return UpgradeStep{Host: host, Moves: Count(waves), Waves: append([]Wave{}, waves...), Once: once,
				Restarted: d.Restarted(waves), ShutDown: append([]hypervisor.VMID{}, d.ShutDown...)}, true
		}
	}
	return UpgradeStep{}, false
}

// upgraded returns the fleet after a step.
func (u *upgrader) upgraded(f *inventory.Fleet, s UpgradeStep) *inventory.Fleet {
	now := *f
	now.VMs, now.Hosts, now.Migrations = slices.Clone(f.VMs), slices.Clone(f.Hosts), nil
	target := map[hypervisor.VMID]hypervisor.HostName{}
	for _, wave := range s.Waves {
		for _, m := range wave {
			target[m.VM] = m.Target
		}
	}
	for i := range now.VMs {
		v := &now.VMs[i]
		v.Host = cmp.Or(target[v.ID], v.Host)
	}
	after := u.after[s.Host]
	now.Hosts = slices.DeleteFunc(now.Hosts, func(h inventory.Host) bool {
		return after == nil && h.Name == s.Host
	})
	for i := range now.Hosts {
		if h := &now.Hosts[i]; after != nil && h.Name == s.Host {
			*h = *after
		}
	}
	return &now
}

// obstacle says why a host cannot be drained.
func (u *upgrader) obstacle(f *inventory.Fleet, host hypervisor.HostName) UpgradeObstacle {
	d := DrainFleet(f, []hypervisor.HostName{host}, u.params)
	a := Drain(d.Fleet, []hypervisor.HostName{host})
	o := UpgradeObstacle{Host: host, Left: append([]hypervisor.VMID{}, d.Groups.Each(a.Left)...)}
	if a.Proof != nil {
		o.Text = a.Proof.String()
	}
	return o
}

func sortHosts(hosts []inventory.Host) {
	slices.SortFunc(hosts, func(a, b inventory.Host) int { return cmp.Compare(a.Name, b.Name) })
}
