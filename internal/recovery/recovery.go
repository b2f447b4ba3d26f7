package recovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// nowhere decides that a VM is not to be: its record is deleted, and nothing is done about what
// is on hosts.
const nowhere hypervisor.HostName = "none"

// An Input is what is known.
type Input struct {
	VMs        []*store.VM
	Hosts      []*store.Host // with their accounts
	Migrations []*store.Migration
	Rebuilds   []*store.Rebuild
	Plans      []*store.Plan
	Runs       []*store.Maintenance
	// Without are hosts that cannot tell: they are off, by an operator's word.
	Without []hypervisor.HostName
	// Epoch is that of the store, before it is raised.
	Epoch uint64
	Now   time.Time
	// Decide are an operator's decisions about conflicts.
	Decide map[hypervisor.VMID]hypervisor.HostName
}

// A Result is what is to be written.
type Result struct {
	Told    []hypervisor.HostName // hosts whose agents have told what they have
	Missing []hypervisor.HostName // that have not
	// Unknown are hosts of [Input.Without] that neither the store nor a host that has told names: they may have come
	// since the backup, or their names are wrong.
	Unknown  []hypervisor.HostName `json:",omitempty"`
	Clusters []string              // that the hosts have seen, besides the store's own
	Findings []Finding             // of VMs about which there is something to say, by VM
	Obsolete []*store.Migration    // unfinished: they are of the past
	// Ended are migrations that have left something on a host, although the VM runs on another: as
	// ended records they have it removed by the host's agent.
	Ended []*store.Migration
	// Left are VMs that rest on a host and are on another: what rests is removed once they have started
	// there.
	Left []*store.Rebuild
	// Halted are plans and runs of maintenance that had not ended, as they are to be: see halt.
	Halted []store.Record `json:"-"`
}

// A Finding is where a VM is.
type Finding struct {
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
func (r *Result) Conflicts() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(v Finding) bool {
		return v.Conflict == ""
	})
}

