package evacuation

import (
	"fmt"

	"github.com/godwit-vm/godwit/migration/placement"
)

// A rule keeps a VM that must leave from getting a migration.
type rule struct {
	check  string                   // the Reason's name of it
	need   string                   // what it asks for
	holds  func(Params, *VM) bool   // the VM stays
	have   func(Params, *VM) string // what there is instead
	blocks bool                     // the VM must leave all the same
}

// rules are asked in this order; the first that holds says what becomes of the
// VM, all that hold are its reasons.
// Source: KubeVirt v1.9.0 evacuation.go:438-477 (filterRunningNonMigratingVMIs).
var rules = [...]rule{
	{"phase", "unfinished", final, always("ended"), false},
	{"deletion", "none", deleting, always("asked for"), false},
	{"stop", "a VM that is to run", stopping, always("it is to be shut down"), false},
	{"state", "a VM that runs", between, always("it starts, stops or is resized"), false},
	{strategyRule, "LiveMigrate or LiveMigrateIfPossible", unwilling, strategyOf, false},
	{ifPossibleRule, "a migratable VM", expendable, whyNot, false},
	{"migratable", "yes", stuck, whyNot, true},
	{"migrations", "none unfinished", moving, always("one unfinished"), false},
	{"instances", "at most 1", doubled, instances, false},
	{"held", "a VM that can migrate now", held, whatHolds, false},
}

// The rules of VMs that may be killed.
const (
	strategyRule   = "strategy"
	ifPossibleRule = "if-possible"
)

// stays returns the first rule that keeps g on the host, or nil.
func stays(p Params, g *VM) *rule {
	for i := range rules {
		if rules[i].holds(p, g) {
			return &rules[i]
		}
	}
	return nil
}

// reasons returns every reason why g stays.
func reasons(p Params, g *VM) []placement.Reason {
	var why []placement.Reason
	for _, r := range rules {
		if r.holds(p, g) {
			why = append(why, placement.Reason{Check: r.check, Need: r.need, Have: r.have(p, g)})
		}
	}
	return why
}

// marked reports whether g alone was asked to leave h, and is not on its way.
// Source: KubeVirt v1.9.0 evacuation.go:326 (getMarkedForEvictionVMIs).
func marked(h Host, g *VM) bool {
	return g.EvacuateFrom != "" && g.EvacuateFrom == h.Name && !g.Migrating
}

// final: the VM has ended; nothing of it is left to move.
// Source: KubeVirt v1.9.0 evacuation.go:438-477 (filterRunningNonMigratingVMIs).
func final(_ Params, g *VM) bool { return g.Final }

// deleting: the VM will be gone soon anyway.
// Source: KubeVirt v1.9.0 evacuation.go:438-477 (filterRunningNonMigratingVMIs).
func deleting(_ Params, g *VM) bool { return g.Deleting }

// stopping: the VM will be off soon, and a stopped VM needs no migration.
// Source: KubeVirt v1.9.0 evacuation.go:438-477 (a VM is stopped by deleting its VMI).
func stopping(_ Params, g *VM) bool { return g.Stopping }

// between: the hypervisor would refuse to send it now.
// Source: godwit; a VMI that is not Running gets no migration in KubeVirt v1.9.0
// (migration-create-admitter.go), either.
func between(_ Params, g *VM) bool { return g.Between && !g.Final }

// unwilling: no strategy has godwit move the VM. A strategy that is not known
// moves nothing; v0.59 knows LiveMigrate only.
// Source: KubeVirt v1.9.0 and v0.59.0 pkg/util/migrations/migrations.go
// (VMIMigratableOnEviction).
func unwilling(p Params, g *VM) bool {
	switch g.Strategy.Or(p.Strategy) {
	case LiveMigrate:
		return false
	case LiveMigrateIfPossible:
		return p.Mode == FreeSpotsV059
	}
	return true
}

// expendable: the VM would move if it could; as it cannot, it may be killed.
// Source: KubeVirt v1.9.0 migrations.go (VMIMigratableOnEviction).
func expendable(p Params, g *VM) bool {
	return g.Strategy.Or(p.Strategy) == LiveMigrateIfPossible && !g.Migratable
}

// stuck: the VM must move and cannot: it blocks the drain until an operator acts.
// Source: KubeVirt v1.9.0 evacuation.go:456 (filterRunningNonMigratingVMIs).
func stuck(p Params, g *VM) bool {
	return g.Strategy.Or(p.Strategy) == LiveMigrate && !g.Migratable
}

// moving: one unfinished migration of a VM is enough, for whatever reason it was requested.
// Source: KubeVirt v1.9.0 evacuation.go:438-477 (filterRunningNonMigratingVMIs).
func moving(_ Params, g *VM) bool { return g.Moving }

// doubled: an old copy of the VM still has to be cleared away. A VM without
// any copy is not held back: its migration will wait or fail for itself.
// Source: KubeVirt v1.9.0 evacuation.go:438-477 (filterRunningNonMigratingVMIs).
func doubled(_ Params, g *VM) bool { return g.Instances > 1 }

// held: a migration of it would wait, and keep its place from a VM that can leave now. KubeVirt
// creates it, and with few places a backup keeps all VMs of the host where they are.
// Source: godwit.
func held(p Params, g *VM) bool { return g.Held != "" && !p.Compatible }

func whatHolds(_ Params, g *VM) string { return g.Held }

func always(text string) func(Params, *VM) string {
	return func(Params, *VM) string { return text }
}

func strategyOf(p Params, g *VM) string {
	if s := g.Strategy.Or(p.Strategy); s != Unset {
		return s.String()
	}
	return "no strategy"
}

func whyNot(_ Params, g *VM) string {
	if g.NotMigratableReason == "" {
		return "no"
	}
	return "no: " + g.NotMigratableReason
}

func instances(_ Params, g *VM) string { return fmt.Sprint(g.Instances) }
