package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A Status is the state of a cluster.
type Status struct {
	At     time.Time    `json:"at"`
	Leader string       `json:"leader,omitempty"` // "controller/a"
	Term   uint64       `json:"term,omitempty"`
	Hosts  []Host       `json:"hosts"`
	VMs    []VM         `json:"vms"`
	Moves  []MoveReport `json:"migrations"` // that have not ended, or have lately
	// Stopped are the runs of maintenance that wait for an operator. Default: none.
	Stopped []StoppedRun `json:"stoppedRuns,omitempty"`
	// Alarms need an operator at once. Default: none.
	Alarms []Alarm `json:"alarms,omitempty"`
}

// A StoppedRun is a run of maintenance that waits for an operator.
type StoppedRun struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// An Alarm is a VM that runs twice, a host with two agents, or a store that is older than it was.
type Alarm struct {
	VM    hypervisor.VMID       `json:"vm,omitempty"`
	Hosts []hypervisor.HostName `json:"hosts"` // where the VM runs, or the host
	What  string                `json:"what"`
	Do    string                `json:"do"`
}

// A Host is the state of a host.
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

// A VM is the state of a VM.
type VM struct {
	Name        hypervisor.VMID     `json:"name"`
	Host        hypervisor.HostName `json:"host,omitempty"`
	State       string              `json:"state"`
	MemoryBytes hypervisor.Bytes    `json:"memoryBytes"`
	CPUs        int                 `json:"cpus"`
	Boots       int                 `json:"boots"`
	Migration   migration.ID        `json:"migration,omitempty"` // that moves it
	Why         string              `json:"why,omitempty"`       // it is not as it shall be
	// DirtyRate is how fast its guest wrote memory when that was measured last.
	DirtyRate hypervisor.Bandwidth `json:"dirtyBytesPerSecond,omitempty"`
	Measured  *time.Time           `json:"dirtyMeasured,omitempty"`
}

// A MoveReport is the state of a migration.
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
	DowntimeNanos time.Duration        `json:"downtimeNanoseconds,omitempty"`
	// Unknown: it has ended, and the amount sent and the downtime are unknown, because the source
	// failed before it reported them.
	Unknown    bool     `json:"unknown,omitempty"`
	Canceled   bool     `json:"canceled,omitempty"`
	Conditions []string `json:"conditions,omitempty"`
	// Traffic is how it is sent, when that was decided: see migration.Traffic.
	Traffic migration.Traffic   `json:"traffic,omitempty"`
	Why     string              `json:"why,omitempty"` // it ended, or does not go on
	Reasons []hypervisor.Reason `json:"reasons,omitempty"`
}

// lately is how long ended migrations are reported.
const lately = 5 * time.Minute

// MakeStatus returns the state of a cluster now. Evacuation has the defaults of VMs and drains.
func MakeStatus(c *Cluster, defaults evacuation.Params, now time.Time) *Status {
	s := &Status{At: now.UTC().Round(0), Hosts: []Host{}, VMs: []VM{}, Moves: []MoveReport{}}
	if l := c.Leader(); l != nil {
		s.Leader, s.Term = l.Holder, l.Term
	}
	migrations := c.Migrations()
	waits := placeless(migrations, now)
	for _, v := range c.VMs() {
		vm := OfVM(c, v)
		if vm.Why == "" && waits[vm.Name] {
			vm.Why = waitsForPlace(vm.Name)
		}
		s.VMs = append(s.VMs, vm)
	}
	troubles := store.Health(migrations).Problems(now)
	for _, h := range c.Hosts() {
		s.Hosts = append(s.Hosts, ofHost(c, h, defaults, troubles, now))
	}
	for _, m := range migrations {
		if !m.State.Phase.Final() || now.Sub(m.State.Entered) < lately {
			s.Moves = append(s.Moves, c.ReportMove(m, now))
		}
	}
	for _, m := range c.Runs() {
		if m.Halted() {
			s.Stopped = append(s.Stopped, StoppedRun{m.Name, m.Stopped})
		}
	}
	s.Alarms = alarmsOf(c)
	return s
}

