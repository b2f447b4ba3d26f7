package evacuation

import (
	"cmp"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Unmovable says what a drain does with the VMs that it cannot migrate.
//
// It concerns VMs whose strategy lets them be killed: None, no strategy at all, and
// LiveMigrateIfPossible where the VM cannot migrate. LiveMigrate protects a VM that cannot
// migrate, which blocks the drain, and External leaves a VM to another controller: whatever is chosen,
// neither is shut down.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:86-217.
type Unmovable uint8

// The choices.
const (
	// ByStrategy does as KubeVirt: a VM with LiveMigrateIfPossible that cannot migrate is evicted,
	// so it is restarted elsewhere. One with None is kept: the evacuation controller does not
	// touch it.
	// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:148, evacuation.go:438.
	ByStrategy Unmovable = iota
	// Keep leaves them where they are.
	Keep
	// ShutDown shuts them down. They stay off until the drain is withdrawn or an operator starts them.
	ShutDown
	// Restart shuts them down and starts them on another host. A VM that no other host takes
	// is kept until one does.
	Restart
)

var unmovables = [...]string{"", "Keep", "ShutDown", "Restart"}

// String returns the word for the choice; ByStrategy is the empty word.
func (u Unmovable) String() string { return word(unmovables[:], "Unmovable", uint8(u)) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (u Unmovable) MarshalText() ([]byte, error) {
	if int(u) >= len(unmovables) {
		return nil, fmt.Errorf("%v is no choice", u)
	}
	return []byte(u.String()), nil
}

// UnmarshalText reads a word that MarshalText wrote.
func (u *Unmovable) UnmarshalText(text []byte) (err error) {
	*u, err = ParseUnmovable(string(text))
	return err
}

// ParseUnmovable reads the word for a choice.
func ParseUnmovable(text string) (Unmovable, error) {
	for i, w := range unmovables {
		if w == text {
			return Unmovable(i), nil
		}
	}
	return ByStrategy, fmt.Errorf("unknown choice %q for VMs that cannot be migrated; use Keep, "+
		"ShutDown or Restart", text)
}

// Terms are the terms of a drain. The zero value is the default of all.
type Terms struct {
	OnUnmovable Unmovable `json:",omitempty"`
	// Grace is how long a guest has to shut down before it is killed. Default: the agent's,
	// one minute.
	Grace time.Duration `json:",omitempty"`
}

// Or returns t, with what it does not say as in others.
func (t Terms) Or(others Terms) Terms {
	return Terms{cmp.Or(t.OnUnmovable, others.OnUnmovable), cmp.Or(t.Grace, others.Grace)}
}

// A Stop asks for a VM to be shut down, since it cannot be migrated.
type Stop struct {
	VM      hypervisor.VMID
	Restart bool          // and started on another host
	Grace   time.Duration // as in [Terms]
	Why     string        // what becomes of the VM and why, for people
}

// Unmovable returns what a drain with these terms, or the cluster's, does with a VM that it does not
// migrate: Keep, ShutDown or Restart. Keep is also for a VM that it migrates.
func (p Params) Unmovable(t Terms, strategy Strategy, migratable bool) Unmovable {
	choice := t.Or(p.Terms).OnUnmovable
	switch strategy.Or(p.Strategy) {
	case LiveMigrateIfPossible:
		if migratable && p.Mode != FreeSpotsV059 {
			return Keep
		}
		if choice == ByStrategy {
			return Restart
		}
	case None, Unset:
		if choice == ByStrategy {
			return Keep
		}
	default:
		return Keep
	}
	if choice > Restart {
		return Keep
	}
	return choice
}

// stop asks for a VM that stays by a rule to be shut down; false is that it is kept. The reason
// says so in either case. While something else keeps the VM, nothing is asked for yet.
func (p Params) stop(h Host, g *VM, r *rule) (s Stop, why *placement.Reason, now bool) {
	if r.check != strategyRule && r.check != ifPossibleRule {
		return Stop{}, nil, false
	}
	t := h.Terms.Or(p.Terms)
	fate := p.Unmovable(t, g.Strategy, g.Migratable)
	if fate == Keep {
		return Stop{}, nil, false
	}
	why = &placement.Reason{Check: "drain", Need: "an empty host", Have: fate.does(t, g)}
	return Stop{g.ID, fate == Restart, t.Grace, why.Have}, why, !g.Moving && g.Instances <= 1
}

// does says what becomes of a VM.
func (u Unmovable) does(t Terms, g *VM) string {
	text := "will be shut down"
	if u == Restart {
		text += " and started elsewhere"
	}
	switch {
	case g.Migratable:
		text += ": its eviction strategy does not migrate it"
	case g.NotMigratableReason != "":
		text += ": it cannot be migrated (" + g.NotMigratableReason + ")"
	default:
		text += ": it cannot be migrated"
	}
	if t.Grace > 0 {
		text += "; grace " + humanize.Span(t.Grace.Seconds())
	}
	return text
}
