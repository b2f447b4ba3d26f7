package stage

import (
	"fmt"
	"github.com/godwit-vm/godwit/sim/explore/internal/scene"
	"slices"
	"strconv"
	"strings"
)

// An op is a kind of step.
type Op uint8

const (
	OpLook     Op = iota // A: process; B: fate; C: of which write or command
	opStale              // A: process
	opLate               // A: process, although another's time comes first
	opRepeat             // A: process
	opForget             // A: process
	opCrash              // A: process
	opRestart            // A: process
	opTime               // something happens in a hypervisor
	OpScript             // an operator does what is next in the script
	opPostpone           // operators wait until nothing else is to be done
	opHang               // A: process
	opGoOn               // A: process
	opKill               // A: process (its host), B: VM
	opCut                // A, B: processes
	opHeal               // A, B
	opReset              // A, B
	opLost               // A: process
	opOff                // A
	opAsk                // A
	opFence              // A
	opOn                 // A
	opGive               // A: process (its host), B: VM
	ops
)

// A step is one thing that happens.
type Step struct {
	Op      Op
	A, B, C uint8
	Odd     bool // it is no fault, and another would be usual
}

// A Fault is a kind of fault.
type Fault uint16

// The kinds of faults.
const (
	Crashes     Fault = 1 << iota // a process Dies, before any write or command
	LostAnswers                   // a write or a command takes effect without an answer
	Refusals                      // a write or a command is Refused
	StaleViews                    // a participant sees nothing new in the store
	LostHints                     // a notification is lost
	Repeats                       // a participant looks twice
	Delays                        // a participant hangs for long, or a later one's time is first
	Kills                         // a VM's process Dies
	Cuts                          // a link is cut, and heals at any time, or never
	Resets                        // connections between two hosts are closed
	Power                         // a host loses its power, or is fenced, and may return
	AllFaults   Fault = 1<<iota - 1
)

// words write a step; %a and so on are its arguments: process, VM, number.
var words = [ops]struct {
	name  string
	args  string // p: a process, h: a host's, v: a VM
	fault Fault  // what it costs; 0 is nothing
}{
	OpLook: {"look", "p", 0}, opStale: {"look-stale", "p", StaleViews},
	opLate: {"look-first", "p", Delays}, opRepeat: {"look-again", "p", Repeats},
	opForget: {"lose-hint", "p", LostHints}, opCrash: {"crash", "p", Crashes},
	opRestart: {"restart", "p", 0}, opTime: {"time", "", 0}, OpScript: {"operator", "", 0},
	opPostpone: {"operator-waits", "", 0}, opHang: {"hang", "p", Delays},
	opGoOn: {"go-on", "p", 0},
	opKill: {"kill", "hv", Kills}, opCut: {"cut", "hh", Cuts}, opHeal: {"heal", "hh", 0},
	opReset: {"reset", "hh", Resets}, opLost: {"call-lost", "h", 0},
	opOff: {"power-off", "h", Power}, opAsk: {"fencing-begins", "h", Power},
	opFence: {"fence", "h", Power},
	opOn:    {"power-on", "h", 0}, opGive: {"rebuild", "hv", 0},
}

var fates = [...]string{well: "", Dies: "dies-before", Unanswered: "unanswered",
	Refused: "refused"}

// Fault is what a step costs.
func (s Step) Fault() Fault {
	if s.Op == OpLook {
		return [...]Fault{well: 0, Dies: Crashes, Unanswered: LostAnswers,
			Refused: Refusals}[s.B]
	}
	return words[s.Op].fault
}

// Cost is what a step costs in this world: to carry out a fencing that has begun, or to
// prove one of a host that has no power, is nothing more.
func (w *World) Cost(s Step) Fault {
	if s.Op == opFence && (w.Procs[s.A].Off || w.record(s.A).Fencing != nil) {
		return 0
	}
	return s.Fault()
}

// Write returns a step as a line of a transcript.
func (w *World) Write(s Step) string {
	text := words[s.Op].name
	for i, kind := range words[s.Op].args {
		arg := [...]uint8{s.A, s.B}[i]
		if kind == 'v' {
			text += " " + string(w.Scene.VMs[arg].Name)
		} else {
			text += " " + w.who(int(arg))
		}
	}
	if s.Op == OpLook && fate(s.B) != well {
		text += fmt.Sprintf(" %s=%d", fates[s.B], s.C+1)
	}
	return text
}

