package incident

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/daemon/audit"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/words"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/record"
)

// A Difference is the first decision that is not as it was recorded.
type Difference struct {
	By    string    `json:"by"` // "controller/a"
	Term  uint64    `json:"term"`
	Build string    `json:"build"` // that has recorded it
	Look  uint64    `json:"look"`  // its number since that controller began
	Line  uint64    `json:"line"`  // the number in the log of the look, or of the decision
	At    time.Time `json:"at"`
	// Recorded and Now are the decisions; nil is none.
	Recorded *Decision `json:"recorded"`
	Now      *Decision `json:"now"`
	// Fields are where the two differ, when both are about the same record.
	Fields []Field `json:"fields,omitempty"`
	// Why is what keeps the VM of the recorded decision from it, by the controller of now.
	Why []Hold `json:"why,omitempty"`
	// Saw is what is known of whom the decisions are about.
	Saw []string `json:"saw"`
}

// A Hold is what keeps a VM where it is.
type Hold struct {
	VM      hypervisor.VMID     `json:"vm"`
	Reasons []hypervisor.Reason `json:"reasons"`
}

// A Decision is what was written, and why.
type Decision struct {
	Record string `json:"record"` // "migration default/web#1"
	What   string `json:"what"`   // in words
	// Changes are the fields that it changes.
	Changes []Field             `json:"changes,omitempty"`
	Reasons []hypervisor.Reason `json:"reasons,omitempty"`
	Said    []string            `json:"said,omitempty"` // of the VMs, in this look
}

// A Field is a field of a record that differs: its path, "State.Target", and both values as
// JSON; "" is none.
type Field struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// difference tells what was recorded next and what is decided now; nil is nothing.
func (s *stage) difference(now *attempt) *Difference {
	d := &Difference{Look: s.look.number, Line: s.look.line, At: s.look.at}
	var about, missing concern
	var was *deed
	if s.next < len(s.look.deeds) {
		was = &s.look.deeds[s.next]
		d.Line = was.line.Seq
		key, _ := audit.Key(was.line.Record)
		d.Recorded = s.decision(key, was.record, &about)
		d.Recorded.Reasons = was.line.Reasons
		missing.vms = slices.Clone(about.vms)
	}
	if now != nil {
		var done concern
		d.Now = s.decision(now.key, now.record, &done)
		about.join(&done)
		missing.vms = slices.DeleteFunc(missing.vms, func(vm hypervisor.VMID) bool {
			return slices.Contains(done.vms, vm)
		})
		d.Now.Said = about.of(now.said)
	}
	if was != nil {
		d.Recorded.Said = about.of(s.look.said[:was.said])
	}
	if was != nil && now != nil && d.Recorded.Record == d.Now.Record {
		d.Fields = fields(was.record, now.record)
		if uint64(now.was) != was.line.Was {
			d.Fields = append(d.Fields, Field{"Version", fmt.Sprint(was.line.Was),
				fmt.Sprint(now.was)})
		}
	}
	d.Why, d.Saw = s.why(missing.vms), s.saw(&about)
	return d
}

// decision tells a writing.
func (s *stage) decision(key record.Key, r record.Record, about *concern) *Decision {
	d := &Decision{Record: key.Kind.String() + " " + key.Name, What: "deleted"}
	about.add(s.known[key])
	about.add(r)
	if r == nil {
		return d
	}
	l := audit.About(r)
	d.What, d.Reasons = l.What, l.Reasons
	d.Changes = fields(s.known[key], r)
	return d
}

// explainer is a controller that says why a VM is still where it is.
type explainer interface {
	Why(hypervisor.VMID, time.Time) []placement.Reason
}

// why returns what keeps VMs where they are, if the controller can say so.
func (s *stage) why(vms []hypervisor.VMID) []Hold {
	e, is := s.brain.(explainer)
	if !is {
		return nil
	}
	var all []Hold
	for _, vm := range vms {
		if why := e.Why(vm, s.look.at); len(why) > 0 {
			all = append(all, Hold{vm, why})
		}
	}
	return all
}

// of returns what was said of the VMs.
func (c *concern) of(said []string) []string {
	var list []string
	for _, text := range said {
		if who, _, _ := strings.Cut(text, ":"); slices.ContainsFunc(c.vms,
			func(vm hypervisor.VMID) bool {
				return strings.HasPrefix(who+" ", string(vm)+" ")
			}) {
			list = append(list, text)
		}
	}
	return list
}

