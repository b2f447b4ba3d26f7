package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/words"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A Status is how a cluster is.
type Status struct {
	At     time.Time    `json:"at"`
	Leader string       `json:"leader,omitempty"` // "controller/a"
	Term   uint64       `json:"term,omitempty"`
	Hosts  []Host       `json:"hosts"`
	VMs    []VM         `json:"vms"`
	Moves  []MoveReport `json:"migrations"` // that have not ended, or have lately
	// Alarms are what must not be: somebody has to look at once. Default: none.
	Alarms []Alarm `json:"alarms,omitempty"`
}

// An Alarm is a VM that runs twice, a host that two agents have called their own, or a store that
// was set back.
type Alarm struct {
	VM    hypervisor.VMID       `json:"vm,omitempty"`
	Hosts []hypervisor.HostName `json:"hosts"` // where the VM runs, or the host
	What  string                `json:"what"`
	Do    string                `json:"do"`
}

// A Host is how a host is.
type Host struct {
	Name        hypervisor.HostName  `json:"name"`
	State       string               `json:"state"` // see HostState
	VMs         int                  `json:"vms"`
	MemoryBytes hypervisor.Bytes     `json:"memoryBytes"`
	UsedBytes   hypervisor.Bytes     `json:"usedBytes"` // by VMs that are there and not stopped
	CPUs        int                  `json:"cpus"`
	UsedCPUs    int                  `json:"usedCPUs"`
	LinkRate    hypervisor.Bandwidth `json:"linkBytesPerSecond,omitempty"`
	Software    string               `json:"software,omitempty"`
	EmptyAt     *time.Time           `json:"emptyAt,omitempty"` // predicted, when drained
	Why         string               `json:"why,omitempty"`     // it is not ready, or fails
}

// A VM is how a VM is.
type VM struct {
	Name        hypervisor.VMID     `json:"name"`
	Host        hypervisor.HostName `json:"host,omitempty"`
	State       string              `json:"state"`
	MemoryBytes hypervisor.Bytes    `json:"memoryBytes"`
	CPUs        int                 `json:"cpus"`
	Boots       int                 `json:"boots"`
	Migration   migration.ID        `json:"migration,omitempty"` // that moves it
	Why         string              `json:"why,omitempty"`       // it is not as it shall be
}

// A Move is how a migration goes.
type MoveReport struct {
	Name          migration.ID         `json:"name"`
	VM            hypervisor.VMID      `json:"vm"`
	Phase         string               `json:"phase"`
	By            string               `json:"by"`
	Source        hypervisor.HostName  `json:"source,omitempty"`
	Target        hypervisor.HostName  `json:"target,omitempty"`
	Asked         time.Time            `json:"asked"`
	Ended         *time.Time           `json:"ended,omitempty"`
	SentBytes     hypervisor.Bytes     `json:"sentBytes"`
	RemainBytes   hypervisor.Bytes     `json:"remainingBytes"`
	Rate          hypervisor.Bandwidth `json:"bytesPerSecond"`
	Looked        *time.Time           `json:"looked,omitempty"`       // when these were true
	PredictedEnd  *time.Time           `json:"predictedEnd,omitempty"` // if nothing changes
	BlackoutNanos time.Duration        `json:"blackoutNanoseconds,omitempty"`
	// Unknown says that it has ended and nobody knows how much it sent in all, and how long the
	// guest stood: its source did not live to tell.
	Unknown    bool                `json:"unknown,omitempty"`
	Canceled   bool                `json:"canceled,omitempty"`
	Conditions []string            `json:"conditions,omitempty"`
	Why        string              `json:"why,omitempty"` // it ended, or does not go on
	Reasons    []hypervisor.Reason `json:"reasons,omitempty"`
}

// lately is how long migrations that have ended are told.
const lately = 5 * time.Minute

// MakeStatus says how a cluster is now. Draining says which hosts are drained.
func MakeStatus(c *Cluster, draining func(*store.Host) bool, now time.Time) *Status {
	s := &Status{At: now.UTC().Round(0), Hosts: []Host{}, VMs: []VM{}, Moves: []MoveReport{}}
	if l := c.Leader(); l != nil {
		s.Leader, s.Term = l.Holder, l.Term
	}
	for _, v := range c.VMs() {
		s.VMs = append(s.VMs, OfVM(c, v))
	}
	migrations := c.Migrations()
	troubles := store.Health(migrations).Troubles(now)
	for _, h := range c.Hosts() {
		s.Hosts = append(s.Hosts, ofHost(c, h, draining(h), troubles, now))
	}
	for _, m := range migrations {
		if !m.State.Phase.Final() || now.Sub(m.State.Entered) < lately {
			s.Moves = append(s.Moves, OfMove(m, now))
		}
	}
	s.Alarms = Alarms(c)
	return s
}

