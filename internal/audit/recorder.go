package audit

import (
	"context"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// journalFormat is the version of what a [Journal] holds.
const journalFormat = 1

// A Journal is what a line says to a replay of the log.
type Journal struct {
	// Origin is who begins, on the line of a start.
	Origin *Origin `json:"origin,omitempty"`
	// Changes are what was read, on the line of a look; what is much is on lines of the kind
	// read before it.
	Changes []Change `json:"changes,omitempty"`
	Reset   bool     `json:"reset,omitempty"` // the changes are all that is stored
	// Before is how the look before this one has ended.
	Before *Outcome `json:"before,omitempty"`
	// Write is the record, on the line of a writing.
	Write *Change `json:"write,omitempty"`
	// Failed is what the store has answered instead: see [Failure].
	Failed string `json:"failed,omitempty"`
}

// An Origin is what decides: a replay begins with it.
type Origin struct {
	Format  int    `json:"format"`  // JournalFormat
	Records int    `json:"records"` // store.Format
	Build   string `json:"build"`   // see [Recorder.Build]
	Config  string `json:"config"`  // the text of its configuration
}

// An Outcome is how a look has ended.
type Outcome struct {
	Wake  time.Time `json:"wake,omitzero"`  // when it wants to look again
	Lines int       `json:"lines,omitzero"` // what it has done and said
}

// A Recorder is a participant whose looks can be replayed: what it has read, when it looked
// and what it has done is written down. The participant must look at [store.Everything]
// once in a look, and read nothing else.
//
// When the file was opened anew, or can be written again after a line could not, a new
// participant begins, as after a crash: so every file holds all that a replay of it needs.
type Recorder struct {
	History *History
	Store   store.Store
	// Recorder is told of what is decided, besides the file.
	Recorder store.EventRecorder
	// Config is the text of the configuration. It must hold no secrets.
	Config string
	// Build names the program: its version, and the revision that it was built from.
	Build string
	// Begin makes the participant.
	Begin func(store.Store, store.EventRecorder) store.Participant

	inner  store.Participant
	file   int  // how often the file had been opened when inner began
	broken bool // a line is missing
	told   DeltaLog
	said   said
	look   uint64
	began  time.Time // when this look did
	last   *Outcome  // of the look before; nil when there was none
	done   Outcome   // of this look
}

// Reconcile lets the participant look.
func (r *Recorder) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	r.History.File.betweenLooks()
	if times := r.History.File.times(); r.inner == nil || r.broken || r.file != times {
		r.begin(times)
	}
	r.look++
	r.began, r.done = now.UTC().Round(0), Outcome{}
	wake, err := r.inner.Reconcile(ctx, r.began)
	r.done.Wake = wake
	last := r.done
	r.last = &last
	return wake, err
}

// begin lets a new participant begin, and records its name. When even that cannot be
// written, the one that there is goes on.
func (r *Recorder) begin(times int) {
	r.look, r.broken = 0, false
	r.add(Line{Kind: startKind, What: "begins", Journal: &Journal{Origin: &Origin{journalFormat,
		store.Format, r.Build, r.Config}}})
	if r.broken && r.inner != nil {
		return
	}
	r.file, r.told, r.last = times, DeltaLog{}, nil
	r.inner = r.Begin(&recorded{r.Store, r}, r)
}

// add writes lines of this look. When one is missing, those that follow say what is done, and
// nothing that a replay could be misled by.
func (r *Recorder) add(lines ...Line) {
	if r.broken {
		lines = slices.DeleteFunc(lines, func(l Line) bool {
			return l.Kind == readKind || l.Kind == lookKind
		})
	}
	if len(lines) == 0 {
		return
	}
	for i := range lines {
		if lines[i].Look = r.look; r.broken {
			lines[i].Look, lines[i].Journal = 0, nil
		}
	}
	r.broken = r.History.add(lines...) != nil || r.broken
}

// Note implements store.EventRecorder.
func (r *Recorder) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	r.done.Lines++
	r.add(noted(at, who, vm, what))
	r.Recorder.Note(at, who, vm, what)
}

// Audit implements store.Auditor.
func (r *Recorder) Audit(e placement.LedgerEntry) {
	r.done.Lines++
	r.add(Reserved(e))
	if a, is := r.Recorder.(store.Auditor); is {
		a.Audit(e)
	}
}
