package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// Nowhere decides that a VM is not to be: its record is deleted, and nothing is done about what
// is on hosts.
const Nowhere hypervisor.HostName = "none"

// An Input is what is known.
type Input struct {
	VMs        []*store.VM
	Hosts      []*store.Host // with their accounts
	Migrations []*store.Migration
	// Without are hosts that cannot tell: they are off, by an operator's word.
	Without []hypervisor.HostName
	// Epoch is that of the store, before it is raised.
	Epoch uint64
	// Decide are an operator's decisions about conflicts.
	Decide map[hypervisor.VMID]hypervisor.HostName
}

// A Result is what is to be written.
type Result struct {
	Told     []hypervisor.HostName // hosts whose agents have told what they have
	Missing  []hypervisor.HostName // that have not
	Clusters []string              // that the hosts have seen, besides the store's own
	Verdicts []Verdict             // of VMs about which there is something to say, by VM
	Obsolete []*store.Migration    // unfinished: they are of the past
}

// A Verdict is where a VM is.
type Verdict struct {
	VM  hypervisor.VMID     `json:"vm"`
	Was hypervisor.HostName `json:"was,omitempty"` // by the store; "" is that it does not know the VM
	Is  hypervisor.HostName `json:"is,omitempty"`
	// Deleted says that the VM is not to be: its record is deleted.
	Deleted bool   `json:"deleted,omitempty"`
	Why     string `json:"why"`
	// Conflict says why only an operator can know. Default: it is no conflict.
	Conflict string `json:"conflict,omitempty"`

	old, next *store.VM
}

// Conflicts lists the verdicts that an operator has to decide.
func (r *Result) Conflicts() []Verdict {
	return slices.DeleteFunc(slices.Clone(r.Verdicts), func(v Verdict) bool {
		return v.Conflict == ""
	})
}

// PlanReconcile finds out where the VMs are.
func PlanReconcile(in Input) *Result {
	r := &Result{}
	says := map[hypervisor.VMID]map[hypervisor.HostName]store.Holding{}
	told := map[hypervisor.HostName]bool{}
	named := map[hypervisor.HostName]bool{}
	for _, h := range in.Hosts {
		named[h.Host.Name] = true
		if h.Account == nil {
			continue
		}
		told[h.Host.Name] = true
		if c := h.Account.Seen.Cluster; c != "" && !slices.Contains(r.Clusters, c) {
			r.Clusters = append(r.Clusters, c)
		}
		for _, has := range h.Account.VMs {
			if says[has.VM] == nil {
				says[has.VM] = map[hypervisor.HostName]store.Holding{}
			}
			says[has.VM][h.Host.Name] = has
			if has.Left != nil && has.Left.To != "" {
				named[has.Left.To] = true
			}
		}
	}
	for _, h := range slices.Sorted(maps.Keys(named)) {
		switch {
		case told[h]:
			r.Told = append(r.Told, h)
		case !slices.Contains(in.Without, h):
			r.Missing = append(r.Missing, h)
		}
	}
	r.judge(in, says, told)
	for _, m := range in.Migrations {
		if !m.State.Phase.Final() {
			r.Obsolete = append(r.Obsolete, m)
		}
	}
	return r
}

// judge finds a verdict for every VM of which the store or a host knows.
func (r *Result) judge(in Input, says map[hypervisor.VMID]map[hypervisor.HostName]store.Holding,
	told map[hypervisor.HostName]bool) {
	stored := map[hypervisor.VMID]*store.VM{}
	all := map[hypervisor.VMID]bool{}
	for _, v := range in.VMs {
		stored[v.VM.ID], all[v.VM.ID] = v, true
	}
	for vm := range says {
		all[vm] = true
	}
	for _, vm := range slices.Sorted(maps.Keys(all)) {
		c := &one{vm: vm, stored: stored[vm], says: says[vm], told: told, epoch: in.Epoch}
		v := c.verdict()
		if host, decided := in.Decide[vm]; decided && v.Conflict != "" {
			v.Is, v.Why, v.Conflict = host, "an operator has decided: "+v.Conflict, ""
			if host == Nowhere {
				v.Is, v.Deleted = "", true
			}
		}
		if v.VM = vm; v.Conflict == "" {
			c.write(&v)
		}
		if v.old = c.stored; c.stored != nil {
			v.Was = c.stored.Host
		}
		if v.Conflict != "" || v.next != nil || v.Deleted && v.old != nil {
			r.Verdicts = append(r.Verdicts, v)
		}
	}
}

// one is a VM, and what is said of it.
type one struct {
	vm     hypervisor.VMID
	stored *store.VM // nil: the store does not know it
	says   map[hypervisor.HostName]store.Holding
	told   map[hypervisor.HostName]bool
	epoch  uint64
}

// life is a life of the VM that a record or a host knows of.
type life struct {
	moves  int
	host   hypervisor.HostName
	record *store.VM
	left   bool // it is by the word of the host that it left
	gone   bool // it was deleted
}