// Plan finds out where the VMs are.
func Plan(in Input) *Result {
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
	for _, h := range in.Without {
		if !named[h] {
			r.Unknown = append(r.Unknown, h)
		}
	}
	r.judge(in, says, told)
	r.halt(in)
	stored := map[migration.ID]*store.Migration{}
	for _, m := range in.Migrations {
		stored[m.Spec.ID] = m
	}
	for _, m := range r.Ended {
		if old := stored[m.Spec.ID]; old != nil {
			m.Version, m.Spec = old.Version, old.Spec
			delete(stored, m.Spec.ID)
		}
	}
	for _, l := range r.Left {
		for _, old := range in.Rebuilds {
			if old.Key() == l.Key() {
				l.Version = old.Version
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if m := stored[id]; !m.State.Phase.Final() {
			r.Obsolete = append(r.Obsolete, m)
		}
	}
	return r
}

// halt ends the plans that had not ended: what they have requested since is not known, and its names would be
// given twice. Runs of maintenance stop: hooks may have begun of which the store does not know, so that neither
// going on nor taking hosts back is right before an operator has looked.
func (r *Result) halt(in Input) {
	for _, p := range in.Plans {
		if p.Ended.IsZero() && p.Wish != store.AbortPlan {
			next := *p
			next.Wish = store.AbortPlan
			r.Halted = append(r.Halted, &next)
		}
	}
	for _, m := range in.Runs {
		if m.Ended.IsZero() {
			next := *m
			next.Resumed = next.Resumes // a resume of before is over
			next.Stopped = "the store was set back, and hooks may have run of which it does not know: look at the hosts that are " +
				"cordoned, then resume, continue HOST or abort"
			r.Halted = append(r.Halted, &next)
		}
	}
}

// leftover returns the migration that has left something of a VM on a host, as it ended: the VM runs
// on another. Nil is that nothing is left, or that its agent has to be asked first.
func leftover(host, runs hypervisor.HostName, h *store.Holding, now time.Time) *store.Migration {
	m := &store.Migration{Spec: migration.Spec{ID: h.Job, VM: h.VM, Created: now}}
	switch h.State {
	case hypervisor.HandingOver, hypervisor.HandedOver:
		m.State = migration.State{Phase: migration.Succeeded, Source: host, Target: runs, Entered: now}
		m.Source = store.SourceReport{Began: true, Started: true, HandedOver: true}
		m.Target = store.TargetReport{Ready: true, Completed: true}
	case hypervisor.Receiving, hypervisor.Received:
		m.State = migration.State{Phase: migration.Failed, Source: runs, Target: host, Entered: now,
			Because: "source-kept-vm"}
		m.Source = store.SourceReport{Began: true} // its agent ends what it still sends
		m.Target = store.TargetReport{Ready: true}
	default:
		return nil
	}
	if h.Job == "" {
		return nil
	}
	return m
}

// judge finds a verdict for every VM of which the store or a host knows.
func (r *Result) judge(in Input, says map[hypervisor.VMID]map[hypervisor.HostName]store.Holding,
	told map[hypervisor.HostName]bool) {
	given, gone := map[hypervisor.VMID]int{}, map[hypervisor.VMID]int{}
	for _, m := range in.Migrations {
		numbers := gone
		if m.State.Phase.Final() {
			numbers = given
		}
		numbers[m.Spec.VM] = max(numbers[m.Spec.VM], controller.Number(m.Spec.ID))
	}
	stored := map[hypervisor.VMID]*store.VM{}
	all := map[hypervisor.VMID]bool{}
	for _, v := range in.VMs {
		stored[v.VM.ID], all[v.VM.ID] = v, true
	}
	for vm := range says {
		all[vm] = true
	}
	for _, vm := range slices.Sorted(maps.Keys(all)) {
		c := &one{vm: vm, stored: stored[vm], says: says[vm], told: told, without: in.Without, epoch: in.Epoch,
			given: given[vm], gone: gone[vm]}
		v := c.verdict()
		if host, decided := in.Decide[vm]; decided && v.Conflict != "" {
			v.Is, v.Why, v.Conflict = host, "an operator has decided: "+v.Conflict, ""
			if host == nowhere {
				v.Is, v.Deleted = "", true
			}
		}
		if v.VM = vm; v.Conflict == "" {
			c.write(&v)
			r.Ended = append(r.Ended, c.leftovers(v.Is, in.Now)...)
			r.Left = append(r.Left, c.rests(&v, in.Now)...)
		}
		if v.old = c.stored; c.stored != nil {
			v.Was = c.stored.Host
		}
		if v.Conflict != "" || v.next != nil || v.Deleted && v.old != nil {
			r.Findings = append(r.Findings, v)
		}
	}
}

// one is a VM, and what is said of it.
type one struct {
	vm     hypervisor.VMID
	stored *store.VM // nil: the store does not know it
	says   map[hypervisor.HostName]store.Holding
	told   map[hypervisor.HostName]bool
	// without are the hosts that cannot tell.
	without []hypervisor.HostName
	epoch   uint64
	given   int // the highest number of a migration that the store has and keeps
	gone    int // that of one whose record is deleted: hosts may remember it, and would do nothing for another
}

// whole reports whether a host has all of the VM, alive: it executes there, or it is paused.
func (c *one) whole(host hypervisor.HostName) bool {
	s := c.says[host].State
	return s.Executes() || s == hypervisor.Paused
}

// leftovers are what migrations have left of the VM on other hosts than the one where it runs.
func (c *one) leftovers(runs hypervisor.HostName, now time.Time) (all []*store.Migration) {
	if !c.whole(runs) {
		return nil // what stands elsewhere may be all that there is of it
	}
	for _, host := range slices.Sorted(maps.Keys(c.says)) {
		has := c.says[host]
		if m := leftover(host, runs, &has, now); m != nil && host != runs {
			all = append(all, m)
		}
	}
	return all
}

// rests are the records that have what rests of the VM on other hosts removed, or will be found there
// when they are on again, once it has started on the one where it is.
func (c *one) rests(v *Finding, now time.Time) (all []*store.Rebuild) {
	is := cmp.Or(v.next, c.stored)
	if is == nil || v.Deleted {
		return nil
	}
	boots := is.Boots
	if c.whole(is.Host) {
		boots-- // it has
	}
	leave := func(host hypervisor.HostName, proof hypervisor.Proof, by string) {
		if is.Host != "" && host != is.Host {
			all = append(all, &store.Rebuild{VM: c.vm, Source: host, Target: is.Host, Decided: now, Boots: boots,
				Evidence: hypervisor.Evidence{Proof: proof, VM: c.vm, Host: host, By: by}})
		}
	}
	for _, host := range slices.Sorted(maps.Keys(c.says)) {
		if s := c.says[host].State; s == hypervisor.Shutoff || s == hypervisor.Crashed {
			leave(host, hypervisor.ProcessReaped, "agent/"+string(host))
		}
	}
	off := map[hypervisor.HostName]bool{} // where it was, by an operator's word
	for _, l := range c.lives() {
		off[l.record.Host] = true
	}
	if v.next != nil { // the store is of before it was where it is: it may have been on any of them since
		for _, host := range c.without {
			off[host] = true
		}
	}
	for _, host := range slices.Sorted(maps.Keys(off)) {
		if host != "" && !c.told[host] { // else it has told what rests there
			leave(host, hypervisor.OperatorWord, "operator")
		}
	}
	return all
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
			truth(b.gone)-truth(a.gone))
		return cmp.Or(first, truth(a.left)-truth(b.left), cmp.Compare(b.record.Boots, a.record.Boots),
			cmp.Compare(b.record.Version, a.record.Version))
	})
	return all
}

