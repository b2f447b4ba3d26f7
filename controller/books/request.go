package books

import (
	"strings"
	"time"

	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/choose"
	"github.com/godwit-vm/godwit/migration/placement/reserve"
	"github.com/godwit-vm/godwit/record"
)

// Ends reports whether a refusal ends the migration. Who names a host and says nothing
// about force waits until it takes the VM; what the system asks for by itself waits
// until a VM that no host can take has been corrected.
func Ends(m *migration.Spec, d *choose.Decision) bool {
	switch d.Outcome {
	case choose.Conflict:
		return m.Force != choose.Absent || m.Compat
	case choose.BadRequest:
		return m.By == migration.User
	}
	return false
}

// ForcedBy returns what is to be kept with a VM that a migration has brought; nil when
// nothing was forced, which pays all debts.
func ForcedBy(m *record.Migration) *record.Forced {
	d := m.Decision
	if d == nil || d.Action == "" || d.Action == choose.Bypassed && len(d.Debts) == 0 {
		return nil
	}
	return &record.Forced{Move: m.Spec.ID, Host: m.State.Target, Action: d.Action,
		Debts: d.Debts}
}

// ForcedText says what a forced move overrules, for people.
func ForcedText(d *choose.Decision) string {
	text := string(d.Action) + " to " + string(d.Host)
	for i, debt := range d.Debts {
		text += []string{": ", "; "}[min(i, 1)] + debt.Reason.String()
	}
	return text
}

// Because says why a target was refused, for people.
func Because(d *choose.Decision) string {
	if text := Text(d.Why); d.Outcome != choose.Accepted && text != "" {
		return ": " + text
	}
	return ""
}

// Text says reasons in one line.
func Text(why []placement.Reason) string {
	texts := make([]string, len(why))
	for i := range why {
		texts[i] = why[i].String()
	}
	return strings.Join(texts, "; ")
}

// Line is what the audit says about one step of a move.
func Line(m *record.Migration, a reserve.Amount, step reserve.Step, at time.Time) reserve.Entry {
	return reserve.Entry{At: at, Step: step, Move: m.Spec.ID, VM: m.Spec.VM, Amount: a,
		Source: m.State.Source, Target: m.State.Target, Owner: m.Spec.By.String()}
}
