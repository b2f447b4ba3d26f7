package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrClosed is the end of a Subscription that was closed.
var ErrClosed = errors.New("closed")

// An Event is something that QEMU tells without having been asked.
type Event struct {
	Name string          // "STOP"
	Data json.RawMessage // as QEMU wrote it, nil if there is none; to be read only
	Time time.Time       // by the clock of QEMU's host; zero if it gave none
}

// A Gap is the place in a sequence of events where some may be missing. It is
// an error so that no listener overlooks it; the events go on after it. More
// than one of its fields may be set.
type Gap struct {
	// Lost is how many events were dropped because the listener was too slow.
	Lost int
	// Ended is why the connection ended, nil if it did not.
	Ended error
	// Renewed reports that the connection was replaced, and that the new one
	// had not ended when the Gap was made: commands may be executed again.
	Renewed bool
}

// Error says what may be missing and why.
func (g *Gap) Error() string {
	var parts []string
	if g.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d events were dropped, the listener is too slow",
			g.Lost))
	}
	if g.Ended != nil {
		parts = append(parts, fmt.Sprintf("the connection ended: %v", g.Ended))
	}
	if g.Renewed {
		parts = append(parts, "the connection was renewed")
	}
	return "events may be missing: " + strings.Join(parts, "; ")
}

// Unwrap returns why the connection ended, if it did.
func (g *Gap) Unwrap() error { return g.Ended }

// add makes one Gap of g and a later one.
func (g *Gap) add(later Gap) {
	g.Lost += later.Lost
	if later.Ended != nil {
		g.Ended, g.Renewed = later.Ended, false
	}
	g.Renewed = g.Renewed || later.Renewed
}

func (g *Gap) empty() bool { return g.Lost == 0 && g.Ended == nil && !g.Renewed }

// A Notice is what waits for a listener: an event, or a gap.
type Notice struct {
	Event Event
	Gap   Gap
}

// size is about what n holds, in bytes.
func (n Notice) size() int { return len(n.Event.Name) + len(n.Event.Data) }

func (n Notice) isEvent() bool { return n.Gap.empty() }

// dropped returns what is left of a notice that a listener does not get.
func (n Notice) dropped() Gap {
	if n.isEvent() {
		return Gap{Lost: 1}
	}
	return n.Gap
}
