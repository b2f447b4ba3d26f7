package sim_test

import "fmt"

// A saying makes the text of one event about hosts and VMs of a story.
type saying func(m maker, s *story) string

func (m maker) host(s *story) string { return m.oneOf("host", s.hostNames()...) }
func (m maker) vm(s *story) string   { return m.oneOf("VM", s.vmNames()...) }

// someone is the controller or a host's agent.
func (m maker) someone(s *story) string {
	return m.oneOf("who", append([]string{"controller"}, s.hostNames()...)...)
}

// twoHosts are the ends of a link.
func (m maker) twoHosts(s *story) string {
	a := m.Choose("one end", len(s.hosts))
	b := (a + m.between("other end", 1, len(s.hosts)-1)) % len(s.hosts)
	return s.hosts[a].name + " " + s.hosts[b].name
}

// lasting is shorter than any timeout, longer than a lease, or longer than most
// migrations.
func (m maker) lasting() string {
	return "for=" + m.oneOf("for", "200ms", "2s", "15s", "45s", "3m", "20m")
}

// faults are all that can break, by kind. Those that a story does not end are
// harmless, or the end of a host, which is a matter of its own.
var faults = []saying{
	func(m maker, s *story) string { return "crash-controller " + m.lasting() },
	func(m maker, s *story) string {
		return fmt.Sprintf("crash-controller for=5s after=%d", m.between("writes", 0, 12))
	},
	func(m maker, s *story) string { return "crash-agent " + m.host(s) + " " + m.lasting() },
	func(m maker, s *story) string {
		return fmt.Sprintf("crash-agent %s for=5s after=%d", m.host(s), m.between("writes", 0, 5))
	},
	func(m maker, s *story) string { return "deafen " + m.someone(s) + " " + m.lasting() },
	func(m maker, s *story) string { return "repeat " + m.someone(s) },
	func(m maker, s *story) string { return "freeze " + m.someone(s) + " " + m.lasting() },
	func(m maker, s *story) string { return "conflict " + m.vm(s) },
	func(m maker, s *story) string {
		return fmt.Sprintf("mute %s times=%d", m.someone(s), m.between("times", 1, 4))
	},
	func(m maker, s *story) string { return "full-store " + m.lasting() },
	func(m maker, s *story) string { return "crash-hypervisor " + m.host(s) + " " + m.lasting() },
	broken,
	func(m maker, s *story) string { return "cut " + m.twoHosts(s) + " " + m.lasting() },
	func(m maker, s *story) string { return "reset " + m.twoHosts(s) },
	func(m maker, s *story) string { return "kill " + m.vm(s) + " " + m.host(s) },
	func(m maker, s *story) string { return "crash " + m.host(s) + " " + m.lasting() },
	func(m maker, s *story) string { return "crash " + m.host(s) },
	func(m maker, s *story) string { return "fence " + m.host(s) },
	func(m maker, s *story) string { return "return " + m.host(s) },
	func(m maker, s *story) string {
		return "skew " + m.someone(s) + " by=" + m.oneOf("by", "1s", "-1s", "40s", "-40s", "10m",
			"-10m")
	},
}

// hostFaults are about hosts and links, storeFaults about processes and what they
// know.
var (
	storeFaults = faults[:11]
	hostFaults  = faults[10:]
)

// broken lets calls to a hypervisor go wrong in one of the ways.
func broken(m maker, s *story) string {
	text := "break " + m.host(s) + " how=" + m.oneOf("how", "FailBefore", "FailAfter", "Hang",
		"LateAnswer", "LateEffect")
	if op := m.oneOf("op", "", "Receive", "Migrate", "Progress", "Domain", "Cancel",
		"StartPostCopy", "Discard", "Resume", "Release", "Start"); op != "" {
		text += " op=" + op
	}
	return text + fmt.Sprintf(" times=%d delay=%s", m.between("times", 1, 3),
		m.oneOf("delay", "100ms", "2s", "40s", "5m"))
}