// lives lists the lives of the VM, the latest first.
func (c *one) lives() (all []life) {
	if c.stored != nil {
		all = append(all, life{moves: c.stored.Moves, host: c.stored.Host, record: c.stored})
	}
	for _, host := range slices.Sorted(maps.Keys(c.says)) {
		h := c.says[host]
		if h.Record == nil {
			continue
		}
		l := life{moves: h.Record.Moves, host: host, record: h.Record}
		if h.Left != nil {
			l.host, l.left, l.gone = h.Left.To, true, h.Left.To == ""
			if h.Left.Move != "" {
				l.moves++ // the record is from before it left
			}
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b life) int {
		first := cmp.Or(compareLives(b.record.Life, a.record.Life), cmp.Compare(b.moves, a.moves),
			reconcileTruth(b.gone)-reconcileTruth(a.gone))
		return cmp.Or(first, reconcileTruth(a.left)-reconcileTruth(b.left), cmp.Compare(b.record.Boots, a.record.Boots),
			cmp.Compare(b.record.Version, a.record.Version))
	})
	return all
}

// compareLives orders the lives of VMs of one name; 0 is that they are the same, or that nobody knows.
func compareLives(a, b *store.Life) int {
	return reconcileTruth(a.Follows(b)) - reconcileTruth(b.Follows(a))
}

func reconcileTruth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// verdict says where the VM is.
func (c *one) verdict() Verdict {
	var runs, stands []hypervisor.HostName
	for _, host := range slices.Sorted(maps.Keys(c.says)) {
		switch s := c.says[host].State; {
		case s.Executes() || s == hypervisor.Paused:
			runs = append(runs, host)
		case s.HoldsState() || s == hypervisor.Receiving:
			stands = append(stands, host)
		}
	}
	switch {
	case len(runs) > 1:
		return Verdict{Conflict: "it runs on " + and(runs) + ": end the wrong one, or decide"}
	case len(runs) == 1:
		return Verdict{Is: runs[0], Why: "it runs there"}
	case len(stands) > 0:
		return Verdict{Conflict: "it stands in the middle of a migration on " + and(stands)}
	}
	lives := c.lives()
	if len(lives) == 0 {
		return Verdict{}
	}
	return c.resting(lives[0])
}

// resting says where a VM is that executes nowhere, by the latest life that is known.
func (c *one) resting(last life) Verdict {
	is := Verdict{Is: last.host, Why: "its latest life was there"}
	has := c.says[last.host]
	here := has.State.Rests() || has.Here()
	switch {
	case last.gone && c.stored == nil:
		return Verdict{} // everybody agrees
	case last.gone:
		return Verdict{Deleted: true, Why: "it was deleted"}
	case last.host == "" || !c.told[last.host] || here:
		return is
	case last.left:
		return Verdict{Conflict: fmt.Sprintf("it has left for %s, and %s has nothing of it", last.host,
			last.host)}
	case last.record.Boots == 0 || last.record.Stopped && last.record.Ended:
		return is // it has never been there, or there was nothing to know
	}
	return Verdict{Conflict: fmt.Sprintf("its record says that it runs on %s, and %s knows nothing of it",
		last.host, last.host)}
}

// write makes the record that says where the VM is, if what is stored does not say so already. It
// is of a later life than all that is known.
func (c *one) write(v *Verdict) {
	lives := c.lives()
	if v.Is == "" || len(lives) == 0 {
		return
	}
	newest, moves, several := lives[0].record, 0, false
	for _, l := range lives {
		if !l.record.Life.Is(newest.Life) {
			several = true
			continue
		}
		if moves = max(moves, l.moves); l.record.Version > newest.Version && l.record.Moves >= newest.Moves {
			newest = l.record
		}
	}
	s, runs := c.stored, c.says[v.Is].State.Executes()
	has := c.says[v.Is]
	if s != nil && newest.Version <= s.Version && s.Host == v.Is && s.Moves >= moves && s.Claim == "" &&
		!has.Overrules(s) {
		return
	}
	next := *newest
	next.Host, next.Moves, next.Claim, next.Doing, next.Trouble = v.Is, moves+1, "", "", ""
	if next.Ended = next.Stopped && !runs; next.Mark != v.Is {
		next.Mark = ""
	}
	if next.Version = 0; several {
		id := ""
		if newest.Life != nil {
			id = newest.Life.ID
		}
		next.Life = &store.Life{ID: id, Epoch: c.epoch + 1} // VMs that are added later follow it
	}
	if s != nil {
		next.Version = s.Version
	}
	v.next = &next
}

// and lists hosts.
func and(hosts []hypervisor.HostName) string {
	list := make([]string, len(hosts))
	for i, h := range hosts {
		list[i] = string(h)
	}
	return strings.Join(list, " and ")
}
