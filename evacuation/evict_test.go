package evacuation_test

import (
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	gocmp "github.com/google/go-cmp/cmp"
)

// The answers to a look-up, shortened for the tables.
const found, missing, unreadable = evacuation.Found, evacuation.NotFound, evacuation.Unreadable

// evictRow is a row of a table test of Evict.
type evictRow struct {
	name string
	e    evacuation.Eviction
	want evacuation.EvictionDecision
}

// compute is an eviction of a movable VM from its home, changed.
func compute(change func(*evacuation.Eviction)) evacuation.Eviction {
	e := evacuation.Eviction{Instance: evacuation.Compute, On: "n1", Home: "n1",
		Strategy: evacuation.LiveMigrate, Migratable: true}
	change(&e)
	return e
}

func attachment(owner, vm evacuation.Lookup, ended bool) evacuation.Eviction {
	return evacuation.Eviction{Instance: evacuation.Attachment, Owner: owner, VM: vm, Ended: ended}
}

func allow(c evacuation.Cause) evacuation.EvictionDecision {
	return evacuation.EvictionDecision{Allow: true, Cause: c}
}

func deny(c evacuation.Cause) evacuation.EvictionDecision {
	return evacuation.EvictionDecision{Cause: c}
}

func TestEvictLooksAtTheInstanceFirst(t *testing.T) {
	checkEvict(t, []evictRow{
		{"an instance that cannot be read may go",
			compute(func(e *evacuation.Eviction) { e.Seen = unreadable }),
			allow(evacuation.InstanceUnknown)},
		{"an instance that is gone may go",
			compute(func(e *evacuation.Eviction) { e.Seen = missing }),
			allow(evacuation.InstanceUnknown)},
		{"an attachment of a running VM stays", attachment(found, found, false),
			deny(evacuation.AttachmentInUse)},
		{"an attachment whose owner is gone may go", attachment(missing, found, false),
			allow(evacuation.AttachmentUnused)},
		{"an attachment whose owner has ended may go", attachment(found, found, true),
			allow(evacuation.AttachmentUnused)},
		{"an attachment whose VM is gone may go", attachment(found, missing, false),
			allow(evacuation.AttachmentUnused)},
		{"an attachment stays while its owner cannot be read",
			attachment(unreadable, missing, false), deny(evacuation.AttachmentUnclear)},
		{"an attachment stays while its VM cannot be read",
			attachment(found, unreadable, false), deny(evacuation.AttachmentUnclear)},
		{"what is no VM may go", evacuation.Eviction{Instance: evacuation.Foreign}, allow(evacuation.NotAVM)},
		{"an instance that has ended may go",
			compute(func(e *evacuation.Eviction) { e.Ended = true }),
			allow(evacuation.InstanceEnded)},
		{"a VM that cannot be read stays",
			compute(func(e *evacuation.Eviction) { e.VM = unreadable }),
			deny(evacuation.VMUnknown)},
		{"a VM that is not found stays",
			compute(func(e *evacuation.Eviction) { e.VM = missing }),
			deny(evacuation.VMUnknown)},
	})
}

func TestEvictOfAVM(t *testing.T) {
	triggered := evacuation.EvictionDecision{Cause: evacuation.EvacuationTriggered, EvacuateFrom: "n1"}
	checkEvict(t, []evictRow{
		{"a VM without a strategy may be killed",
			compute(func(e *evacuation.Eviction) { e.Strategy = evacuation.Unset }),
			allow(evacuation.Unprotected)},
		{"a VM with the strategy None may be killed",
			compute(func(e *evacuation.Eviction) { e.Strategy = evacuation.None }),
			allow(evacuation.Unprotected)},
		{"a VM that must move and cannot stays",
			compute(func(e *evacuation.Eviction) { e.Migratable = false }),
			deny(evacuation.CannotMove)},
		{"a VM that moves only if possible may be killed when it is not",
			compute(func(e *evacuation.Eviction) {
				e.Strategy, e.Migratable = evacuation.LiveMigrateIfPossible, false
			}), allow(evacuation.MayBeKilled)},
		{"a marked VM is on its way, whichever host the mark names",
			compute(func(e *evacuation.Eviction) { e.EvacuateFrom = "n9" }),
			deny(evacuation.AlreadyMarked)},
		{"a mark is the answer for the target of its own migration, too",
			compute(func(e *evacuation.Eviction) { e.EvacuateFrom, e.On = "n1", "n2" }),
			deny(evacuation.AlreadyMarked)},
		{"the target of a migration stays",
			compute(func(e *evacuation.Eviction) { e.On = "n2" }),
			deny(evacuation.EvictsTarget)},
		{"a movable VM is marked",
			compute(func(*evacuation.Eviction) {}), triggered},
		{"a movable VM that moves only if possible is marked",
			compute(func(e *evacuation.Eviction) { e.Strategy = evacuation.LiveMigrateIfPossible }),
			triggered},
		{"an external VM is marked even if it cannot move",
			compute(func(e *evacuation.Eviction) {
				e.Strategy, e.Migratable = evacuation.External, false
			}), triggered},
		{"the descheduler's eviction is recorded as such",
			compute(func(e *evacuation.Eviction) { e.Descheduler = true }),
			evacuation.EvictionDecision{Cause: evacuation.EvacuationTriggered, EvacuateFrom: "n1",
				Descheduled: true}},
		{"a dry run writes nothing",
			compute(func(e *evacuation.Eviction) { e.Descheduler, e.DryRun = true, true }),
			deny(evacuation.EvacuationTriggered)},
	})
}