// alarmsOf lists the alarms that follow from the records of the hosts.
func alarmsOf(c *Cluster) []Alarm {
	var all []Alarm
	if why := c.SetBack(); why != nil {
		all = append(all, setBack(c, why))
	}
	for _, h := range c.Hosts() {
		if h.Account != nil && c.SetBack() == nil {
			all = append(all, Alarm{Hosts: []hypervisor.HostName{h.Host.Name},
				What: fmt.Sprintf("%s does not accept the store: %s", h.Host.Name,
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
				What: fmt.Sprintf("%s sends heartbeats although %s reports it as off", h.Host.Name,
					cmp.Or(h.Fencing.By, "its fencing")),
				Do: "no VM is started there, and no more of its VMs are started elsewhere: check " +
					"whether its VMs run, and stop those that also run elsewhere"})
		}
	}
	return all
}

// lives reports whether a fenced host sends heartbeats.
// Source: controller (Judge, lives-though-fenced).
func lives(h *store.Host) bool {
	return h.Refuted() != ""
}

// setBack is the alarm for a store that is older than it was.
func setBack(c *Cluster, why error) Alarm {
	a := Alarm{What: "the store is older than it was: " + strings.TrimSuffix(why.Error(),
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
		a.What = fmt.Sprintf("%s runs on %s, and has no record", s.VM, host)
		a.Do = fmt.Sprintf("shut its guest down on %s if it is not needed, or check whether this is "+
			"the right store", host)
		return a
	}
	a.Hosts = []hypervisor.HostName{v.Host, host}
	slices.Sort(a.Hosts)
	a.What = fmt.Sprintf("%s runs on %s, and its record says that it is on %s", s.VM, host, v.Host)
	a.Do = "inspect both guests, decide which one is good, and stop the other one: godwit changes " +
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
		keep = fmt.Sprintf("; once the refused agent is stopped: godwit host adopt %s --id %s",
			name, h.Identity.ID)
	}
	return Alarm{Hosts: []hypervisor.HostName{name},
		What: fmt.Sprintf("a second agent used the name %s at %s and was refused: it has identity %v, "+
			"the host has %s: %s", name, r.At.UTC().Format(time.RFC3339), r.Identity, of, r.Why),
		Do: fmt.Sprintf("stop the wrong one, and give it another name%s", keep)}
}

// OfHost returns the state of a host.
func OfHost(c *Cluster, h *store.Host, defaults evacuation.Params, now time.Time) Host {
	return ofHost(c, h, defaults, store.Health(c.Migrations()).Problems(now), now)
}

// ofHost is OfHost for known problems of hosts.
func ofHost(c *Cluster, h *store.Host, defaults evacuation.Params, troubles []migration.HealthProblem,
	now time.Time) Host {
	draining := Drains(defaults, h)
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
		s.EmptyAt = moment(c.EstimateDrain(h.Host.Name, defaults.Strategy, now))
	}
	switch f := h.Fencing; {
	case len(h.Strays) > 0:
		s.Why = humanize.Count(len(h.Strays), "VM") + " that should not run here: " + names(h.Strays)
	case lives(h):
		s.Why = "sends heartbeats although " + cmp.Or(f.By, "its fencing") + " reports it as off"
		if h.Single() {
			s.Why += ": no VM runs there that should not, and none is started until the machine reboots"
		}
	case h.ConfirmedDownBy != "":
		s.Why = "confirmed down by " + h.ConfirmedDownBy
	case f != nil && h.Fenced:
		s.Why = "fenced by " + f.By
	case f != nil && f.Error != "":
		s.Why = "fencing failed: " + f.Error
	case h.Refused != nil:
		s.Why = "a second agent was refused its name"
	case h.NotReady:
		s.Why = "its agent sends no heartbeats"
	case h.Unadmitted():
		s.Why = "its agent is not admitted yet, VMs keep running: " + cmp.Or(h.Waits, "no controller has "+
			"admitted it")
	default:
		s.Why = cmp.Or(troubled(h.Host.Name, troubles, now), plainly(c, h))
	}
	return s
}

// plainly says that what moves to and from a host is not encrypted although other hosts have
// certificates; "" is that it is, or that no host has any.
func plainly(c *Cluster, h *store.Host) string {
	if h.Host.Abilities == 0 || h.Host.Abilities.Has(hypervisor.CanEncrypt) ||
		!slices.ContainsFunc(c.Hosts(), func(o *store.Host) bool {
			return o.Host.Abilities.Has(hypervisor.CanEncrypt)
		}) {
		return ""
	}
	return "migrations to and from it are not encrypted: its agent has no certificates (--tls-dir)"
}

// plain says why a migration is not encrypted although one of its hosts could; "" is that it is, or
// that neither could.
func (m *MoveReport) plain() string {
	switch m.Traffic {
	case migration.TrafficPlainByPolicy:
		return "not encrypted: the configuration says so"
	case migration.TrafficPlainSource:
		return "not encrypted: " + string(m.Source) + " has no certificates"
	case migration.TrafficPlainTarget:
		return "not encrypted: " + string(m.Target) + " has no certificates"
	}
	return ""
}