// Read reads a line that write wrote.
func (w *World) Read(line string) (Step, error) {
	f := strings.Fields(line)
	for o := range ops {
		args := words[o].args
		if len(f) == 0 || f[0] != words[o].name || len(f) < 1+len(args) {
			continue
		}
		s := Step{Op: o}
		for i, kind := range args {
			n, err := w.readArgument(f[1+i], kind)
			if err != nil {
				return s, err
			}
			*[...]*uint8{&s.A, &s.B}[i] = n
		}
		return s, s.readFate(f[1+len(args):])
	}
	return Step{}, fmt.Errorf("%q is no step", line)
}

func (w *World) readArgument(text string, kind rune) (uint8, error) {
	n := w.Scene.HostIndex(text) + 1
	switch {
	case kind == 'v':
		if n = w.Scene.VMIndex(text); n < 0 {
			return 0, fmt.Errorf("there is no VM %q", text)
		}
	case n == 0 && (kind == 'h' || text != "controller"):
		return 0, fmt.Errorf("there is no host %q", text)
	}
	return uint8(n), nil
}

func (s *Step) readFate(f []string) error {
	if len(f) == 0 {
		return nil
	}
	name, number, _ := strings.Cut(f[0], "=")
	n, err := strconv.ParseUint(number, 10, 8)
	i := slices.Index(fates[:], name)
	if i <= 0 || err != nil || n == 0 || s.Op != OpLook || len(f) > 1 {
		return fmt.Errorf("%q: write dies-before=N, unanswered=N or refused=N",
			strings.Join(f, " "))
	}
	s.B, s.C = uint8(i), uint8(n-1)
	return nil
}

// Possible appends the steps that may happen now, but for the fates of looks, which
// depend on how many writes and commands a look makes.
func (w *World) Possible(list []Step, allowed Fault) []Step {
	next := w.nextTimers()
	for p := range w.lines {
		proc, a := &w.Procs[p], uint8(p)
		switch {
		case proc.Brain == nil && !proc.Off:
			list = append(list, Step{Op: opRestart, A: a})
		case proc.Brain == nil:
		case proc.Hung:
			list = append(list, Step{Op: opGoOn, A: a})
		case w.due(p), next.first == p:
			list = append(list, Step{Op: OpLook, A: a})
		case w.idle():
		case !proc.Wake.IsZero():
			list = append(list, Step{Op: opLate, A: a}, Step{Op: opRepeat, A: a})
		}
		if proc.Brain != nil {
			list = append(list, Step{Op: opStale, A: a}, Step{Op: opForget, A: a},
				Step{Op: opCrash, A: a}, Step{Op: opHang, A: a})
		}
	}
	if next.fabric {
		list = append(list, Step{Op: opTime})
	}
	if w.Script < len(w.Scene.Script) {
		list = append(list, Step{Op: OpScript}, Step{Op: opPostpone})
	}
	list = w.possibleHarm(list)
	return slices.DeleteFunc(list, func(s Step) bool {
		f := w.Cost(s)
		return f != 0 && (w.Faults == 0 || f&allowed == 0) || !w.enabled(s)
	})
}

// timers say whose time comes first.
type timers struct {
	first  int // the process; -1 is none
	fabric bool
}

// nextTimers finds the process whose time comes first, unless something happens in a
// hypervisor before: time cannot pass that by.
func (w *World) nextTimers() timers {
	t := timers{first: -1}
	for p := range w.lines {
		proc := &w.Procs[p]
		if proc.Brain != nil && !proc.Hung && !w.due(p) && !proc.Wake.IsZero() &&
			(t.first < 0 || proc.Wake.Before(w.Procs[t.first].Wake)) {
			t.first = p
		}
	}
	at, ok := w.Fabric.Next()
	t.fabric = ok
	if t.first >= 0 && (ok && at.Before(w.Procs[t.first].Wake) || !ok && w.idle()) {
		t.first = -1
	}
	return t
}

