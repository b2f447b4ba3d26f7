package guest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A HeartbeatLog is what a HeartbeatListener has heard of one VM so far, from all its processes
// together.
type HeartbeatLog struct {
	Boots    int       // how often the guest has booted
	Ready    bool      // its memory is filled: it beats
	Off      bool      // the power button reached it; it powered itself off
	Beats    int64     // heartbeats
	Last     time.Time // the last heartbeat; zero if there is none
	From     string    // the process that sent it
	Gap      Gap       // the largest since the last Mark
	Move     Gap       // the last one over which the guest moved to another process
	Holes    int64     // heartbeats missing in the sequence
	Repeats  int64     // times that the sequence went back: the guest ran twice
	Returns  int64     // times that a process beat again after another had: the same
	Errors   int64     // heartbeats that reported a memory error
	Unknown  int64     // bytes that no guest sends
	Troubles []Problem // the first 16 of all of these
}

// A Gap is the time between two heartbeats that follow one another. The guest's
// own pace is part of it.
type Gap struct {
	Length     time.Duration
	Begin, End time.Time
	From, To   string // the processes that sent the two: they differ over a move
}

// A Problem is one thing that must not happen.
type Problem struct {
	At      time.Time
	Process string
	What    string
}

// maxTroubles bounds what is kept of a guest that has gone wild.
const maxTroubles = 16

// Check returns why the guest has not run exactly once and undamaged, or nil.
// The sequence counts modulo 64: a hole or a repetition of just 64 heartbeats
// is not seen.
func (r HeartbeatLog) Check() error {
	var why []error
	for _, t := range r.Troubles {
		why = append(why, fmt.Errorf("guest: %s at %s: %s", t.Process,
			t.At.Format("15:04:05.000000"), t.What))
	}
	return errors.Join(why...)
}

// Twice returns why the guest has run twice: a process beat again after another had, or repeated
// what another had done already. Nil is that it has not, so far as was heard; that heartbeats are
// missing is no proof.
func (r HeartbeatLog) Twice() error {
	if r.Returns+r.Repeats == 0 {
		return nil
	}
	return fmt.Errorf("guest: %d returns, %d repeats: %w", r.Returns, r.Repeats, r.Check())
}

// A ledger turns bytes into a HeartbeatLog. It needs them in the order in which they
// were sent, those of different processes too.
type ledger struct {
	now     HeartbeatLog
	next    byte // the low bits of the next heartbeat's number
	known   bool // next is known
	retired map[string]bool
	anew    string // how the name begins of a process that is started anew; "" is none
}

// renew says that the guest is started anew by a process that was not heard before.
func (l *ledger) renew(process string) {
	l.anew = process
	l.now.Ready, l.now.Off = false, false
}

func (l *ledger) hear(process string, at time.Time, code byte) {
	if l.anew != "" && strings.HasPrefix(process, l.anew) && !l.retired[process] &&
		process != l.now.From {
		l.anew, l.known = "", false
	}
	switch code {
	case booted:
		l.now.Boots++
		l.now.Ready, l.now.Off = false, false
		l.next, l.known = 1, true
	case ready:
		l.now.Ready = true
	case Off:
		l.now.Off = true
	case Bad:
		l.now.Errors++
		l.trouble(process, at, "the guest found its memory damaged")
	default:
		if code&^beatMask != Beat {
			l.now.Unknown++
			l.trouble(process, at, fmt.Sprintf("sent %#02x, which no guest does", code))
			return
		}
		l.beat(process, at, code&beatMask)
	}
}

func (l *ledger) beat(process string, at time.Time, number byte) {
	l.now.Ready = true // heard late, only the beats tell
	l.judgeProcess(process, at)
	l.judgeNumber(process, at, number)
	if !l.now.Last.IsZero() {
		gap := Gap{at.Sub(l.now.Last), l.now.Last, at, l.now.From, process}
		if gap.Length > l.now.Gap.Length {
			l.now.Gap = gap
		}
		if gap.From != gap.To {
			l.now.Move = gap
		}
	}
	l.now.Beats++
	l.now.Last, l.now.From = at, process
}

// judgeProcess notes a process that beats after another one has taken over.
func (l *ledger) judgeProcess(process string, at time.Time) {
	if l.now.From == process || l.now.Beats == 0 {
		return
	}
	if l.retired == nil {
		l.retired = map[string]bool{}
	}
	l.retired[l.now.From] = true
	if l.retired[process] {
		l.now.Returns++
		l.trouble(process, at, fmt.Sprintf("beats again after %s did: two run", l.now.From))
	}
}

func (l *ledger) judgeNumber(process string, at time.Time, number byte) {
	ahead := (number - l.next) & beatMask
	switch {
	case !l.known || ahead == 0:
	case ahead <= beatMask/2:
		l.now.Holes += int64(ahead)
		l.trouble(process, at, fmt.Sprintf("%d heartbeats are missing", ahead))
	default:
		l.now.Repeats++
		back := beatMask + 1 - ahead
		l.trouble(process, at, fmt.Sprintf("repeats from %d heartbeats ago: it ran twice", back))
	}
	l.next, l.known = (number+1)&beatMask, true
}

func (l *ledger) trouble(process string, at time.Time, what string) {
	if len(l.now.Troubles) < maxTroubles {
		l.now.Troubles = append(l.now.Troubles, Problem{at, process, what})
	}
}
