package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// Maintenance is a run of maintenance that the controller carries out, batch after batch: the hosts of a
// batch are cordoned and emptied, a hook services each, the host is checked, and takes VMs again. Runs
// are carried out one after another, the oldest first.
type Maintenance struct {
	Version Version

	// Written once, by the operator who starts it.
	Name    string
	Created time.Time
	By      string             `json:",omitempty"`
	Batches []MaintenanceBatch // in order
	// Home are moves after all batches, in order of their waves.
	Home []PlannedMove `json:",omitempty"`
	// Return says that after each batch its VMs go back to the hosts that they were on, where these take them.
	Return bool `json:",omitempty"`
	// Strict says that no VM goes to another host than planned. Those that leave in another way than by
	// the moves of the batches (a restart, with their group) are Others: they are drained all the same.
	Strict bool              `json:",omitempty"`
	Others []hypervisor.VMID `json:",omitempty"`
	// Windows are when hosts are emptied and serviced, in order. Default: always.
	Windows []Window `json:",omitempty"`
	// Terms are what becomes of VMs that cannot be migrated. Default: the cluster's.
	Terms evacuation.Terms `json:",omitzero"`
	// DrainWithin is how long a host may take to be empty, in windows; HookWithin how long its hook may
	// take once it has begun, and BackWithin how long the host may take to pass its check. The run stops
	// when one of them is over. Zero is without limit.
	DrainWithin, HookWithin, BackWithin time.Duration `json:",omitempty"`
	// SameStart lets a host pass whose agent was not started anew: the hook restarts nothing.
	SameStart bool `json:",omitempty"`
	// Software is what the host must run in the end, as [hypervisor.Host.Software] begins. Default: anything.
	Software string `json:",omitempty"`
	// Checked says that a command of the operator's checks each host, too.
	Checked bool `json:",omitempty"`

	// Written by operators, and by the commands that run hooks for them.
	Wish PlanWish `json:",omitempty"`
	// Resumes counts how often the run was resumed after it had stopped.
	Resumes int `json:",omitempty"`
	// Answers are what has become of hooks and checks: one of each host at most.
	Answers []ServiceAnswer `json:",omitempty"`

	// Written by the controller.
	Batch int            `json:",omitempty"` // that is serviced; len(Batches) is the way home
	Hosts []ServicedHost `json:",omitempty"` // of this batch and those before it
	// Stopped is why the run has stopped; "" is that it has not. It goes on when Resumes is above Resumed.
	Stopped string `json:",omitempty"`
	Resumed int    `json:",omitempty"`
	// Homing says that the moves home of this batch are requested.
	Homing bool      `json:",omitempty"`
	Ended  time.Time `json:",omitzero"`
}

// Halted reports whether the run has stopped, and waits for an operator.
func (m *Maintenance) Halted() bool {
	return m.Ended.IsZero() && m.Stopped != "" && m.Resumes <= m.Resumed
}

// MaintenanceDrain begins the value of the drain taint of a run, before its name. An operator's has no value.
const MaintenanceDrain = "maintenance/"

// A MaintenanceBatch is hosts that are serviced together.
type MaintenanceBatch struct {
	Hosts []hypervisor.HostName
	// Moves empty them, in order of their waves. What they leave is drained, unless the run is strict.
	Moves []PlannedMove `json:",omitempty"`
	// Needs is how long the batch takes, with a margin: it begins only in a window that is as long still.
	Needs time.Duration `json:",omitempty"`
}

// A Window is a span in which hosts may be emptied and serviced.
type Window struct{ Begin, End time.Time }

// A ServicedHost is how far a host of a run is.
type ServicedHost struct {
	Name  hypervisor.HostName
	Phase ServicePhase
	Since time.Time `json:",omitzero"` // it is in this phase, or that the run was resumed
	// Used is how long the host was drained before Since, in windows.
	Used time.Duration `json:",omitempty"`
	// Cordoned says that it was seen cordoned: then only an operator has uncordoned it.
	Cordoned bool `json:",omitempty"`
	// Hooks is how often its hook was called for.
	Hooks int `json:",omitempty"`
	// Session is the start of its agent when its hook was called for.
	Session string `json:",omitempty"`
	// Guests are the VMs that it had, if they are to return.
	Guests []hypervisor.VMID `json:",omitempty"`
	// Because is what it waits for, or why it stays cordoned.
	Because string `json:",omitempty"`
}

// A ServicePhase is how far a host of a run is.
type ServicePhase uint8

// The phases, in order. A host is cordoned from ServiceDraining on, and takes VMs again in ServiceDone.
const (
	ServiceWaits    ServicePhase = iota
	ServiceDraining              // it is being emptied
	ServiceHook                  // it is empty, and its hook is called for
	ServiceCheck                 // the hook has ended
	ServiceDone                  // it has passed the check
	ServiceSkipped               // the run was aborted before its hook began
	ServiceLeft                  // the run was aborted after that: it stays cordoned
)

var servicePhases = [...]string{"waits", "draining", "hook", "check", "done", "skipped", "left"}