// Alarms lists what must not be, by what the agents of the hosts have stored.
func Alarms(c *Cluster) []Alarm {
	var all []Alarm
	if why := c.SetBack(); why != nil {
		all = append(all, setBack(c, why))
	}
	for _, h := range c.Hosts() {
		if h.Account != nil && c.SetBack() == nil {
			all = append(all, Alarm{Hosts: []hypervisor.HostName{h.Host.Name},
				What: fmt.Sprintf("%s does not believe the store: %s", h.Host.Name,
					strings.TrimSuffix(h.Account.Why, ": "+store.Advice)), Do: store.Advice})
		}
		for _, stray := range h.Strays {
			all = append(all, twice(c, h.Host.Name, stray))
		}
		if h.Refused != nil {
			all = append(all, second(h))
		}
		if lives(h) && !h.Single() {
			all = append(all, Alarm{Hosts: []hypervisor.HostName{h.Host.Name},
				What: fmt.Sprintf("%s lives although %s says that it is off", h.Host.Name,
					cmp.Or(h.Fencing.By, "its fencing")),
				Do: "nothing is started there, and nothing more is started elsewhere for it: see " +
					"whether its VMs run, and end those that also run elsewhere"})
		}
	}
	return all
}

// lives reports whether a host is heard that counts as cut off.
// Source: controller (Judge, lives-though-fenced).
func lives(h *store.Host) bool {
	return h.Fenced && h.Fencing != nil && h.Fencing.Error != ""
}

// setBack is the alarm for a store that is older than it has been.
func setBack(c *Cluster, why error) Alarm {
	a := Alarm{What: "the store is older than it has been: " + strings.TrimSuffix(why.Error(),
		": "+store.Advice), Do: store.Advice}
	for _, h := range c.Hosts() {
		a.Hosts = append(a.Hosts, h.Host.Name)
	}
	return a
}

// twice is the alarm for a VM that runs on a host besides its own.
func twice(c *Cluster, host hypervisor.HostName, s store.Stray) Alarm {
	v := c.VM(s.VM)
	a := Alarm{VM: s.VM, Hosts: []hypervisor.HostName{host}}
	if v == nil {
		a.What = fmt.Sprintf("%s runs on %s, and there is no record of it", s.VM, host)
		a.Do = fmt.Sprintf("shut its guest down on %s if it is not wanted, or see whether the store "+
			"is the right one", host)
		return a
	}
	a.Hosts = []hypervisor.HostName{v.Host, host}
	slices.Sort(a.Hosts)
	a.What = fmt.Sprintf("%s runs on %s, and its record says that it is on %s", s.VM, host, v.Host)
	a.Do = "look at both guests, decide which one is good, and end the other one: godwit touches " +
		"neither"
	return a
}

// second is the alarm for a second agent of one host.
func second(h *store.Host) Alarm {
	r, name := h.Refused, h.Host.Name
	of := "unknown"
	keep := ""
	if h.Identity != nil {
		of = h.Identity.String()
		keep = fmt.Sprintf("; when the agent that was refused is stopped: godwit host adopt %s --id %s",
			name, h.Identity.ID)
	}
	return Alarm{Hosts: []hypervisor.HostName{name},
		What: fmt.Sprintf("a second agent called itself %s at %s and was refused: it has identity %v, "+
			"the host has %s: %s", name, r.At.UTC().Format(time.RFC3339), r.Identity, of, r.Why),
		Do: fmt.Sprintf("stop the one that is wrong, and give it another name%s", keep)}
}

// OfHost says how a host is.
func OfHost(c *Cluster, h *store.Host, draining bool, now time.Time) Host {
	return ofHost(c, h, draining, store.Health(c.Migrations()).Troubles(now), now)
}

// ofHost is OfHost where it is known which hosts have failed migrations lately.
func ofHost(c *Cluster, h *store.Host, draining bool, troubles []migration.HealthProblem,
	now time.Time) Host {
	s := Host{Name: h.Host.Name, State: HostState(h, draining), MemoryBytes: h.Host.Memory,
		CPUs: h.Host.CPUs, LinkRate: h.Host.Link, Software: h.Host.Software}
	for _, v := range c.On(h.Host.Name) {
		s.VMs++
		if !v.Off() || !v.Ended {
			s.UsedBytes += v.Now().Memory
			s.UsedCPUs += v.Now().CPUs
		}
	}
	if draining {
		s.EmptyAt = moment(c.Emptying(h.Host.Name, now))
	}
	switch f := h.Fencing; {
	case len(h.Strays) > 0:
		s.Why = words.Count(len(h.Strays), "VM") + " that should not be here: " + names(h.Strays)
	case lives(h):
		s.Why = "lives although " + cmp.Or(f.By, "its fencing") + " says that it is off"
		if h.Single() {
			s.Why += ": no VM runs there that should not, and none is started until the machine starts anew"
		}
	case h.Dead != "":
		s.Why = "off, by the word of " + h.Dead
	case f != nil && h.Fenced:
		s.Why = "cut off by " + f.By
	case f != nil && f.Error != "":
		s.Why = "cutting it off failed: " + f.Error
	case h.Refused != nil:
		s.Why = "a second agent was refused its name"
	case h.Lost:
		s.Why = "its agent is not heard"
	case h.Unadmitted():
		s.Why = "its agent acts on nothing yet, and VMs run on: " + cmp.Or(h.Waits, "no controller has "+
			"admitted it")
	default:
		s.Why = troubled(h.Host.Name, troubles, now)
	}
	return s
}