// compareLives orders the lives of VMs of one name; 0 is that they are the same, or that this is not known.
func compareLives(a, b *store.Life) int {
	return truth(a.Follows(b)) - truth(b.Follows(a))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// verdict says where the VM is.
func (c *one) verdict() Finding {
	var runs, stands []hypervisor.HostName
	for _, host := range slices.Sorted(maps.Keys(c.says)) {
		switch s := c.says[host].State; {
		case c.whole(host):
			runs = append(runs, host)
		case s.HoldsState() || s == hypervisor.Receiving:
			stands = append(stands, host)
		}
	}
	switch {
	case len(runs) > 1:
		return Finding{Conflict: "it runs on " + and(runs) + ": end the wrong one, or decide"}
	case len(runs) == 1:
		return Finding{Is: runs[0], Why: "it runs there"}
	case len(stands) > 0:
		return Finding{Conflict: "it stands in the middle of a migration on " + and(stands)}
	}
	lives := c.lives()
	if len(lives) == 0 {
		return Finding{}
	}
	return c.resting(lives[0])
}

// resting says where a VM is that executes nowhere, by the latest life that is known.
func (c *one) resting(last life) Finding {
	is := Finding{Is: last.host, Why: "its latest life was there"}
	has := c.says[last.host]
	here := has.State.Rests() || has.Here()
	switch {
	case last.gone && c.stored == nil:
		return Finding{} // all hosts agree
	case last.gone:
		return Finding{Deleted: true, Why: "it was deleted"}
	case last.host == "" || !c.told[last.host] || here:
		return is
	case last.left:
		return Finding{Conflict: fmt.Sprintf("it has left for %s, and %s has nothing of it", last.host,
			last.host)}
	case last.record.Boots == 0 || last.record.Stopped && last.record.Ended:
		return is // it has never been there, or there was nothing to know
	}
	return Finding{Conflict: fmt.Sprintf("its record says that it runs on %s, and %s knows nothing of it",
		last.host, last.host)}
}

// write makes the record that says where the VM is, if what is stored does not say so already. It
// is of a later life than all that is known.
func (c *one) write(v *Finding) {
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
	s, runs := c.stored, c.whole(v.Is)
	has, numbered := c.says[v.Is], c.numbered()
	if s != nil && newest.Version <= s.Version && s.Host == v.Is && s.Moves >= moves && s.ActiveMigration == "" &&
		s.Numbered >= numbered && !has.Overrules(s) {
		return
	}
	next := *newest
	next.Numbered = numbered
	next.Host, next.Moves, next.ActiveMigration, next.Operation, next.Trouble = v.Is, moves+1, "", "", ""
	if next.Ended = next.Stopped && !runs; next.EvacuateFrom != v.Is {
		next.EvacuateFrom = ""
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

// numbered is the highest number of a migration of the VM that hosts know of, or whose record is deleted,
// and that is to be kept, so that its name is not given to another one.
func (c *one) numbered() (n int) {
	n = c.gone
	for _, h := range c.says {
		n = max(n, controller.Number(h.Job))
		if h.Left != nil {
			n = max(n, controller.Number(h.Left.Move))
		}
	}
	if n <= c.given {
		n = 0
	}
	if c.stored != nil {
		n = max(n, c.stored.Numbered)
	}
	return n
}

// and lists hosts.
func and(hosts []hypervisor.HostName) string {
	list := make([]string, len(hosts))
	for i, h := range hosts {
		list[i] = string(h)
	}
	return strings.Join(list, " and ")
}
