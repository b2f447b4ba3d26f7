package explore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim"
)

// A Scene is a small world before anything has happened, and what its operators will do.
type Scene struct {
	Hosts []Place   // at most 5
	VMs   []SceneVM // at most 8; each has 1 GiB
	// Limits on how much moves at once. Default: those of the controller.
	PerCluster, PerSource, PerTarget int
	// PostCopy lets migrations of busy VMs go on at the target after a few seconds.
	PostCopy bool
	// Claims lets every agent claim its host's name before it acts, as in production.
	Claims bool
	// Backup lets the store be set back to how it was at the beginning, once; agents keep ledgers.
	Backup bool
	// Marks lets every process remember the newest moment of the store that it has seen, and a
	// leader admit agents, as in production. It needs Claims and Backup.
	Marks bool
	// Forgotten lets the controller remember nothing when the store is set back. It needs Marks.
	Forgotten bool
	// Script is what operators do, in this order, each at any time: "drain n1",
	// "undrain n1", "mark web", "migrate web", "cancel web", "stop web", "start web", "pause web",
	// "resume web". "renew web" deletes a VM that has stopped, and adds another one of its name where it was.
	// "dead n1" is the confirmation of an operator that n1 is off, which is taken when its agent is silent.
	Script []string
	// Begin is a number of steps without faults that lead to where the exploration
	// begins, too: from the scene itself and from each state on this way. Default: 0.
	Begin int
	// Configure changes by what the controller and the agents decide. Default: nothing.
	Configure Configure
}

// Configure plugs policies of one's own into one more world that is played. What it returns,
// if anything, is asked after every step.
type Configure func(*controller.Config, *agent.Config) Judge

// A Judge says what else is wrong in a world: with a decision that was made in it, or by an
// invariant of one's own. A name of "" is nothing.
type Judge func(sim.InvariantWorld) (name, detail string)

// A Place is a host with room for so many VMs; zero is for all.
type Place struct {
	Name hypervisor.HostName
	Room int
	// As is the host whose name the agent on this machine claims, too; "" is none: the machine
	// is a host. Such an agent comes when all others have claimed theirs.
	As hypervisor.HostName
	// Copied says that its directory is a copy of that of the other's.
	Copied bool
}

// A SceneVM is a VM and where it runs. A busy one writes its memory faster than any link
// carries it.
type SceneVM struct {
	Name hypervisor.VMID
	Host hypervisor.HostName
	Busy bool
}

// The sizes of scenes.
const (
	maxHosts = 5               // hosts in a scene
	maxVMs   = 8               // VMs in a scene
	memory   = hypervisor.GiB  // of every VM
	hurry    = 3 * time.Second // after which a migration goes on as post-copy
)

// String writes the scene as Parse reads it.
func (s *Scene) String() string {
	var b strings.Builder
	b.WriteString("hosts")
	for _, h := range s.Hosts {
		if h.As != "" {
			continue
		}
		b.WriteString(" " + string(h.Name))
		if h.Room > 0 {
			fmt.Fprintf(&b, "=%d", h.Room)
		}
	}
	b.WriteString("\nvms")
	for _, v := range s.VMs {
		fmt.Fprintf(&b, " %s@%s", v.Name, v.Host)
		if v.Busy {
			b.WriteString(",busy")
		}
	}
	b.WriteString("\n")
	for _, l := range s.limits() {
		if *l.value > 0 {
			fmt.Fprintf(&b, "%s %d\n", l.name, *l.value)
		}
	}
	if s.PostCopy {
		b.WriteString("post-copy\n")
	}
	if s.Claims {
		b.WriteString("claims\n")
	}
	if s.Backup {
		b.WriteString("backup\n")
	}
	if s.Marks {
		b.WriteString("marks\n")
	}
	if s.Forgotten {
		b.WriteString("forgotten\n")
	}
	for _, h := range s.Hosts {
		if h.As != "" {
			fmt.Fprintf(&b, "second %s %s\n", h.As, directories[h.Copied])
		}
	}
	for _, line := range s.Script {
		b.WriteString("script " + line + "\n")
	}
	return b.String()
}

type limit struct {
	name  string
	value *int
}

func (s *Scene) limits() []limit {
	return []limit{{"per-cluster", &s.PerCluster}, {"per-source", &s.PerSource},
		{"per-target", &s.PerTarget}}
}

// parse reads a scene. The error says which line is wrong.
func parse(text string) (*Scene, error) {
	s := &Scene{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := s.read(words); err != nil {
			return nil, fmt.Errorf("line %q: %w", strings.TrimSpace(line), err)
		}
	}
	return s, s.check()
}

