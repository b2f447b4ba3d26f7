package hypervisor

import "encoding/json"

// Evidence is proof about one copy of a VM: that it is dead, or that the VM has
// moved. Resuming a source and removing a copy take it as an argument. The zero
// value proves nothing and is refused with Invalid. Evidence about another VM, another host or
// another job, and a proof of something else than the command needs, is refused with Conflict: what
// it says may be true, and does not fit this domain.
type Evidence struct {
	Proof Proof
	VM    VMID
	Host  HostName // the host that the proof is about
	Job   JobID    // the migration that the proof is about; "" when it is about the host
	By    string   // the witness: "agent/n2", "fence_ipmilan", "operator alice"
}

// A Proof is a way to know.
type Proof uint8

// The proofs.
const (
	// NoProof proves nothing.
	NoProof Proof = iota
	// TargetDiscarded: the target's hypervisor discarded the copy before it ran.
	TargetDiscarded
	// ProcessReaped: the hypervisor process of the copy was seen to end.
	ProcessReaped
	// HostFenced: the host was powered off or cut from power and disks.
	HostFenced
	// LeaseExpired: the copy could only run while it held a lease, now expired.
	LeaseExpired
	// OperatorWord: a person took responsibility, on the record.
	OperatorWord
	// SourceStopped: the source's hypervisor said that the guest had stopped.
	SourceStopped
	// RunsAtTarget: the target's hypervisor said that the VM runs there.
	RunsAtTarget
)

var proofs = [...]string{"NoProof", "TargetDiscarded", "ProcessReaped", "HostFenced",
	"LeaseExpired", "OperatorWord", "SourceStopped", "RunsAtTarget"}

// String returns the proof's name.
func (p Proof) String() string { return word(proofs[:], int(p)) }

// MarshalText stores a word, so that renumbering cannot corrupt the past.
func (p Proof) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the proof's name, and refuses what is none.
func (p *Proof) UnmarshalText(text []byte) error { return parse(p, proofs[:], "proof", text) }

// UnmarshalJSON reads the proof's name, or the number that versions before stored.
func (p *Proof) UnmarshalJSON(text []byte) error {
	var number uint8
	if json.Unmarshal(text, &number) == nil {
		*p = Proof(number)
		return nil
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	return p.UnmarshalText([]byte(word))
}

// Dead reports whether e proves that the copy of vm on host does not run and will
// not. It may have run: only [Evidence.NeverRan] says that it did not.
func (e Evidence) Dead(vm VMID, host HostName) bool {
	switch e.Proof {
	case TargetDiscarded, ProcessReaped:
		return e.VM == vm && e.Host == host
	case HostFenced, LeaseExpired, OperatorWord:
		return e.Host == host && (e.VM == "" || e.VM == vm)
	}
	return false
}

// NeverRan reports whether e proves that the copy of vm that job brought to host
// did not run and will not. A host that was fenced is no such proof: the VM may
// have run there, and changed its disks, before the power went.
func (e Evidence) NeverRan(vm VMID, host HostName, job JobID) bool {
	switch e.Proof {
	case TargetDiscarded, OperatorWord:
		return e.VM == vm && e.Host == host && e.Job == job
	}
	return false
}

// About reports whether e is about the job, or about the host for whatever job: that a
// target was discarded once says nothing about the next one there.
func (e Evidence) About(job JobID) bool { return e.Job == "" || e.Job == job }

// Moved reports whether e proves that vm now runs on a host other than from.
func (e Evidence) Moved(vm VMID, from HostName) bool {
	return e.Proof == RunsAtTarget && e.VM == vm && e.Host != from && e.Host != ""
}