// troubled lists the recent migrations that a host has failed; "" is none.
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
	for _, host := range c.runsBeside(v.VM.ID) {
		if host != v.Host {
			return host
		}
	}
	return ""
}

// waitingForHost is the [VM.State] of a VM that is to run and has no host.
const waitingForHost = "waiting for a host"

// OfVM returns the state of a VM.
func OfVM(c *Cluster, v *store.VM) VM {
	s := VM{Name: v.VM.ID, Host: v.Host, MemoryBytes: v.Now().Memory, CPUs: v.Now().CPUs,
		Boots: v.Boots, Migration: v.ActiveMigration, Why: v.Trouble}
	if d := v.Dirtied; d != nil {
		s.DirtyRate, s.Measured = d.Rate, new(d.At.UTC())
	}
	h := c.Host(v.Host)
	also := alsoOn(c, v)
	switch {
	case also != "":
		s.State = fmt.Sprintf("runs on %s and %s", v.Host, also)
	case v.Host == "" && v.Stopped:
		s.State = "stopped"
	case v.Host == "":
		s.State = waitingForHost
	case h != nil && (h.Fenced || h.NotReady):
		s.State = "host " + HostState(h, false)
	case v.ActiveMigration != "":
		s.State = "moving"
	case v.Operation != store.Nothing:
		s.State = lower(string(v.Operation))
	case v.Stopped && v.Ended:
		s.State = "stopped"
	case v.Evicted != nil && v.Ended:
		s.State = "shut down"
	case v.Stopped:
		s.State = "stopping"
	case v.Paused: // also one that is to be resumed, until it was
		s.State = "paused"
	case v.Boots == 0:
		s.State = "placed" // it is to run there; nothing says yet that it does
	default:
		s.State = "running"
	}
	if s.Why == "" && v.ActiveMigration != "" && c.Migration(v.ActiveMigration) == nil {
		s.Why = held(v)
	}
	if s.Why == "" && v.Evicted != nil && !v.Stopped {
		s.Why = evicted(v)
	}
	if s.Why == "" && v.Pause != v.Paused && v.ActiveMigration != "" {
		s.Why = map[bool]string{true: "it is paused", false: "it is resumed"}[v.Pause] +
			" when migration " + string(v.ActiveMigration) + " has ended"
	}
	if s.Why == "" && v.Rename != nil {
		s.Why = "it is to be renamed to " + string(v.Rename.To)
	}
	if s.Why == "" && len(v.DiskChanges) > 0 {
		s.Why = unplugged(v)
	}
	if s.Why == "" && v.Resized() && s.State == "running" {
		s.Why = unresized(v, h)
	}
	return s
}

// unresized says when a VM that runs gets the size that is requested, and why not now.
func unresized(v *store.VM, h *store.Host) string {
	now := v.Now()
	grown, err := v.Grows(now)
	switch {
	case err == nil && grown.Equal(now):
		return "other room to grow is requested: takes effect at its next start or reboot"
	case err != nil:
		return "another size is requested: takes effect at its next start or reboot: " +
			strings.TrimSuffix(err.Error(), ": "+hypervisor.Conflict.Error())
	case h != nil && !h.Host.Abilities.Has(hypervisor.CanResizeLive):
		return "another size is requested: takes effect at its next start or reboot: " + string(v.Host) +
			" cannot resize a VM that runs"
	case v.ActiveMigration != "":
		return "it grows when migration " + string(v.ActiveMigration) + " has ended"
	}
	return "it is to grow to " + store.Resize(now, grown)
}

