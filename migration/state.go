package migration

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// State is all that is decided about one migration. Only [Config.Step] and its caller's choice
// of a target write it.
type State struct {
	Phase      Phase
	Conditions Conditions
	// Released says that nothing is left to be decided. KubeVirt: its finalizer is gone.
	Released bool `json:",omitempty"`

	Source hypervisor.HostName `json:",omitempty"` // where the VM ran at hand-over
	Target hypervisor.HostName `json:",omitempty"` // chosen with CreateTarget
	// Budget bounds the transfer; 0 leaves it to [Timeouts.Transfer].
	Budget time.Duration `json:",omitempty"`

	Entered  time.Time // when Phase was entered
	Deadline time.Time `json:",omitzero"` // when Phase must have ended
	AbortBy  time.Time `json:",omitzero"` // when a request to abort must be answered
	// Because is the rule that ended it, or made it abort: "conflict" when the host that was
	// asked for refused.
	Because string `json:",omitempty"`
}

// NextStep returns the host whose agent has the next step of a migration that has a target and whose transfer has
// not begun, and in words what it is to do. Otherwise it returns nothing.
func (s *State) NextStep() (host hypervisor.HostName, what string) {
	switch s.Phase {
	case Scheduling:
		return s.Target, "to get ready to receive it"
	case PreparingTarget:
		return s.Target, "to listen for it"
	case TargetReady:
		return s.Source, "to begin to send it"
	}
	return "", ""
}

// Conditions are what holds a migration up, and what was asked of it.
type Conditions struct{ set, stale uint8 }

// A Condition is one of them.
type Condition uint8

// The conditions, with KubeVirt's meaning.
const (
	AbortRequested Condition = 1 << iota
	RejectedByQuota
	BlockedByUtilityVolumes
	BlockedByBackup
	PeerBlocked    // the VM reports that the other cluster cannot be reached
	OutcomeUnknown // the source began and it is not known how it ended
)

var conditionNames = [...]string{"migrationAbortRequested", "migrationRejectedByResourceQuota",
	"migrationBlockedByUtilityVolumes", "migrationBlockedByBackup",
	"decentralizedMigrationBlocked", "migrationOutcomeUnknown"}

// String returns KubeVirt's name of the condition.
func (c Condition) String() string {
	if i := bits.TrailingZeros8(uint8(c)); i < len(conditionNames) && c == 1<<i {
		return conditionNames[i]
	}
	return fmt.Sprintf("Condition(%d)", uint8(c))
}

// MarshalText writes the condition's name.
func (c Condition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the condition's name.
func (c *Condition) UnmarshalText(text []byte) error {
	i := slices.Index(conditionNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("migration: unknown condition %q", text)
	}
	*c = 1 << i
	return nil
}

// Has reports whether c is recorded, holding or not.
// Source: KubeVirt v1.9.0 pkg/controller/conditions.go (HasCondition).
func (cs Conditions) Has(c Condition) bool { return cs.set&uint8(c) != 0 }

// Holds reports whether c is recorded as holding now.
func (cs Conditions) Holds(c Condition) bool { return cs.set&^cs.stale&uint8(c) != 0 }

// With returns cs with c holding.
func (cs Conditions) With(c Condition) Conditions {
	return Conditions{cs.set | uint8(c), cs.stale &^ uint8(c)}
}

// WithStale returns cs with c recorded, but not holding.
func (cs Conditions) WithStale(c Condition) Conditions {
	return Conditions{cs.set | uint8(c), cs.stale | uint8(c)}
}

// Without returns cs without any record of c.
func (cs Conditions) Without(c Condition) Conditions {
	return Conditions{cs.set &^ uint8(c), cs.stale &^ uint8(c)}
}

// Words lists the conditions that hold.
func (cs Conditions) Words() []string {
	var words []string
	for i, name := range conditionNames {
		if cs.Holds(1 << i) {
			words = append(words, name)
		}
	}
	return words
}

// unheld marks the word of a condition that is recorded, and does not hold.
const unheld = "=False"

// recorded lists all conditions that are recorded; those that do not hold are marked.
func (cs Conditions) recorded() []string {
	var words []string
	for i, name := range conditionNames {
		switch c := Condition(1 << i); {
		case cs.Holds(c):
			words = append(words, name)
		case cs.Has(c):
			words = append(words, name+unheld)
		}
	}
	return words
}

// String lists the conditions, those that do not hold as KubeVirt's status False:
// "migrationAbortRequested, migrationBlockedByBackup=False", or "none".
func (cs Conditions) String() string {
	if words := cs.recorded(); len(words) > 0 {
		return strings.Join(words, ", ")
	}
	return "none"
}

// MarshalJSON stores the words of the conditions, those that do not hold with "=False".
func (cs Conditions) MarshalJSON() ([]byte, error) { return json.Marshal(cs.recorded()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (cs *Conditions) UnmarshalJSON(text []byte) error {
	var words []string
	if err := json.Unmarshal(text, &words); err != nil {
		return fmt.Errorf("migration: conditions: %w", err)
	}
	*cs = Conditions{}
	for _, w := range words {
		name, stale := strings.CutSuffix(w, unheld)
		i := slices.Index(conditionNames[:], name)
		switch {
		case i < 0:
			return fmt.Errorf("migration: unknown condition %q", w)
		case stale:
			*cs = cs.WithStale(1 << i)
		default:
			*cs = cs.With(1 << i)
		}
	}
	return nil
}