// idle reports whether nothing is left to be done: whoever still wants to look only
// wants to be sure.
func (w *World) idle() bool {
	if w.Script < len(w.Scene.Script) {
		return false
	}
	for p := range w.lines {
		if w.Procs[p].Brain == nil || w.Procs[p].Told || w.Procs[p].Hung {
			return false
		}
	}
	for _, m := range w.all() {
		if !m.State.Phase.Final() || !m.State.Released {
			return false
		}
	}
	return true
}

// possibleHarm appends what can happen to hosts, links and VMs.
func (w *World) possibleHarm(list []Step) []Step {
	for i := range w.Scene.Hosts {
		a := uint8(i + 1)
		list = append(list, Step{Op: opLost, A: a}, Step{Op: opOff, A: a},
			Step{Op: opAsk, A: a}, Step{Op: opFence, A: a}, Step{Op: opOn, A: a})
	}
	for i := range w.Scene.VMs {
		for p := 1; p < len(w.lines); p++ {
			list = append(list, Step{Op: opGive, A: uint8(p), B: uint8(i)})
		}
		for _, c := range w.Fabric.Copies(w.Scene.VMs[i].Name) {
			h := w.Scene.HostIndex(string(c.Host)) + 1
			list = append(list, Step{Op: opKill, A: uint8(h), B: uint8(i)})
		}
	}
	var pairs uint
	for _, m := range w.all() {
		a, b := w.Scene.HostIndex(string(m.State.Source)), w.Scene.HostIndex(string(m.State.Target))
		if !m.State.Phase.Final() && a >= 0 && b >= 0 {
			pairs |= 1 << pair(a+1, b+1)
		}
	}
	for a := 1; a < len(w.lines); a++ {
		for b := a + 1; b < len(w.lines); b++ {
			switch bit := pair(a, b); {
			case w.Cut>>bit&1 == 1:
				list = append(list, Step{Op: opHeal, A: uint8(a), B: uint8(b)})
			case pairs>>bit&1 == 1:
				list = append(list, Step{Op: opCut, A: uint8(a), B: uint8(b)},
					Step{Op: opReset, A: uint8(a), B: uint8(b)})
			}
		}
	}
	return list
}

// pair numbers two hosts.
func pair(a, b int) int { return min(a, b)*(1+scene.MaxHosts) + max(a, b) }

// enabled reports whether a step can happen now at all.
func (w *World) enabled(s Step) bool {
	p := &w.Procs[s.A]
	alive := p.Brain != nil && !p.Hung
	switch s.Op {
	case opGoOn:
		return p.Hung
	case opHang:
		return alive
	case opPostpone:
		return !w.Waits && w.Script < len(w.Scene.Script)
	case OpLook, opStale:
		return alive && (s.Op == OpLook && !p.Wake.IsZero() || p.Told || w.due(int(s.A)))
	case opLate:
		return alive && !p.Wake.IsZero() && !w.due(int(s.A))
	case opRepeat:
		return alive && !p.Told
	case opForget:
		return alive && p.Told
	case opCrash:
		return p.Brain != nil
	case opRestart:
		return p.Brain == nil && !p.Off
	case opTime:
		_, ok := w.Fabric.Next()
		return ok
	case OpScript:
		return w.Script < len(w.Scene.Script)
	case opLost:
		return !alive && !w.record(s.A).Lost // a hung agent gives no sign of life
	case opOff:
		return !p.Off
	case opAsk:
		return w.record(s.A).Fencing == nil && !w.record(s.A).Fenced
	case opFence:
		return !w.record(s.A).Fenced
	case opOn:
		return p.Off
	case opGive:
		return w.mayGive(int(s.A), int(s.B))
	}
	return true
}

// Fated lists a look with each bad fate of each of its writes and commands.
func (s Step) Fated(effects int, allowed Fault) []Step {
	var list []Step
	for f := Dies; f <= Refused; f++ {
		fated := Step{Op: OpLook, A: s.A, B: uint8(f)}
		for n := 0; n < effects && fated.Fault()&allowed != 0; n++ {
			fated.C = uint8(n)
			list = append(list, fated)
		}
	}
	return list
}

// AnyTime reports whether a step is never out of order: operators who have waited act at
// any time.
func (w *World) AnyTime(s Step) bool { return s.Op == OpScript && w.Waits }

// Spend counts a step that is not the usual one.
func (w *World) Spend(s Step) {
	if s.Odd && w.Odd > 0 {
		w.Odd--
	}
}
