package config

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What stands in a fault's event for a name that is drawn; of one kind no name is
// drawn twice for the same event.
const (
	anyHost = "any-host"
	anyVM   = "any-vm"
)

// A Fault is an event that may come, once or several times.
type Fault struct {
	Chance float64       // that each of them comes
	Times  int           // how often it may come
	Within time.Duration // when: at any time before this, all equally likely
	Event  []string      // its words
}

// ParseFault reads a fault: HOW-OFTEN within TIME EVENT. How often is a chance,
// 10%, or a number of times, 3x. The duration is read by the function.
func ParseFault(text string, duration func(string) (time.Duration, error)) (Fault, error) {
	words := strings.Fields(text)
	if len(words) < 4 || words[1] != "within" {
		return Fault{}, fmt.Errorf("%q is no fault: "+
			"write 10%% within 1h EVENT, or 3x within 1h EVENT", text)
	}
	f := Fault{Chance: 1, Times: 1, Event: words[3:]}
	if percent, is := strings.CutSuffix(words[0], "%"); is {
		p, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(p > 0 && p <= 100) {
			return Fault{}, fmt.Errorf("%q is no chance: write 10%%", words[0])
		}
		f.Chance = p / 100
	} else {
		count, is := strings.CutSuffix(words[0], "x")
		n, err := strconv.Atoi(count)
		if !is || err != nil || n < 1 || n > 10_000 {
			return Fault{}, fmt.Errorf("%q says not how often: write 10%%, or 3x", words[0])
		}
		f.Times = n
	}
	var err error
	if f.Within, err = duration(words[2]); err == nil && f.Within <= 0 {
		err = fmt.Errorf("within %s: the time must be above 0", words[2])
	}
	return f, err
}

// An Event is when something happens, in words that have no drawn names any more.
type Event struct {
	At   time.Duration // in whole milliseconds
	Text string
}

// Draw returns the events that come, and when. An error says that too few hosts
// or VMs have names to be drawn.
func (f Fault) Draw(r *rand.Rand, hosts, vms []string) ([]Event, error) {
	var events []Event
	for range f.Times {
		comes := r.Float64() < f.Chance
		at := time.Duration(r.Int64N(int64(f.Within))).Truncate(time.Millisecond)
		text, err := f.text(r, hosts, vms)
		if err != nil {
			return nil, err
		}
		if comes {
			events = append(events, Event{at, text})
		}
	}
	return events, nil
}

// text draws the event's names.
func (f Fault) text(r *rand.Rand, hosts, vms []string) (string, error) {
	words := slices.Clone(f.Event)
	for i, word := range words {
		from := hosts
		switch word {
		case anyVM:
			from = vms
		case anyHost:
		default:
			continue
		}
		left := slices.DeleteFunc(slices.Clone(from), func(name string) bool {
			return slices.Contains(words[min(1, i):i], name)
		})
		if len(left) == 0 {
			return "", errors.New(word + ": there are too few to draw from")
		}
		words[i] = left[r.IntN(len(left))]
	}
	return strings.Join(words, " "), nil
}
