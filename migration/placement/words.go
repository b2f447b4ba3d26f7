package placement

import (
	"fmt"
	"strconv"
)

// Force is what a request says about force. The zero value is Absent, which is
// not the same as No for older clients.
type Force uint8

// The three values of force.
const (
	Absent Force = iota
	No
	Yes
)

// ForceOf returns the value of an optional flag; nil is Absent.
func ForceOf(flag *bool) Force {
	switch {
	case flag == nil:
		return Absent
	case *flag:
		return Yes
	}
	return No
}

// String names the value.
func (f Force) String() string {
	switch f {
	case Absent:
		return "absent"
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "invalid"
}

// MarshalText stores a word, so that renumbering cannot corrupt the past.
func (f Force) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the word, and refuses what is none.
func (f *Force) UnmarshalText(text []byte) error {
	for _, known := range []Force{Absent, No, Yes} {
		if string(text) == known.String() {
			*f = known
			return nil
		}
	}
	return fmt.Errorf("%q is no force: want absent, no or yes", text)
}

// An Outcome is how a request ended.
type Outcome string

// The outcomes. Only Accepted has a target.
const (
	Accepted   Outcome = "accepted"
	Conflict   Outcome = "conflict"    // the host that was asked for refuses
	NoHost     Outcome = "no-host"     // every host refuses
	BadRequest Outcome = "bad-request" // the request makes no sense
)

// A Code says what kind of thing stands in the way of a target.
type Code string

// The codes, from what never changes to what may.
const (
	BadInput      Code = "bad-input"
	Incompatible  Code = "incompatible" // physics
	PolicyRefused Code = "policy"
	CapacityLacks Code = "capacity" // time may cure it
)

// An Action is what is recorded with a VM whose target was forced.
type Action string

// The actions, as the Nova specification names them; Bypassed is what an older
// client does without saying so.
const (
	ForcedMigrate Action = "ForcedMigrate"
	ForcedRebuild Action = "ForcedRebuild"
	Bypassed      Action = "Bypassed"
)

func plural(hosts int) string {
	if hosts == 1 {
		return "1 host"
	}
	return strconv.Itoa(hosts) + " hosts"
}
