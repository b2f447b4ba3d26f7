package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/store"
)

// About says in a line what a record says, with every reason that is in it.
func About(r store.Record) Line {
	switch r := r.(type) {
	case *store.Migration:
		return ofMigration(r)
	case *store.VM:
		return ofVM(r)
	case *store.Host:
		return ofHost(r)
	case *store.Rebuild:
		return Line{VM: r.VM, Host: r.Target, Reasons: []hypervisor.Reason{proof(r.Evidence)},
			What: fmt.Sprintf("started anew %s→%s%s", r.Source, r.Target,
				flags(flag{"cleaned", r.Cleaned}))}
	case *store.Plan:
		return ofPlan(r)
	case *store.Maintenance:
		return ofMaintenance(r)
	case *store.Leader:
		return Line{What: fmt.Sprintf("%s leads %s in term %d", r.Holder, r.Name, r.Term)}
	}
	return Line{What: r.Key().Name}
}

func ofPlan(p *store.Plan) Line {
	settled := 0
	for i := range p.Moves {
		if p.Moves[i].State.Settled() {
			settled++
		}
	}
	return Line{What: fmt.Sprintf("plan %s: wave %d of %d, %d of %d moves settled", p.Name,
		min(p.Wave+1, p.Waves()), p.Waves(), settled, len(p.Moves)) +
		flags(flag{"paused", p.Wish == store.PausePlan}, flag{"aborted", p.Wish == store.AbortPlan},
			flag{"ended", !p.Ended.IsZero()})}
}

func ofMaintenance(m *store.Maintenance) Line {
	done := 0
	for i := range m.Hosts {
		if m.Hosts[i].Phase.Settled() {
			done++
		}
	}
	what := fmt.Sprintf("maintenance %s: batch %d of %d, %s settled", m.Name, min(m.Batch+1, len(m.Batches)),
		len(m.Batches), humanize.Count(done, "host"))
	if m.Stopped != "" {
		what += ", stopped: " + m.Stopped
	}
	return Line{What: what + flags(flag{"paused", m.Wish == store.PausePlan},
		flag{"aborted", m.Wish == store.AbortPlan}, flag{"ended", !m.Ended.IsZero()})}
}

func ofMigration(m *store.Migration) Line {
	s := &m.State
	l := Line{VM: m.Spec.VM, Migration: m.Spec.ID, Host: s.Target}
	l.What = s.Phase.String()
	if l.What == "" {
		l.What = "asked for"
	}
	if s.Target != "" {
		l.What += fmt.Sprintf(" %s→%s", s.Source, s.Target)
	}
	if s.Because != "" {
		l.What += ": " + s.Because
	}
	o, t := &m.Source, &m.Target
	l.What += flags(flag{"cancel", m.Cancel}, flag{"ready", t.Ready}, flag{"began", o.Began},
		flag{"started", o.Started}, flag{"handed over", o.HandedOver},
		flag{"completed", t.Completed}, flag{"unresolved", o.Unresolved}, flag{"kept", o.Failed},
		flag{"lost", t.Lost}, flag{"down", t.Down}, flag{"discarded", t.Discarded},
		flag{"ceded", o.Ceded}, flag{"released", o.Released})
	if m.Decision != nil {
		l.Reasons = slices.Concat(l.Reasons, m.Decision.Why)
	}
	l.Reasons = slices.Concat(l.Reasons, t.Refused)
	if o.Error != "" {
		l.Reasons = append(l.Reasons, hypervisor.Reason{Check: "source", Need: "to go on",
			Have: o.Error})
	}
	for _, e := range m.Evidence {
		l.Reasons = append(l.Reasons, proof(e))
	}
	return l
}

func ofVM(v *store.VM) Line {
	l := Line{VM: v.VM.ID, Host: v.Host, Migration: v.ActiveMigration}
	l.What = "on " + string(v.Host)
	if v.Host == "" {
		l.What = "on no host"
	}
	l.What += fmt.Sprintf(", %s, %d CPUs", v.VM.Memory, v.VM.CPUs) +
		flags(flag{"claimed", v.ActiveMigration != ""}, flag{"to leave", v.EvacuateFrom != ""},
			flag{"stopped", v.Stopped}, flag{"to be shut down", v.Evicted != nil},
			flag{"ended", v.Ended}, flag{"to be paused", v.Pause && !v.Paused},
			flag{"paused", v.Pause && v.Paused}, flag{"to be resumed", !v.Pause && v.Paused})
	for _, c := range v.DiskChanges {
		l.What += ", to " + c.Words()
		if c.Why != "" {
			l.Reasons = append(l.Reasons, hypervisor.Reason{Check: "disk " + c.Disk(), Need: c.Words(),
				Have: c.Why})
		}
	}
	for i := range v.SnapshotRequests {
		r := &v.SnapshotRequests[i]
		switch {
		case r.Why != "":
			l.Reasons = append(l.Reasons, hypervisor.Reason{Check: "snapshot " + r.Name, Need: r.Words(),
				Have: r.Why})
		case r.Ended.IsZero():
			l.What += ", to " + r.Words()
		}
	}
	if v.Rename != nil {
		l.What += ", to be renamed to " + string(v.Rename.To)
	}
	if n := len(v.Snapshots); n > 0 {
		l.What += ", " + humanize.Count(n, "snapshot")
	}
	if who := v.Asked.Words(); who != "" {
		l.What += ", " + who
	}
	if r := v.Release; r != nil {
		l.What += fmt.Sprintf(", release of %s asked for by %s", r.Claim, r.By) +
			flags(flag{"confirmed", v.Released()})
	}
	if v.Boots > 0 {
		l.What += fmt.Sprintf(", %d boots", v.Boots)
	}
	if v.Forced != nil {
		for _, d := range v.Forced.Debts {
			l.Reasons = append(l.Reasons, d.Reason)
		}
	}
	return l
}

func ofHost(h *store.Host) Line {
	l := Line{Host: h.Host.Name, What: "host"}
	for _, t := range h.Taints {
		l.What += fmt.Sprintf(", taint %s:%s", t.Key, t.Effect)
	}
	if u := h.Drain.OnUnmovable; u != evacuation.ByStrategy {
		l.What += fmt.Sprintf(", %s what cannot be migrated", u)
	}
	l.What += flags(flag{"cordoned", h.Cordoned}, flag{"lost", h.NotReady},
		flag{"fencing", h.Fencing != nil && !h.Fenced}, flag{"fenced", h.Fenced})
	if h.ConfirmedDownBy != "" {
		l.Reasons = append(l.Reasons, hypervisor.Reason{Check: "alive",
			Need: "no confirmation that it is down", Have: "confirmed by " + h.ConfirmedDownBy})
	}
	if f := h.Fencing; f != nil && f.By+f.Error != "" {
		l.Reasons = append(l.Reasons, hypervisor.Reason{Check: "fencing", Need: "to be cut off",
			Have: strings.TrimSpace(f.By + " " + f.Error)})
	}
	return l
}

// proof says what is known about a dead copy.
func proof(e hypervisor.Evidence) hypervisor.Reason {
	return hypervisor.Reason{Check: "evidence", Need: "about " + string(e.Host),
		Have: fmt.Sprintf("%s by %s", e.Proof, e.By)}
}

type flag struct {
	word string
	set  bool
}

func flags(all ...flag) string {
	text := ""
	for _, f := range all {
		if f.set {
			text += ", " + f.word
		}
	}
	return text
}