// unplugged describes the changes of a VM's disks that are not made yet.
func unplugged(v *store.VM) string {
	var all []string
	for _, c := range v.DiskChanges {
		text := "it is to " + c.Words()
		switch {
		case c.Why != "":
			text += ": " + c.Why
		case c.Move != nil && c.Move.Switched:
			text += ": it goes over to it"
		case c.Move != nil && c.Move.Cancel:
		case c.Move != nil && c.Move.Begun && c.Move.Total > 0:
			text += fmt.Sprintf(": %d%% of %v are copied", 100*c.Move.Copied/c.Move.Total, c.Move.Total)
		case c.Move != nil && c.Move.Begun:
			text += ": the copying begins"
		case v.ActiveMigration != "":
			text += " when migration " + string(v.ActiveMigration) + " has ended"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// Down reports whether a VM that shall run is not known to: it has no host, its host is lost or
// fenced, or its agent has not started it.
func Down(c *Cluster, v *store.VM) bool {
	if v.Stopped || v.Evicted != nil && !v.Evicted.Restart {
		return false
	}
	h := c.Host(v.Host)
	return h == nil || h.NotReady || h.Fenced || v.Ended || v.Boots == 0 || v.Operation == store.Starting
}

// held describes a claim by a migration that does not exist.
func held(v *store.VM) string {
	text := "migration " + string(v.ActiveMigration) + " has claimed it and does not exist: "
	if r := v.Release; r != nil && r.Claim == v.ActiveMigration {
		return text + r.By + " has requested its release, which " + string(v.Host) + " has to confirm"
	}
	return text + "godwit vm release removes the claim"
}

// evicted describes a VM that is shut down because its host drains.
func evicted(v *store.VM) string {
	text := "it cannot be migrated, and " + string(v.Host) + " drains"
	if _, why := v.CanMigrate(); why != "" {
		text = "it cannot be migrated (" + why + "), and " + string(v.Host) + " drains"
	}
	switch e := v.Evicted; {
	case e.Restart && e.Target != "":
		return text + ": it will start on " + string(e.Target)
	case e.Restart:
		return text + ": it will start elsewhere"
	}
	return text + ": it stays off until the drain is cancelled, or godwit vm start"
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

// sourceCheck names what the source host says of a migration.
const sourceCheck = "source"

// ReportMove is OfMove with what the record of the VM says: until the hand-over its host is the source.
func (c *Cluster) ReportMove(m *store.Migration, now time.Time) MoveReport {
	s := OfMove(m, now)
	if v := c.VM(m.Spec.VM); v != nil && s.Source == "" && s.Ended == nil {
		s.Source = v.Host
	}
	return s
}

// OfMove returns the state of a migration.
func OfMove(m *store.Migration, now time.Time) MoveReport {
	p := progressOf(m, now)
	st := &m.State
	s := MoveReport{Name: m.Spec.ID, VM: m.Spec.VM, Phase: st.Phase.String(), By: m.Spec.By.String(),
		Source: st.Source, Target: st.Target, Asked: m.Spec.Created, SentBytes: p.Sent,
		RemainBytes: p.Remaining, Rate: p.Rate, Looked: moment(p.Looked),
		PredictedEnd: moment(p.End), DowntimeNanos: m.Source.Downtime, Canceled: m.Cancel,
		Conditions: st.Conditions.Words(), Why: st.Because}
	if s.Phase == "" {
		s.Phase = "Asked"
	}
	if m.Options != nil {
		s.Traffic = m.Options.Traffic
	}
	if st.Phase.Final() {
		s.Ended, s.Unknown = moment(st.Entered), m.Source.Untold()
	}
	if m.Source.Error != "" && st.Phase != migration.Succeeded {
		s.Reasons = append(s.Reasons, hypervisor.Reason{Check: sourceCheck, Need: "to go on",
			Have: m.Source.Error})
	}
	s.Reasons = append(s.Reasons, m.Target.Refused...)
	if d := m.Decision; d != nil && d.Outcome != placement.Accepted {
		s.Reasons = append(s.Reasons, d.Why...)
	}
	if st.Conditions.Has(migration.OutcomeUnknown) && !st.Phase.Final() {
		s.Why = "outcome unknown: waits for reports of " + string(st.Source) + " and " +
			string(st.Target)
	}
	if s.Why == "" && len(s.Reasons) == 0 && isPlaceless(m, now) {
		s.Why = waitsForPlace(m.Spec.VM)
	}
	if host, what := st.NextStep(); s.Why == "" && host != "" && now.Sub(st.Entered) >= placedSoon {
		s.Why = fmt.Sprintf("waits for the agent of %s %s, for %v", host, what, now.Sub(st.Entered).Round(time.Second))
	}
	return s
}

// placedSoon is within what time a migration usually has a target, and an agent takes its step.
const placedSoon = 10 * time.Second

// isPlaceless reports whether a migration has no target for longer than it usually takes, or was looked at and
// got none: then its phase has a deadline.
func isPlaceless(m *store.Migration, now time.Time) bool {
	return m.State.Phase <= migration.Pending && !m.Cancel &&
		(!m.State.Deadline.IsZero() || now.Sub(m.Spec.Created) >= placedSoon)
}

// placeless returns the VMs whose migrations are.
func placeless(all []*store.Migration, now time.Time) map[hypervisor.VMID]bool {
	vms := map[hypervisor.VMID]bool{}
	for _, m := range all {
		if isPlaceless(m, now) {
			vms[m.Spec.VM] = true
		}
	}
	return vms
}

// waitsForPlace says where it is told which hosts refuse a VM, and why: that takes a look at all hosts.
func waitsForPlace(vm hypervisor.VMID) string {
	return "it waits for a host or a free slot: godwit explain " + string(vm)
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Round(0)
	return &t
}