func checkEvict(t *testing.T, rows []evictRow) {
	t.Helper()
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			got := evacuation.Evict(evacuation.Params{}, tt.e)
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Every combination: an instance of a living VM whose strategy protects it is
// never allowed to be killed, and a mark is written only where one was missing.
func TestAProtectedVMIsNeverKilled(t *testing.T) {
	everyEviction(func(e evacuation.Eviction) {
		for cluster := range evacuation.External + 2 { // also one that is not known
			v := evacuation.Evict(evacuation.Params{Strategy: cluster}, e)
			strategy := e.Strategy.Or(cluster)
			alive := e.Instance == evacuation.Compute && e.Seen == evacuation.Found && !e.Ended
			protected := strategy == evacuation.LiveMigrate || strategy == evacuation.External ||
				strategy == evacuation.LiveMigrateIfPossible && e.Migratable
			if alive && protected && v.Allow {
				t.Fatalf("%+v may be killed: %+v", e, v)
			}
			if v.EvacuateFrom != "" && (v.Allow || e.DryRun || e.EvacuateFrom != "" || v.EvacuateFrom != e.Home) {
				t.Fatalf("%+v is marked: %+v", e, v)
			}
			if v.Allow != (v.Message("default/a") == "") {
				t.Fatalf("%+v says %q", v, v.Message("default/a"))
			}
		}
	})
}

// Who fills in an Eviction and forgets what the instance is gets a denial with words.
func TestAnEvictionThatSaysNothingIsDenied(t *testing.T) {
	v := evacuation.Evict(evacuation.Params{}, evacuation.Eviction{})
	if v.Allow || v.EvacuateFrom != "" || v.Message("default/web") == "" {
		t.Errorf("came to %+v, message %q", v, v.Message("default/web"))
	}
}

func everyEviction(visit func(evacuation.Eviction)) {
	bit := func(n, i int) bool { return n>>i&1 == 1 }
	for n := range 1 << 6 {
		for lookups := range 27 {
			for kind := range evacuation.Attachment + 1 {
				for strategy := range evacuation.External + 2 {
					e := evacuation.Eviction{Instance: kind, Strategy: strategy,
						Seen:  evacuation.Lookup(lookups % 3),
						Owner: evacuation.Lookup(lookups / 3 % 3),
						VM:    evacuation.Lookup(lookups / 9),
						Ended: bit(n, 0), Migratable: bit(n, 1), Descheduler: bit(n, 2),
						DryRun: bit(n, 3), On: "n1", Home: "n1"}
					if bit(n, 4) {
						e.Home = "n2"
					}
					if bit(n, 5) {
						e.EvacuateFrom = "n1"
					}
					visit(e)
				}
			}
		}
	}
}

func TestTheWordsThatTheDeschedulerKnows(t *testing.T) {
	const vm hypervisor.VMID = "default/web"
	tests := []struct {
		name  string
		cause evacuation.Cause
		want  string
	}{
		{"of an evacuation that starts", evacuation.EvacuationTriggered,
			`Eviction triggered evacuation of VMI "default/web"`},
		{"of one that goes on", evacuation.AlreadyMarked,
			`Evacuation in progress: Eviction triggered evacuation of VMI "default/web"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (evacuation.EvictionDecision{Cause: tt.cause}).Message(vm); got != tt.want {
				t.Errorf("Message = %q, want %q", got, tt.want)
			}
		})
	}
}
