package migration

import (
	"time"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// Observation is all that is known about one migration at one moment. Every combination of its
// fields has an answer, however unlikely.
type Observation struct {
	Now       time.Time // the only clock there is
	VM        VMStatus
	Ownership Ownership `json:"Claim"`
	Report    Report
	Running   bool // the source has an instance of the VM

	Target, Attachment Instance

	Canceled   bool    // the migration is no longer wanted
	Replaced   bool    // an operator asks for another migration of the VM: see [Spec.Replaces]
	Impossible bool    // the host that was asked for can never take the VM
	Refusal    Refusal // what was decided about the target, before the hand-over
	HandedOff  bool    // the hand-over was stored, though the VM may not show it yet
	Instances  int     // of the VM that have not ended, wherever
	// Gate is what the limits say about one more target: [Slots.Admit]. While it is
	// [NotAsked] no target is created.
	Gate        Gate
	Suspect     bool        // the target has failed others lately: [Timeouts.Probe] bounds it
	Queued      bool        // in Pending: it only waits for its turn; no host has refused it yet
	Backoff     time.Time   // when a retry may start; zero or past is now: [Config.RetryAt]
	TargetError TargetError `json:"Trouble"` // what performing the last actions ran into
}

// VMStatus is what is known about the VM.
type VMStatus struct {
	Exists   bool
	Final    bool // it has ended by itself
	Deleting bool
	Running  bool
	Stopping bool // it is to be shut down, and may still be at its source

	Hotplug        bool // it has hot-plugged volumes, which need an attachment
	UtilityVolumes bool // it has volumes that only a tool uses, for a while
	Backup         bool // a backup is in progress
	PeerFailure    bool // the other cluster cannot be reached

	// What a finished migration still has to apply. CPUChange counts as long as it is recorded
	// at all, the others while they hold.
	// Source: KubeVirt v1.9.0 migration.go:845.
	CPUChange, MemoryChange, MoveRequired bool
}

// An Ownership says which migration the VM's own state names.
type Ownership uint8

// The claims.
const (
	Unclaimed      Ownership = iota // none
	ClaimedBySelf                   // this one
	ClaimedByOther                  // another one that has not ended
	ClaimedByEnded                  // another one that has ended, or is gone
)

var claims = [...]string{"unclaimed", "claimed-by-self", "claimed-by-other", "claimed-by-ended"}

// String returns the claim's word.
func (c Ownership) String() string { return humanize.String(c, claims[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (c Ownership) MarshalText() ([]byte, error) { return humanize.Text(c, claims[:], "claim") }

// UnmarshalText reads a word that MarshalText wrote.
func (c *Ownership) UnmarshalText(text []byte) error {
	return humanize.Parse(c, claims[:], "claim", text)
}

// Report is what the hosts have said about this migration; in compatible mode, while the claim is
// another's, about that one.
type Report struct {
	TargetNamed bool // the VM's state names the target
	Address     bool // the target listens
	Began       bool // the source announced that it begins; there is no way back before a report
	Started     bool // the source's hypervisor has started to send
	Completed   bool // the VM runs at the target, or the failure is complete
	Failed      bool // the source kept the VM
	Unresolved  bool // the VM stopped at the source, and only the target can say whether it runs
	Lost        bool // the VM came to the target and lost its memory there
	Aborting    bool // the abort has been passed on to the source
	PostCopy    bool // the target runs; there is no deadline and no way back
	Arrived     bool // the target saw the VM active; its network may fail over
}

// Instance is a process-to-be of the VM on a host: the target, or what attaches hot-plugged
// volumes to it.
type Instance struct {
	Exists        bool
	Pending       bool // it has not started
	Unschedulable bool // there is no room for it
	Ready         bool
	Down          bool // it has ended
	Deleting      bool
	Told          bool // it knows that the VM has arrived
	Created       time.Time
}

// A TargetError is what performing actions ran into.
type TargetError uint8

// The troubles.
const (
	NoTargetError TargetError = iota
	QuotaExceeded
	OtherTargetError
)

var targetErrors = [...]string{"", "quota-exceeded", "other"}

// String returns the trouble's word.
func (t TargetError) String() string { return humanize.String(t, targetErrors[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (t TargetError) MarshalText() ([]byte, error) {
	return humanize.Text(t, targetErrors[:], "trouble")
}

// UnmarshalText reads a word that MarshalText wrote.
func (t *TargetError) UnmarshalText(text []byte) error {
	return humanize.Parse(t, targetErrors[:], "trouble", text)
}

// A Refusal is why no target may be had, or why the one that was chosen may not be kept.
type Refusal uint8

// The refusals.
const (
	NotRefused Refusal = iota
	BadRequest         // what was asked for makes no sense
	Conflict           // the host that was asked for refuses the VM
	Outdated           // the host that godwit chose no longer takes the VM
)

var refusals = [...]string{"", "bad-request", "conflict", "outdated"}

// String returns the refusal's word.
func (r Refusal) String() string { return humanize.String(r, refusals[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (r Refusal) MarshalText() ([]byte, error) { return humanize.Text(r, refusals[:], "refusal") }

// UnmarshalText reads a word that MarshalText wrote.
func (r *Refusal) UnmarshalText(text []byte) error {
	return humanize.Parse(r, refusals[:], "refusal", text)
}
