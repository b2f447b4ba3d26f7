package evacuation

import (
	"fmt"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// A Strategy says what an eviction does to a VM.
// Source: KubeVirt v1.9.0 api/core/v1/types.go:2767 (EvictionStrategy).
type Strategy uint8

// The strategies. Unset takes the cluster's default.
const (
	Unset                 Strategy = iota
	None                           // the VM may be killed; it is not moved
	LiveMigrate                    // it must be moved
	LiveMigrateIfPossible          // it is moved if it can be, else it may be killed
	External                       // an external controller moves it
)

var strategies = [...]string{"", "None", "LiveMigrate", "LiveMigrateIfPossible", "External"}

// String returns KubeVirt's word; Unset is the empty word.
func (s Strategy) String() string {
	if int(s) >= len(strategies) {
		return fmt.Sprintf("Strategy(%d)", uint8(s))
	}
	return strategies[s]
}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (s Strategy) MarshalText() ([]byte, error) {
	return humanize.Text(s, strategies[:], "eviction strategy")
}

// UnmarshalText reads a word that MarshalText wrote.
func (s *Strategy) UnmarshalText(text []byte) error {
	return humanize.Parse(s, strategies[:], "eviction strategy", text)
}

// UnmarshalJSON reads a word, or the number that versions before stored.
func (s *Strategy) UnmarshalJSON(text []byte) error {
	return humanize.JSON(s, strategies[:], "eviction strategy", text)
}

// ParseStrategy reads KubeVirt's word.
func ParseStrategy(word string) (Strategy, error) {
	for i, w := range strategies {
		if w == word {
			return Strategy(i), nil
		}
	}
	return Unset, fmt.Errorf("unknown eviction strategy %q; use None, LiveMigrate, "+
		"LiveMigrateIfPossible or External", word)
}

// Or returns s, or the cluster's default when s is Unset. When both are Unset
// the VM is not moved.
// Source: KubeVirt v1.9.0 pkg/util/migrations/migrations.go (VMIEvictionStrategy).
func (s Strategy) Or(cluster Strategy) Strategy {
	if s == Unset {
		return cluster
	}
	return s
}
