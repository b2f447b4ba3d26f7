package audit

import (
	"encoding/json"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The kinds of lines.
const (
	NoteKind        = "note"  // something was decided or done
	writeKind       = "write" // a record was stored
	reservationKind = "books" // room on a host was reserved or freed
	askedKind       = "asked" // a process at the socket of the store asked for something, or was refused
	startKind       = "start" // the participant began, or the file was opened anew
	readKind        = "read"  // a part of what the next look has read
	lookKind        = "look"  // the participant looked
	// A store did not answer that it stored a record.
	refusedKind = "refused"
)

// A Line is one line of the file.
type Line struct {
	Seq       uint64              `json:"seq"` // one more than the line before
	At        time.Time           `json:"at"`
	By        string              `json:"by"` // "controller/a", "agent/n1"
	Kind      string              `json:"kind"`
	Who       string              `json:"who,omitempty"` // asked, by the kernel's word
	VM        hypervisor.VMID     `json:"vm,omitempty"`
	Migration hypervisor.JobID    `json:"migration,omitempty"`
	Host      hypervisor.HostName `json:"host,omitempty"`
	What      string              `json:"what"`
	Reasons   []hypervisor.Reason `json:"reasons,omitempty"`
	Record    string              `json:"record,omitempty"`  // "migration default/web#1"
	Was       uint64              `json:"was,omitempty"`     // its version before; 0 is none
	Version   uint64              `json:"version,omitempty"` // and now; 0 is deleted
	Term      uint64              `json:"term,omitempty"`    // of the leader that wrote it
	Look      uint64              `json:"look,omitempty"`    // of a Recorder: in which look
	Journal   *Journal            `json:"journal,omitempty"` // of a Recorder: for a replay
	Prev      string              `json:"prev,omitempty"`    // hash of the line before
}

// Limits of what a line repeats, so that every line can be read back in one piece.
const (
	maxText    = 1 << 10
	maxReasons = 32
)

// encode writes a line as it is in the file. A journal that is too long for one is left
// out: a replay of the log misses it, and says so.
func (l Line) encode() ([]byte, error) {
	l = l.bounded()
	text, err := json.Marshal(l)
	if err == nil && len(text) >= maxLine && l.Journal != nil {
		l.Journal = nil
		text, err = json.Marshal(l)
	}
	return text, err
}

// bounded cuts what is too long.
func (l Line) bounded() Line {
	l.What = cut(l.What)
	if len(l.Reasons) > maxReasons {
		l.Reasons = l.Reasons[:maxReasons:maxReasons]
	}
	for i, r := range l.Reasons {
		if len(r.Check)+len(r.Need)+len(r.Have) > maxText {
			l.Reasons = append([]hypervisor.Reason(nil), l.Reasons...)
			l.Reasons[i] = hypervisor.Reason{Check: cut(r.Check), Need: cut(r.Need),
				Have: cut(r.Have)}
		}
	}
	return l
}

func cut(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "…"
	}
	return text
}
