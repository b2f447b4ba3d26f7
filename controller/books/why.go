package books

import (
	"fmt"

	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/migration/placement/choose"
	"github.com/godwit-vm/godwit/record"
)

// Why returns the reasons of every host, each with the host's name, or of the one that was
// asked for.
func (b *Books) Why(r *choose.Request) []placement.Reason {
	if r.Host != "" {
		return b.Check(r, r.Host)
	}
	var why []placement.Reason
	for _, refusal := range b.Refusals(r) {
		for _, reason := range refusal.Why {
			reason.Check = string(refusal.Host) + ": " + reason.Check
			why = append(why, reason)
		}
	}
	return why
}

// Nowhere says in one line what keeps a VM from every host; overrun is that its tenant's
// quota does.
func (b *Books) Nowhere(r *choose.Request, d *choose.Decision, overrun bool) string {
	text := ""
	switch {
	case overrun || d.Outcome == choose.BadRequest:
		return Text(d.Why)
	case r.Host != "":
		text = string(r.Host)
		for _, reason := range b.Check(r, r.Host) {
			text += " " + reason.String() + ";"
		}
		return text
	}
	for _, n := range b.Histogram(r) {
		text += fmt.Sprintf("%s×%d ", n.Check, n.Hosts)
	}
	return text
}

// Failed sums up how often a VM's migrations have failed that are remembered, and how the last
// of them did.
func Failed(last *record.Migration, times int) placement.Reason {
	have := string(last.Spec.ID) + " failed: " + last.State.Because
	if last.Source.Error != "" {
		have += " (" + last.Source.Error + ")"
	}
	if times > 1 {
		have = fmt.Sprintf("%d failures that are remembered, the last: %s", times, have)
	}
	return placement.Reason{Check: "migration", Need: "to succeed", Have: have}
}