// troubled says which migrations a host has failed lately; "" is none.
func troubled(host hypervisor.HostName, troubles []migration.HealthProblem, now time.Time) string {
	var all []string
	for i := range troubles {
		if troubles[i].Host == host {
			all = append(all, troubles[i].String(now))
		}
	}
	return strings.Join(all, "; ")
}

// names lists some of the VMs that run where they should not.
func names(strays []store.Stray) string {
	const most = 3
	var list []string
	for _, s := range strays[:min(len(strays), most)] {
		list = append(list, string(s.VM))
	}
	if len(strays) > most {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}

// alsoOn returns where a VM runs besides its own host; "" is nowhere.
func alsoOn(c *Cluster, v *store.VM) hypervisor.HostName {
	for _, host := range c.RunsBeside(v.VM.ID) {
		if host != v.Host {
			return host
		}
	}
	return ""
}

// OfVM says how a VM is.
func OfVM(c *Cluster, v *store.VM) VM {
	s := VM{Name: v.VM.ID, Host: v.Host, MemoryBytes: v.Now().Memory, CPUs: v.Now().CPUs,
		Boots: v.Boots, Migration: v.Claim, Why: v.Trouble}
	h := c.Host(v.Host)
	also := alsoOn(c, v)
	switch {
	case also != "":
		s.State = fmt.Sprintf("runs on %s and %s", v.Host, also)
	case v.Host == "" && v.Stopped:
		s.State = "stopped"
	case v.Host == "":
		s.State = "waiting for a host"
	case h != nil && (h.Fenced || h.Lost):
		s.State = "host " + HostState(h, false)
	case v.Claim != "":
		s.State = "moving"
	case v.Doing != store.Nothing:
		s.State = lower(string(v.Doing))
	case v.Stopped && v.Ended:
		s.State = "stopped"
	case v.Evicted != nil && v.Ended:
		s.State = "shut down"
	case v.Stopped:
		s.State = "stopping"
	case v.Boots == 0:
		s.State = "placed" // it is to run there; nothing says yet that it does
	default:
		s.State = "running"
	}
	if s.Why == "" && v.Claim != "" && c.Migration(v.Claim) == nil {
		s.Why = held(v)
	}
	if s.Why == "" && v.Evicted != nil && !v.Stopped {
		s.Why = evicted(v)
	}
	if s.Why == "" && v.Resized() && s.State == "running" {
		s.Why = "another size is wanted: it takes it when it reboots"
	}
	return s
}

// held says what becomes of a claim that names a migration which is not there.
func held(v *store.VM) string {
	text := "migration " + string(v.Claim) + " has claimed it and is not known: "
	if r := v.Release; r != nil && r.Claim == v.Claim {
		return text + r.By + " has asked for its release, which " + string(v.Host) + " is to confirm"
	}
	return text + "godwit vm release takes the claim back"
}

// evicted says what becomes of a VM that is shut down to leave its host.
func evicted(v *store.VM) string {
	text := "it cannot be migrated, and " + string(v.Host) + " is to be empty"
	if v.WhyNot != "" {
		text = "it cannot be migrated (" + v.WhyNot + "), and " + string(v.Host) + " is to be empty"
	}
	switch e := v.Evicted; {
	case e.Restart && e.Target != "":
		return text + ": it is to start on " + string(e.Target)
	case e.Restart:
		return text + ": it is to start elsewhere"
	}
	return text + ": it stays off until the drain is withdrawn, or godwit vm start"
}

func lower(word string) string {
	b := []byte(word)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// OfMove says how a migration goes.
func OfMove(m *store.Migration, now time.Time) MoveReport {
	p := Progress(m, now)
	st := &m.State
	s := MoveReport{Name: m.Spec.ID, VM: m.Spec.VM, Phase: st.Phase.String(), By: m.Spec.By.String(),
		Source: st.Source, Target: st.Target, Asked: m.Spec.Created, SentBytes: p.Sent,
		RemainBytes: p.Remaining, Rate: p.Rate, Looked: moment(p.Looked),
		PredictedEnd: moment(p.End), BlackoutNanos: m.Source.Blackout, Canceled: m.Cancel,
		Conditions: st.Conditions.Words(), Why: st.Because}
	if s.Phase == "" {
		s.Phase = "Asked"
	}
	if st.Phase.Final() {
		s.Ended, s.Unknown = moment(st.Entered), m.Source.Untold()
	}
	if m.Source.Error != "" && st.Phase != migration.Succeeded {
		s.Reasons = append(s.Reasons, hypervisor.Reason{Check: "source", Need: "to go on",
			Have: m.Source.Error})
	}
	s.Reasons = append(s.Reasons, m.Target.Refused...)
	if d := m.Decision; d != nil && d.Outcome != placement.Accepted {
		s.Reasons = append(s.Reasons, d.Why...)
	}
	if st.Conditions.Has(migration.OutcomeUnknown) && !st.Phase.Final() {
		s.Why = "outcome unknown: waits for word of " + string(st.Source) + " and " +
			string(st.Target)
	}
	return s
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Round(0)
	return &t
}