// orders are what operators do, and take back.
var orders = []saying{
	func(m maker, s *story) string { return "drain " + m.host(s) },
	func(m maker, s *story) string { return "undrain " + m.host(s) },
	func(m maker, s *story) string { return "close " + m.host(s) },
	func(m maker, s *story) string { return "open " + m.host(s) },
	func(m maker, s *story) string { return "mark " + m.vm(s) },
	func(m maker, s *story) string { return "unmark " + m.vm(s) },
	func(m maker, s *story) string { return "migrate " + m.vm(s) + m.priority() },
	func(m maker, s *story) string {
		return "migrate " + m.vm(s) + " to=" + m.host(s) + m.oneOf("force", "", " force=no",
			" force=yes", " compat=yes")
	},
	func(m maker, s *story) string { return "cancel " + m.vm(s) },
	func(m maker, s *story) string { return "delete " + m.vm(s) },
	func(m maker, s *story) string { return "stop " + m.vm(s) },
	func(m maker, s *story) string { return "start " + m.vm(s) },
	func(m maker, s *story) string { return "reboot " + m.vm(s) },
	resize,
	func(m maker, s *story) string { return "hold " + m.vm(s) + " " + m.hold() },
	func(m maker, s *story) string { return "unhold " + m.vm(s) + " " + m.hold() },
	func(m maker, s *story) string {
		return "load " + m.vm(s) + m.oneOf("load", " rate=1MiB/s hot=64MiB",
			" rate=4GiB/s hot=1GiB")
	},
}

// lives are what owners ask of their VMs.
var lives = orders[10:14]

// resize asks for a size that fits, that may fit, or that fits nowhere.
func resize(m maker, s *story) string {
	return "resize " + m.vm(s) + m.oneOf("size", " memory=1GiB", " memory=12GiB cpus=2",
		" memory=200GiB", " cpus=1", " cpus=60", " cpus=1000")
}

func (m maker) hold() string {
	return m.oneOf("hold", "backup", "utility", "hotplug", "cpu", "memory")
}

func (m maker) priority() string {
	return m.oneOf("priority", "", " priority=system-critical", " priority=user-triggered",
		" priority=system-maintenance")
}

// moment draws when something happens: at a time, or when a migration comes to
// a phase. Most transfers are under way in the first seconds.
func (m maker) moment(s *story) string {
	if !m.once("triggered", 4) {
		return m.time()
	}
	return "when " + m.vm(s) + "=" + m.oneOf("phase", "Running", "TargetReady", "PreparingTarget",
		"Scheduled", "Scheduling", "Pending", "Succeeded", "Failed")
}

func (m maker) time() string {
	switch m.Choose("scale", 3) {
	case 0:
		return fmt.Sprintf("%dms", m.Choose("ms", 300))
	case 1:
		return fmt.Sprintf("%dms", m.Choose("ms", 30_000))
	}
	return fmt.Sprintf("%ds", m.Choose("s", 600))
}

// swarm draws events of some of the kinds: the others are switched off, so that
// a story is not always about everything at once.
func (m maker) swarm(s *story, kinds []saying, low, high int) {
	var on []saying
	for _, k := range kinds {
		if m.once("kind", 2) {
			on = append(on, k)
		}
	}
	if len(on) == 0 {
		on = kinds
	}
	for range m.between("events", low, high) {
		s.events = append(s.events, m.moment(s)+" "+on[m.Choose("event", len(on))](m, s))
	}
}

// turmoil is any fleet, with operators who change their mind while things break.
func (m maker) turmoil() *story {
	s := m.anyFleet()
	m.rules(s)
	m.means(s)
	s.events = append(s.events, "0s drain "+m.host(s))
	m.swarm(s, orders, 0, 5)
	m.swarm(s, faults, 0, 6)
	return s
}