func (s *Scene) read(words []string) error {
	switch words[0] {
	case "hosts":
		return s.readHosts(words[1:])
	case "vms":
		for _, w := range words[1:] {
			place, busy := strings.CutSuffix(w, ",busy")
			vm, host, ok := strings.Cut(place, "@")
			if !ok {
				return fmt.Errorf("write a VM as web@n1, not %q", w)
			}
			s.VMs = append(s.VMs, SceneVM{hypervisor.VMID(vm), hypervisor.HostName(host), busy})
		}
		return nil
	case "post-copy":
		s.PostCopy = true
		return nil
	case "claims":
		s.Claims = true
		return nil
	case "backup":
		s.Backup = true
		return nil
	case "marks", "forgotten":
		s.Claims, s.Backup, s.Marks = true, true, true
		s.Forgotten = s.Forgotten || words[0] == "forgotten"
		return nil
	case "second":
		return s.readSecond(words[1:])
	case "script":
		s.Script = append(s.Script, strings.Join(words[1:], " "))
		return nil
	}
	for _, l := range s.limits() {
		if l.name == words[0] && len(words) == 2 {
			n, err := strconv.Atoi(words[1])
			*l.value = n
			return err
		}
	}
	return errors.New("unknown word; use hosts, vms, post-copy, claims, second, backup, marks, forgotten, " +
		"script, per-cluster, per-source or per-target")
}

// directories are the words for what the directory of a second agent is.
var directories = map[bool]string{true: "copied", false: "new"}

// readSecond reads a machine whose agent claims the name of another host.
func (s *Scene) readSecond(words []string) error {
	if len(words) != 2 || words[1] != directories[true] && words[1] != directories[false] {
		return errors.New("write second, a host, and copied or new, for its directory")
	}
	s.Claims = true
	s.Hosts = append(s.Hosts, Place{Name: hypervisor.HostName(words[0] + "'"),
		As: hypervisor.HostName(words[0]), Copied: words[1] == directories[true]})
	return nil
}

func (s *Scene) readHosts(words []string) error {
	for _, w := range words {
		name, room, sized := strings.Cut(w, "=")
		h := Place{Name: hypervisor.HostName(name)}
		if sized {
			n, err := strconv.Atoi(room)
			if err != nil {
				return fmt.Errorf("write a host as n1 or n1=2, not %q", w)
			}
			h.Room = n
		}
		s.Hosts = append(s.Hosts, h)
	}
	return nil
}

// check reports what makes no sense.
func (s *Scene) check() error {
	if len(s.Hosts) == 0 || len(s.Hosts) > maxHosts || len(s.VMs) > maxVMs {
		return fmt.Errorf("%d hosts and %d VMs; there may be 1 to %d and 0 to %d", len(s.Hosts),
			len(s.VMs), maxHosts, maxVMs)
	}
	if s.Marks && !(s.Claims && s.Backup) || s.Forgotten && !s.Marks {
		return errors.New("forgotten needs marks, and marks need claims and backup")
	}
	for i, h := range s.Hosts {
		if at := s.hostIndex(string(h.As)); h.As != "" && (at < 0 || s.Hosts[at].As != "") {
			return fmt.Errorf("second %s: there is no host %q", h.As, h.As)
		}
		if s.hostIndex(string(h.Name)) != i {
			return fmt.Errorf("there are two machines %s", h.Name)
		}
	}
	for _, v := range s.VMs {
		if s.hostIndex(string(v.Host)) < 0 {
			return fmt.Errorf("VM %s: there is no host %q", v.Name, v.Host)
		}
	}
	for _, line := range s.Script {
		words := strings.Fields(line)
		switch {
		case len(words) != 2:
		case slices.Contains([]string{"drain", "undrain", "dead"}, words[0]):
			if s.hostIndex(words[1]) >= 0 {
				continue
			}
		case slices.Contains([]string{"mark", "migrate", "cancel", "stop", "start", "pause", "resume",
			"renew"}, words[0]):
			if s.vmIndex(words[1]) >= 0 {
				continue
			}
		}
		return fmt.Errorf("script %q: write drain, undrain or dead and a host, or mark, migrate, "+
			"cancel, stop, start, pause, resume or renew and a VM", line)
	}
	return nil
}

// hostIndex returns the position of a host; -1 is none.
func (s *Scene) hostIndex(name string) int {
	return slices.IndexFunc(s.Hosts, func(h Place) bool { return string(h.Name) == name })
}

// vmIndex returns the position of a VM; -1 is none.
func (s *Scene) vmIndex(name string) int {
	return slices.IndexFunc(s.VMs, func(v SceneVM) bool { return string(v.Name) == name })
}
