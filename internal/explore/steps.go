package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Op is a kind of step.
type Op uint8

// The kinds of steps, and their arguments. A process is the controller, 0, or that of a host.
const (
	Look     Op = iota // A: process; B: fate; C: of which write or command
	Stale              // A: process
	Late               // A: process, although another's time comes first
	Repeat             // A: process
	Forget             // A: process
	Crash              // A: process
	Restart            // A: process
	Time               // something happens in a hypervisor
	Script             // an operator does what is next in the script
	Postpone           // operators wait until nothing else is to be done
	Hang               // A: process
	GoOn               // A: process
	Kill               // A: process (its host), B: VM
	Cut                // A, B: processes
	Heal               // A, B
	Reset              // A, B
	Lost               // A: process
	Off                // A
	Ask                // A
	Fence              // A
	On                 // A
	Give               // A: process (its host), B: VM
	Word               // A: process (its host)
	Empty              // A: process (its host)
	Return             // A: process (its host)
	Adopt              // A: process (its host)
	Lapse              // A: process (its host)
	SetBack            // the store is as it was at the beginning
	Admit              // A: process (its host)
	Ops                // how many kinds there are
)

// A Step is one thing that happens.
type Step struct {
	Op      Op
	A, B, C uint8
	Odd     bool // it is no fault, and another would be usual
}

// A Fault is a kind of fault.
type Fault uint16

// The kinds of faults.
const (
	Crashes     Fault = 1 << iota   // a process dies, before any write or command
	LostAnswers                     // a write or a command takes effect without an answer
	Refusals                        // a write or a command is refused
	StaleViews                      // a participant sees nothing new in the store
	LostHints                       // a notification is lost
	Repeats                         // a participant looks twice
	Delays                          // a participant hangs for long, or a later one's time is first
	Kills                           // a VM's process dies
	Cuts                            // a link is cut, and heals at any time, or never
	Resets                          // connections between two hosts are closed
	Power                           // a host loses its power, or is fenced, and may return
	AllFaults   Fault = 1<<iota - 1 // every kind but the mistakes of people
)

// The mistakes of people.
const (
	Words       Fault = AllFaults + 1 // an operator says that a host is off, and it is not
	Directories Fault = 2 * Words     // an agent's directory is emptied
	Backups     Fault = 4 * Words     // the store is set back
	Mistakes          = Words | Directories | Backups
)

// words write a step; %a and so on are its arguments: process, VM, number.
var words = [Ops]struct {
	name  string
	args  string // p: a process, h: a host's, v: a VM
	fault Fault  // what it costs; 0 is nothing
}{
	Look: {"look", "p", 0}, Stale: {"look-stale", "p", StaleViews},
	Late: {"look-first", "p", Delays}, Repeat: {"look-again", "p", Repeats},
	Forget: {"lose-hint", "p", LostHints}, Crash: {"crash", "p", Crashes},
	Restart: {"restart", "p", 0}, Time: {"time", "", 0}, Script: {"operator", "", 0},
	Postpone: {"operator-waits", "", 0}, Hang: {"hang", "p", Delays},
	GoOn: {"go-on", "p", 0},
	Kill: {"kill", "hv", Kills}, Cut: {"cut", "hh", Cuts}, Heal: {"heal", "hh", 0},
	Reset: {"reset", "hh", Resets}, Lost: {"call-lost", "h", 0},
	Off: {"power-off", "h", Power}, Ask: {"fencing-begins", "h", Power},
	Fence: {"fence", "h", Power},
	On:    {"power-on", "h", 0}, Give: {"rebuild", "hv", 0},
	Word:  {"false-word", "h", Words},
	Empty: {"empty-directory", "h", Directories}, Return: {"return-directory", "h", 0},
	Adopt: {"adopt", "h", 0}, Lapse: {"lease-ends", "h", Delays},
	SetBack: {"set-back", "", Backups}, Admit: {"admit", "h", 0},
}

// A WriteResult is the result of one write or command of a look.
type WriteResult uint8

// The writeResults.
const (
	Well       WriteResult = iota
	Dies                   // the process dies before it
	Unanswered             // it takes effect, and no answer comes
	Refused                // it takes no effect
)

var writeResults = [...]string{Well: "", Dies: "dies-before", Unanswered: "unanswered",
	Refused: "refused"}

// Fault is what a step costs.
func (s Step) Fault() Fault {
	if s.Op == Look {
		return [...]Fault{Well: 0, Dies: Crashes, Unanswered: LostAnswers,
			Refused: Refusals}[s.B]
	}
	return words[s.Op].fault
}

// Write returns a step as a line of the transcript of a scene.
func (s Step) Write(set *Scene) string {
	text := words[s.Op].name
	for i, kind := range words[s.Op].args {
		arg := [...]uint8{s.A, s.B}[i]
		if kind == 'v' {
			text += " " + string(set.VMs[arg].Name)
		} else {
			text += " " + who(set, int(arg))
		}
	}
	if s.Op == Look && WriteResult(s.B) != Well {
		text += fmt.Sprintf(" %s=%d", writeResults[s.B], s.C+1)
	}
	return text
}

// Read reads a line that [Step.Write] wrote. The error says which word is wrong.
func Read(set *Scene, line string) (Step, error) {
	f := strings.Fields(line)
	for o := range Ops {
		args := words[o].args
		if len(f) == 0 || f[0] != words[o].name || len(f) < 1+len(args) {
			continue
		}
		s := Step{Op: o}
		for i, kind := range args {
			n, err := argument(set, f[1+i], kind)
			if err != nil {
				return s, err
			}
			*[...]*uint8{&s.A, &s.B}[i] = n
		}
		return s, s.readFate(f[1+len(args):])
	}
	return Step{}, fmt.Errorf("%q is no step", line)
}

func argument(set *Scene, text string, kind rune) (uint8, error) {
	n := set.hostIndex(text) + 1
	switch {
	case kind == 'v':
		if n = set.vmIndex(text); n < 0 {
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
	i := slices.Index(writeResults[:], name)
	if i <= 0 || err != nil || n == 0 || s.Op != Look || len(f) > 1 {
		return fmt.Errorf("%q: write dies-before=N, unanswered=N or refused=N",
			strings.Join(f, " "))
	}
	s.B, s.C = uint8(i), uint8(n-1)
	return nil
}

// Fated lists a look with each bad fate of each of its writes and commands.
func (s Step) Fated(effects int, allowed Fault) []Step {
	var list []Step
	for f := Dies; f <= Refused; f++ {
		fated := Step{Op: Look, A: s.A, B: uint8(f)}
		for n := 0; n < effects && fated.Fault()&allowed != 0; n++ {
			fated.C = uint8(n)
			list = append(list, fated)
		}
	}
	return list
}

// who returns the name of a process.
func who(set *Scene, p int) string {
	if p == 0 {
		return "controller"
	}
	return string(set.Hosts[p-1].Name)
}