// A concern is whom decisions are about.
type concern struct {
	vms   []hypervisor.VMID
	hosts []hypervisor.HostName
}

func (c *concern) add(r record.Record) {
	switch r := r.(type) {
	case *record.Migration:
		c.vms = append(c.vms, r.Spec.VM)
		c.hosts = append(c.hosts, r.State.Source, r.State.Target, r.Spec.Target)
	case *record.VM:
		c.vms = append(c.vms, r.VM.ID)
		c.hosts = append(c.hosts, r.Host)
	case *record.Host:
		c.hosts = append(c.hosts, r.Host.Name)
	}
	c.join(&concern{})
}

func (c *concern) join(other *concern) {
	c.vms, c.hosts = append(c.vms, other.vms...), append(c.hosts, other.hosts...)
	slices.Sort(c.vms)
	c.vms = slices.Compact(c.vms)
}

// saw tells what is known of whom decisions are about: the VMs, the hosts, and what moves.
func (s *stage) saw(about *concern) []string {
	var lines []string
	for _, id := range about.vms {
		key := record.Key{Kind: record.VMKind, Name: string(id)}
		if v, known := s.known[key].(*record.VM); known {
			lines = append(lines, "VM "+string(id)+" "+audit.About(v).What)
			about.hosts = append(about.hosts, v.Host)
		} else {
			lines = append(lines, "VM "+string(id)+" is not known")
		}
	}
	slices.Sort(about.hosts)
	for _, name := range slices.Compact(about.hosts) {
		if name != "" {
			lines = append(lines, s.host(name))
		}
	}
	running := 0
	for m := range s.moves() {
		if underWay(m) {
			running++
		}
	}
	return append(lines, words.Count(running, "migration")+" under way in the cluster")
}

// underWay reports whether a migration has a target and has not ended.
func underWay(m *record.Migration) bool {
	return migration.HoldsSlot(m.State.Phase, m.State.Target != "", true)
}

func (s *stage) moves() func(func(*record.Migration) bool) {
	return func(yield func(*record.Migration) bool) {
		for _, r := range s.known {
			if m, is := r.(*record.Migration); is && !yield(m) {
				return
			}
		}
	}
}

// host tells how a host is, what is on it, and what moves from and to it.
func (s *stage) host(name hypervisor.HostName) string {
	h, known := s.known[record.Key{Kind: record.HostKind, Name: string(name)}].(*record.Host)
	if !known {
		return "host " + string(name) + " is not known"
	}
	vms, memory, from, to := 0, hypervisor.Bytes(0), 0, 0
	for _, r := range s.known {
		if v, is := r.(*record.VM); is && v.Host == name && !v.Ended {
			vms, memory = vms+1, memory+v.Place().Demand()
		}
	}
	for m := range s.moves() {
		if underWay(m) && m.State.Source == name {
			from++
		}
		if underWay(m) && m.State.Target == name {
			to++
			if v, is := s.known[record.Key{Kind: record.VMKind,
				Name: string(m.Spec.VM)}].(*record.VM); is {
				memory += v.Place().Demand()
			}
		}
	}
	return fmt.Sprintf("host %s%s: %s and %s; %s, %s given away; %s from here, %d to here", name,
		strings.TrimPrefix(audit.About(h).What, "host"), h.Host.Memory,
		words.Count(h.Host.CPUs, "CPU"), words.Count(vms, "VM"), memory,
		words.Count(from, "migration"), to)
}

// fields lists where two records differ, by path.
func fields(a, b record.Record) []Field {
	from, to := flat(a), flat(b)
	paths := slices.Sorted(maps.Keys(from))
	for p := range to {
		if _, both := from[p]; !both {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	var list []Field
	for _, p := range paths {
		if from[p] != to[p] {
			list = append(list, Field{p, from[p], to[p]})
		}
	}
	return list
}

// flat returns the values of a record by path; none for no record.
func flat(r record.Record) map[string]string {
	values := map[string]string{}
	if r == nil {
		return values
	}
	encoded, err := json.Marshal(r.With(0))
	if err != nil {
		return values
	}
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	var tree map[string]any
	if d.Decode(&tree) == nil {
		flatten("", tree, values)
	}
	return values
}

func flatten(path string, v any, values map[string]string) {
	o, is := v.(map[string]any)
	if !is {
		text, _ := json.Marshal(v) // it was read from JSON
		values[path] = string(text)
		return
	}
	for k, e := range o {
		flatten(strings.TrimPrefix(path+"."+k, "."), e, values)
	}
}
