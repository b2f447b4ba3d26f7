package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// An event is something that has happened to a fleet, in the words of a scenario.
type event struct {
	at   time.Duration
	what string
	keys []store.Key // the hosts and VMs that it names
}

// happened is what has happened since the first look.
type happened struct {
	zero   time.Time
	events []event
}

func (h *happened) at(t time.Time, format string, args ...any) {
	e := event{at: max(0, t.Sub(h.zero)), what: fmt.Sprintf(format, args...)}
	for _, a := range args {
		switch a := a.(type) {
		case hypervisor.HostName:
			e.keys = append(e.keys, store.Key{Kind: store.HostKind, Name: string(a)})
		case hypervisor.VMID:
			e.keys = append(e.keys, store.Key{Kind: store.VMKind, Name: string(a)})
		}
	}
	h.events = append(h.events, e)
}

// grace is how long a host has been silent when it is called lost, by default.
const grace = 30 * time.Second

// A loss is a host whose agent is not heard.
type loss struct {
	since  time.Time
	fenced time.Time // zero: it was not
}

// host tells what has happened to a host.
func (c *timeline) host(was, now *store.Host, at time.Time) {
	name := now.Host.Name
	switch drained, drains := c.draining(was), c.draining(now); {
	case drains && !drained:
		c.at(at, "drain %s%s", name, terms(now.Drain))
	case drained && !drains:
		c.at(at, "undrain %s", name)
	}
	switch {
	case now.Cordoned && !was.Cordoned:
		c.at(at, "cordon %s", name)
	case was.Cordoned && !now.Cordoned:
		c.at(at, "uncordon %s", name)
	}
	gone := now.NotReady || now.Fenced
	l := c.lost[name]
	if gone && l == nil {
		l = &loss{since: at}
		c.lost[name] = l
	}
	if now.Fenced && l.fenced.IsZero() {
		l.fenced = at
	}
	if !gone && l != nil {
		c.regain(name, at, true)
	}
}

// terms writes the terms of a drain as an event does.
func terms(t evacuation.Terms) (text string) {
	if t.OnUnmovable != evacuation.ByStrategy {
		text += " unmovable=" + t.OnUnmovable.String()
	}
	if t.Grace > 0 {
		text += " grace=" + t.Grace.String()
	}
	return text
}

func (c *timeline) draining(h *store.Host) bool {
	return slices.ContainsFunc(h.Taints, func(t placement.Taint) bool { return t.Key == c.drain })
}

// regain tells of a loss that has ended. A host that was never cut off is taken for one whose
// agent alone was silent.
func (c *timeline) regain(name hypervisor.HostName, at time.Time, back bool) {
	l := c.lost[name]
	delete(c.lost, name)
	since := l.since.Add(-grace)
	if since.Before(c.zero) {
		since = c.zero
	}
	if l.fenced.IsZero() {
		c.at(since, "crash-agent %s for=%s", name, rounded(max(time.Second, at.Sub(since))))
		return
	}
	c.at(since, "crash %s", name)
	c.at(l.fenced, "fence %s", name)
	if back {
		c.at(at, "return %s", name)
	}
}

// vm tells what its operator did to a VM.
func (c *timeline) vm(was, now *store.VM, at time.Time) {
	id := now.VM.ID
	if now.EvacuateFrom != was.EvacuateFrom && now.EvacuateFrom == now.Host && now.EvacuateFrom != "" {
		c.at(at, "mark %s", id)
	}
	if now.EvacuateFrom == "" && was.EvacuateFrom != "" && now.Host == was.Host {
		c.at(at, "unmark %s", id)
	}
	if now.Stopped != was.Stopped {
		c.at(at, "%s %s", map[bool]string{true: "stop", false: "start"}[now.Stopped], id)
	}
	if r := now.Release; r != nil && (was.Release == nil || *was.Release != *r) {
		c.at(at, "release %s by=%s", id, strings.Join(strings.Fields(r.By), "_"))
	}
	if now.Pause != was.Pause {
		c.at(at, "%s %s", map[bool]string{true: "pause", false: "resume"}[now.Pause], id)
	}
	for _, disk := range now.DiskChanges[min(len(was.DiskChanges), len(now.DiskChanges)):] {
		switch {
		case disk.Move != nil:
			c.at(at, "move-disk %s %s path=%s", id, disk.Move.Disk, disk.Move.To)
		case disk.Attach == nil:
			c.at(at, "detach-disk %s %s", id, disk.Detach)
		case !disk.Attach.Local():
			c.at(at, "attach-disk %s %s path=%s", id, disk.Attach.Name, disk.Attach.Path)
		}
	}
	if now.Reboots > was.Reboots {
		c.at(at, "reboot %s", id)
	}
	if now.VM.Memory != was.VM.Memory || now.VM.CPUs != was.VM.CPUs {
		c.at(at, "resize %s memory=%s cpus=%d", id, amount(now.VM.Memory), now.VM.CPUs)
	}
	a, b := &was.Blockers, &now.Blockers
	for _, h := range []struct {
		word    string
		was, is bool
	}{
		{"backup", a.Backup, b.Backup}, {"utility", a.UtilityVolumes, b.UtilityVolumes},
		{"hotplug", a.Hotplug, b.Hotplug}, {"cpu", a.CPUChange, b.CPUChange},
		{"memory", a.MemoryChange, b.MemoryChange},
	} {
		if h.was != h.is {
			c.at(at, "%s %s %s", map[bool]string{true: "hold", false: "unhold"}[h.is], id, h.word)
		}
	}
}

// migration tells what users asked for; was is nil when they ask now.
func (c *timeline) migration(was, now *store.Migration, at time.Time) {
	m := &now.Spec
	if was == nil && m.By == migration.User && !now.State.Phase.Final() {
		text := ""
		switch m.Force {
		case placement.Yes:
			text += " force=yes"
		case placement.No:
			text += " force=no"
		}
		if m.Compat {
			text += " compat=yes"
		}
		for _, word := range []string{"system-critical", "user-triggered", "system-maintenance"} {
			if m.Priority != migration.Lowest && migration.ParsePriority(word) == m.Priority {
				text += " priority=" + word
				break
			}
		}
		if m.Target != "" {
			c.at(at, "migrate %s to=%s%s", m.VM, m.Target, text)
		} else {
			c.at(at, "migrate %s%s", m.VM, text)
		}
	}
	if now.Cancel && was != nil && !was.Cancel {
		c.at(at, "cancel %s", m.VM)
	}
}
