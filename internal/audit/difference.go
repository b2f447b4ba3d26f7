package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
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
	// Saw is what is known of the VMs and hosts that the decisions are about.
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

// A Field is a field of a record that differs.
type Field = KnownField

// difference tells what was recorded next and what is decided now; nil is nothing.
func (s *replayStore) difference(now *attempt) *Difference {
	d := &Difference{Look: s.look.number, Line: s.look.line, At: s.look.at}
	var about, missing concern
	var was *write
	if at := s.look.unmet(); at >= 0 {
		was = &s.look.writes[at]
		d.Line = was.line.Seq
		key, _ := Key(was.line.Record)
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
		d.Fields = Fields(was.record, now.record)
		if uint64(now.was) != was.line.Was {
			d.Fields = append(d.Fields, Field{Path: "Version", From: fmt.Sprint(was.line.Was),
				To: fmt.Sprint(now.was)})
		}
	}
	d.Why, d.Saw = s.why(missing.vms), s.saw(&about)
	return d
}

// decision tells a writing.
func (s *replayStore) decision(key store.Key, r store.Record, about *concern) *Decision {
	d := &Decision{Record: key.Kind.String() + " " + key.Name, What: "deleted"}
	about.add(s.known[key])
	about.add(r)
	if r == nil {
		return d
	}
	l := About(r)
	d.What, d.Reasons = l.What, l.Reasons
	d.Changes = Fields(s.known[key], r)
	return d
}

// explainer is a controller that says why a VM is still where it is.
type explainer interface {
	Why(hypervisor.VMID, time.Time) []placement.Reason
}

// why returns what keeps VMs where they are, if the controller can say so.
func (s *replayStore) why(vms []hypervisor.VMID) []Hold {
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

// A concern is the VMs and hosts that decisions are about.
type concern struct {
	vms   []hypervisor.VMID
	hosts []hypervisor.HostName
}

func (c *concern) add(r store.Record) {
	switch r := r.(type) {
	case *store.Migration:
		c.vms = append(c.vms, r.Spec.VM)
		c.hosts = append(c.hosts, r.State.Source, r.State.Target, r.Spec.Target)
	case *store.VM:
		c.vms = append(c.vms, r.VM.ID)
		c.hosts = append(c.hosts, r.Host)
	case *store.Host:
		c.hosts = append(c.hosts, r.Host.Name)
	}
	c.join(&concern{})
}

func (c *concern) join(other *concern) {
	c.vms, c.hosts = append(c.vms, other.vms...), append(c.hosts, other.hosts...)
	slices.Sort(c.vms)
	c.vms = slices.Compact(c.vms)
}

// saw tells what is known of all that decisions are about: the VMs, the hosts, and what moves.
func (s *replayStore) saw(about *concern) []string {
	var lines []string
	for _, id := range about.vms {
		text, host := s.known.VM(id)
		lines, about.hosts = append(lines, text), append(about.hosts, host)
	}
	slices.Sort(about.hosts)
	for _, name := range slices.Compact(about.hosts) {
		if name != "" {
			lines = append(lines, s.known.Host(name))
		}
	}
	return append(lines, humanize.Count(s.known.UnderWay(), "migration")+" under way in the cluster")
}
