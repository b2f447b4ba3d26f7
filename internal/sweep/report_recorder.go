package sweep

import (
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// A Recorder keeps what the page needs of every migration of a world.
type Recorder struct {
	// Network is the speed of the network that all migrations of the world share, as
	// the caller knows it. Default: they share none.
	Network hypervisor.Bandwidth

	rows  []row
	known map[migration.ID]int // its row
	homes []rehoming
}

// row is all that is kept of one migration. Times are virtual; never is -1.
type row struct {
	vm             hypervisor.VMID
	source, target hypervisor.HostName
	at             [migration.Failed]time.Duration // when each phase began; the last is the end
	outcome        MigrationOutcome
	mode           hypervisor.Mode
	bytes          hypervisor.Bytes
	untold         bool          // it has sent more than bytes, and it is not known how much
	downtime       time.Duration // -1 unless the VM has moved or its guest has stood
	why            string
}

// ended is the index in row.at of when a migration ended, either way.
const ended = int(migration.Succeeded)

const never time.Duration = -1

// Record lets the world that is built with config be recorded. Its other observers stay.
func Record(config *sim.Config) *Recorder {
	r := &Recorder{known: map[migration.ID]int{}}
	next := config.Watch
	config.Watch = func(at time.Duration, before, after *store.Migration) {
		if next != nil {
			next(at, before, after)
		}
		r.take(at, after)
	}
	seen := config.WatchVM
	config.WatchVM = func(at time.Duration, before, after *store.VM) {
		if seen != nil {
			seen(at, before, after)
		}
		r.rehome(at, before, after)
	}
	return r
}

// take takes in a migration as it is stored at a time.
func (r *Recorder) take(at time.Duration, m *store.Migration) {
	i, ok := r.known[m.Spec.ID]
	if !ok {
		i = len(r.rows)
		r.known[m.Spec.ID] = i
		n := row{vm: m.Spec.VM}
		for i := range n.at {
			n.at[i] = never
		}
		n.at[migration.Unset] = at
		r.rows = append(r.rows, n)
	}
	r.rows[i].take(at, m)
}

// take brings a row up to date. What the record says of times is by the controller's clock, which may be wrong.
func (n *row) take(at time.Duration, m *store.Migration) {
	s := &m.State
	n.source, n.target = s.Source, s.Target
	if began := &n.at[min(int(s.Phase), ended)]; *began == never {
		*began = at
	}
	if s.Phase == migration.PreparingTarget && n.at[migration.Scheduled] == never {
		n.at[migration.Scheduled] = at // one writing did for both
	}
	n.outcome = outcomeOf(s)
	n.mode, n.bytes, n.downtime = m.Source.Mode, m.Source.Sent, never
	n.untold = m.Source.Untold() && s.Phase.Final()
	if m.Source.Measured && (s.Phase == migration.Succeeded || m.Source.Downtime > 0) {
		n.downtime = m.Source.Downtime
	}
	n.why = why(m)
}

// locate names the sources of migrations that were never handed over: their VMs stayed where
// their next migrations found them, or where they are now.
func (r *Recorder) locate(w *sim.World) {
	home := map[hypervisor.VMID]hypervisor.HostName{}
	for i := range slices.Backward(r.rows) {
		n := &r.rows[i]
		if n.source == "" {
			if _, known := home[n.vm]; !known {
				if v := w.VM(n.vm); v != nil {
					home[n.vm] = v.Host
				}
			}
			n.source = home[n.vm]
		}
		home[n.vm] = n.source
	}
}

// stood takes over how long guests stood: the world knows it also of those whose hypervisors did
// not live to tell.
func (r *Recorder) stood(w *sim.World) {
	for id, i := range r.known {
		n := &r.rows[i]
		stood, known := w.Downtime(n.vm, id)
		if known && (stood > 0 || n.outcome <= Lost) {
			n.downtime = stood
		}
	}
}

// why says in one line why a migration ended as it did, or what holds it up: the rule, the
// hypervisor's words, and every reason against the target.
func why(m *store.Migration) string {
	var parts []string
	add := func(text string) {
		if text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if m.State.Phase != migration.Succeeded || m.State.Because == migration.MemoryLost {
		add(m.State.Because)
		add(m.Source.Error)
		for i := range m.Target.Refused {
			add(m.Target.Refused[i].String())
		}
		if m.Decision != nil {
			for i := range m.Decision.Why {
				add(m.Decision.Why[i].String())
			}
		}
	}
	for _, word := range m.State.Conditions.Words() {
		if !m.State.Phase.Final() {
			add(word)
		}
	}
	return strings.Join(parts, "; ")
}

// A MigrationOutcome is how a migration ended.
type MigrationOutcome int

// The outcomes, as [sim.Totals] counts them; Lost is counted among those that succeeded.
const (
	Succeeded  MigrationOutcome = iota
	Lost                        // arrived without its memory, and started anew
	Failed                      // the VM stayed where it was
	Aborted                     // it was cancelled
	Unfinished                  // it had not ended when the run did
)

// outcomes lists the words for the outcomes, in order.
func outcomes() []string {
	return []string{"succeeded", "memory lost", "failed", "aborted", "unfinished"}
}

// String returns the outcome's word.
func (o MigrationOutcome) String() string { return outcomes()[o] }

// outcomeOf returns what [sim.Totals] counts a migration as.
func outcomeOf(s *migration.State) MigrationOutcome {
	switch {
	case !s.Phase.Final():
		return Unfinished
	case s.Phase == migration.Succeeded && s.Because == migration.MemoryLost:
		return Lost
	case s.Phase == migration.Succeeded:
		return Succeeded
	case migration.Withdrawn(s.Because):
		return Aborted
	}
	return Failed
}
