package evacuation

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// An Instance is what is to be evicted: the copy of a VM on one host,
// or a companion of it.
type Instance uint8

// The instances.
const (
	// Unclassified is the zero value: what the instance is was not said. Its eviction is
	// denied, since a VM may run in it.
	Unclassified Instance = iota
	// Foreign: no VM runs in it, or it does not say which.
	Foreign
	// Compute: the VM runs in it.
	Compute
	// Attachment: it holds volumes that were plugged into a running VM.
	Attachment
)

var instanceWords = [...]string{"Unclassified", "Foreign", "Compute", "Attachment"}

// String returns the kind of instance's word.
func (i Instance) String() string { return humanize.String(i, instanceWords[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (i Instance) MarshalText() ([]byte, error) {
	return humanize.Text(i, instanceWords[:], "kind of instance")
}

// UnmarshalText reads a word that MarshalText wrote.
func (i *Instance) UnmarshalText(text []byte) error {
	return humanize.Parse(i, instanceWords[:], "kind of instance", text)
}

// A Lookup is how a question to the cluster ended.
type Lookup uint8

// The outcomes of a lookup.
const (
	Found Lookup = iota
	NotFound
	Unreadable // the question failed; it may exist
)

var lookups = [...]string{"Found", "NotFound", "Unreadable"}

// String returns the outcome of a lookup's word.
func (l Lookup) String() string { return humanize.String(l, lookups[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (l Lookup) MarshalText() ([]byte, error) {
	return humanize.Text(l, lookups[:], "outcome of a lookup")
}

// UnmarshalText reads a word that MarshalText wrote.
func (l *Lookup) UnmarshalText(text []byte) error {
	return humanize.Parse(l, lookups[:], "outcome of a lookup", text)
}

// An Eviction is what is known when the eviction of an instance is requested.
type Eviction struct {
	Instance Instance
	Seen     Lookup // of the instance itself
	// Owner is the outcome for the Compute instance that an Attachment belongs
	// to; an owner that is no Compute instance counts as NotFound.
	Owner Lookup
	Ended bool   // the Compute instance has ended
	VM    Lookup // of the VM

	On           hypervisor.HostName // where the instance is
	Home         hypervisor.HostName // where the VM is at home: its source
	EvacuateFrom hypervisor.HostName `json:"Mark"` // the host that the VM was asked to leave
	Strategy     Strategy            // of the VM; Unset takes the cluster's
	Migratable   bool

	Descheduler bool // the descheduler asks
	DryRun      bool // nothing may be written
}

// An EvictionDecision answers an eviction. A denial means: later, ask again.
type EvictionDecision struct {
	Allow bool
	Cause Cause
	// EvacuateFrom is the host to write into the VM as the one to leave; "" is none.
	// When writing fails the eviction is denied all the same.
	EvacuateFrom hypervisor.HostName `json:"Mark"`
	// Descheduled: write also that the descheduler asked.
	Descheduled bool
}

// A Cause is the row of the table that decided an eviction.
type Cause uint8

// The causes, in the order in which they are asked.
const (
	InstanceUnknown      Cause = iota // allowed: the instance could not be read
	AttachmentInUse                   // denied: a running VM uses it
	AttachmentUnclear                 // denied: whether it is in use is not known
	AttachmentUnused                  // allowed
	NotAVM                            // allowed
	InstanceEnded                     // allowed
	VMUnknown                         // denied: the VM could not be read
	Unprotected                       // allowed: the VM may be killed
	CannotMove                        // denied: it must be moved and cannot be
	MayBeKilled                       // allowed: it cannot be moved
	AlreadyMarked                     // denied: it is about to leave
	EvictsTarget                      // denied: the instance is a migration's target
	EvacuationTriggered               // denied: it leaves from now on
	InstanceUnclassified              // denied: what the instance is was not said
)

var causes = [...]string{"InstanceUnknown", "AttachmentInUse", "AttachmentUnclear",
	"AttachmentUnused", "NotAVM", "InstanceEnded", "VMUnknown", "NobodyMinds", "CannotMove",
	"MayBeKilled", "AlreadyMarked", "EvictsTarget", "EvacuationTriggered",
	"InstanceUnclassified"}

// String returns the cause's name.
func (c Cause) String() string { return word(causes[:], "Cause", uint8(c)) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (c Cause) MarshalText() ([]byte, error) { return humanize.Text(c, causes[:], "cause") }

// UnmarshalText reads a word that MarshalText wrote.
func (c *Cause) UnmarshalText(text []byte) error {
	return humanize.Parse(c, causes[:], "cause", text)
}

// A row is one line of the eviction table.
type row struct {
	cause Cause
	allow bool
	holds func(Strategy, Eviction) bool
}

// rows are the eviction table: the first that holds decides. The strategy is
// the VM's, or else the cluster's. When none holds the VM is marked.
var rows = [...]row{
	{InstanceUnknown, true, instanceUnknown},
	{AttachmentInUse, false, attachmentInUse},
	{AttachmentUnclear, false, attachmentUnclear},
	{AttachmentUnused, true, attachmentUnused},
	{InstanceUnclassified, false, unclassified},
	{NotAVM, true, notAVM},
	{InstanceEnded, true, instanceEnded},
	{VMUnknown, false, vmUnknown},
	{Unprotected, true, unprotected},
	{CannotMove, false, cannotMove},
	{MayBeKilled, true, mayBeKilled},
	{AlreadyMarked, false, alreadyMarked},
	{EvictsTarget, false, evictsTarget},
}

// Evict decides what becomes of a request to evict an instance, and whether the
// VM is thereby asked to leave its host. It is total.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:86-217 (Admit).
func Evict(p Params, e Eviction) EvictionDecision {
	strategy := e.Strategy.Or(p.Strategy)
	for _, r := range rows {
		if r.holds(strategy, e) {
			return EvictionDecision{Allow: r.allow, Cause: r.cause}
		}
	}
	v := EvictionDecision{Cause: EvacuationTriggered}
	if !e.DryRun {
		v.EvacuateFrom, v.Descheduled = e.On, e.Descheduler
	}
	return v
}

// Message says the verdict about a VM in words. The words of AlreadyMarked and
// EvacuationTriggered are KubeVirt's: the descheduler recognises them.
// Source: KubeVirt v1.9.0 pod-eviction-admitter.go:86-217.
func (v EvictionDecision) Message(vm hypervisor.VMID) string {
	triggered := fmt.Sprintf("Eviction triggered evacuation of VMI %q", string(vm))
	switch v.Cause {
	case AttachmentInUse, AttachmentUnclear:
		return fmt.Sprintf("cannot evict hotplug pod: %s may use it", vm)
	case VMUnknown:
		return fmt.Sprintf("the VM %s could not be read", vm)
	case CannotMove:
		return fmt.Sprintf("VMI %s is configured with an eviction strategy but is not "+
			"live-migratable", vm)
	case AlreadyMarked:
		return "Evacuation in progress: " + triggered
	case InstanceUnclassified:
		return fmt.Sprintf("cannot evict the instance of %s: set Eviction.Instance to what it is",
			vm)
	case EvictsTarget:
		return "Eviction request for target Pod"
	case EvacuationTriggered:
		return triggered
	}
	return "" // allowed
}