// String returns the word of the phase.
func (p ServicePhase) String() string { return humanize.String(p, servicePhases[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (p ServicePhase) MarshalText() ([]byte, error) {
	return humanize.Text(p, servicePhases[:], "phase of a host in maintenance")
}

// UnmarshalText reads a word that MarshalText wrote.
func (p *ServicePhase) UnmarshalText(text []byte) error {
	return humanize.Parse(p, servicePhases[:], "phase of a host in maintenance", text)
}

// Settled reports whether nothing more is done about the host.
func (p ServicePhase) Settled() bool { return p >= ServiceDone }

// A ServiceAnswer is what has become of the hook and the check of a host.
type ServiceAnswer struct {
	Host hypervisor.HostName
	// Hook says which call for the hook this is about: [ServicedHost.Hooks].
	Hook int
	// State is how far the hook is. HookBegan is stored before it begins, so that it runs once.
	State HookState `json:",omitempty"`
	By    string    `json:",omitempty"` // its runner: "ann on desk, process 17"
	Began time.Time `json:",omitzero"`
	// Session is the start of the host's agent when the hook began.
	Session string `json:",omitempty"`
	// Again lets a hook be called for once more that has begun, or failed.
	Again bool `json:",omitempty"`
	// Passed says that the operator's check has passed after the hook.
	Passed bool   `json:",omitempty"`
	Why    string `json:",omitempty"` // why the hook failed, or the check did last
}

// A HookState is how far a hook is.
type HookState uint8

// The states.
const (
	HookWaits HookState = iota
	HookBegan
	HookDone
	HookFailed
)

var hookStates = [...]string{"waits", "began", "done", "failed"}

// String returns the word of the state.
func (s HookState) String() string { return humanize.String(s, hookStates[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (s HookState) MarshalText() ([]byte, error) {
	return humanize.Text(s, hookStates[:], "state of a hook")
}

// UnmarshalText reads a word that MarshalText wrote.
func (s *HookState) UnmarshalText(text []byte) error {
	return humanize.Parse(s, hookStates[:], "state of a hook", text)
}

// Window returns the window in which a moment is. A run without windows has one without end.
func (m *Maintenance) Window(now time.Time) (w Window, within bool) {
	if len(m.Windows) == 0 {
		return Window{}, true
	}
	for _, w := range m.Windows {
		if !now.Before(w.Begin) && now.Before(w.End) {
			return w, true
		}
	}
	return Window{}, false
}

// Active reports whether hosts may be emptied and hooks may begin.
func (m *Maintenance) Active(now time.Time) bool {
	_, within := m.Window(now)
	return within && m.Ended.IsZero() && m.Wish == RunPlan && m.Stopped == ""
}

// Host returns how far a host of the run is; nil is that its batch has not begun.
func (m *Maintenance) Host(name hypervisor.HostName) *ServicedHost {
	for i := range m.Hosts {
		if m.Hosts[i].Name == name {
			return &m.Hosts[i]
		}
	}
	return nil
}

// Answer returns what has become of the present call for a host's hook.
func (m *Maintenance) Answer(h *ServicedHost) ServiceAnswer {
	for _, a := range m.Answers {
		if a.Host == h.Name && a.Hook == h.Hooks {
			return a
		}
	}
	return ServiceAnswer{Host: h.Name, Hook: h.Hooks}
}

// Answered returns the run with an answer instead of the one about the same host.
func (m *Maintenance) Answered(a ServiceAnswer) *Maintenance {
	next := *m
	next.Answers = slices.Clone(m.Answers)
	for i := range next.Answers {
		if next.Answers[i].Host == a.Host {
			next.Answers[i] = a
			return &next
		}
	}
	next.Answers = append(next.Answers, a)
	return &next
}

// HookDue returns the first host whose hook may begin now.
func (m *Maintenance) HookDue(now time.Time) (ServicedHost, bool) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if h.Phase == ServiceHook && m.Active(now) && m.Answer(h).State == HookWaits {
			return *h, true
		}
	}
	return ServicedHost{}, false
}

// CheckDue lists the hosts that an operator's check is to look at.
func (m *Maintenance) CheckDue() (all []ServicedHost) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if m.Checked && m.Ended.IsZero() && h.Phase == ServiceCheck && !m.Answer(h).Passed {
			all = append(all, *h)
		}
	}
	return all
}

// PlanName names the plan that empties a batch, or that takes VMs home after it; the batches are
// numbered from 1.
func (m *Maintenance) PlanName(batch int, home bool) string {
	name := fmt.Sprintf("%s.%d", m.Name, batch+1)
	if home {
		name += ".home"
	}
	return name
}

// Key implements Record.
func (m *Maintenance) Key() Key { return Key{MaintenanceKind, m.Name} }

// RecordVersion implements Record.
func (m *Maintenance) RecordVersion() Version { return m.Version }

// WithVersion implements Record.
func (m *Maintenance) WithVersion(v Version) Record { c := *m; c.Version = v; return &c }

// RelatedHosts implements Record: agents do not read it.
func (m *Maintenance) RelatedHosts() []hypervisor.HostName { return nil }

// MaintenanceNamed reads the record of a run; nil is none.
func MaintenanceNamed(ctx context.Context, s Store, name string) (*Maintenance, error) {
	r, err := s.Get(ctx, Key{Kind: MaintenanceKind, Name: name})
	m, _ := r.(*Maintenance)
	return m, err
}
