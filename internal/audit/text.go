package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// WriteText writes the result for people; all of the difference, if there is one, only when it is
// asked for. The error is the writer's.
func (r *Result) WriteText(w io.Writer, all bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, %s\n", humanize.Count(r.Looks, "look"),
		humanize.Count(r.Terms, "controller"), humanize.Count(r.Writes, "decision"))
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%s of looks that began in the file before left out\n",
			humanize.Count(r.Skipped, "line"))
	}
	if len(r.Recorded) != 1 || r.Recorded[0] != r.Now {
		fmt.Fprintf(&b, "recorded by %s\nreplayed by %s\n", strings.Join(r.Recorded, ", "), r.Now)
	}
	if r.Wakes > 0 {
		fmt.Fprintf(&b, "%s with another wish for the next\n", humanize.Count(r.Wakes, "look"))
	}
	if r.Words > 0 {
		fmt.Fprintf(&b, "%s with other words about the same decisions\n",
			humanize.Count(r.Words, "look"))
	}
	if r.Same() {
		b.WriteString("every decision is the same, byte for byte\n")
	} else {
		r.differs(&b, all)
	}
	_, err := io.WriteString(w, plain(b.String()))
	return err
}

// stamp is how a moment is written.
const stamp = "2006-01-02 15:04:05.000"

// differs tells what differs: of one look, or of all.
func (r *Result) differs(b *strings.Builder, all bool) {
	if r.Differing > 0 {
		fmt.Fprintf(b, "%s with other decisions; ", humanize.Count(r.Differing, "look"))
		if a := r.Agrees; a != nil {
			fmt.Fprintf(b, "the same again from look %d on, %s: %s, %s\n", a.Look,
				a.At.UTC().Format(stamp), humanize.Count(a.Looks, "look"),
				humanize.Count(a.Writes, "decision"))
		} else {
			b.WriteString("the last look is one of them\n")
		}
	}
	r.Difference.tell(b, "the first decision that differs:", all)
	for _, d := range r.Further {
		d.tell(b, "another:", all)
	}
	if more := r.Differing - 1 - len(r.Further); more > 0 {
		fmt.Fprintf(b, "… and %s more\n", humanize.Count(more, "look"))
	}
}

// tell tells the difference.
func (d *Difference) tell(b *strings.Builder, title string, all bool) {
	fmt.Fprintf(b, "%s look %d of %s in term %d, %s, line %d\n", title, d.Look, d.By, d.Term,
		d.At.UTC().Format(stamp), d.Line)
	d.Recorded.tell(b, "recorded", all)
	d.Now.tell(b, "now", all)
	if !all {
		return
	}
	for i, f := range d.Fields {
		fmt.Fprintf(b, "%-9s %s: recorded %s, now %s\n", first(i, "differs"), f.Path, none(f.From),
			none(f.To))
	}
	for i, h := range d.Why {
		for _, r := range h.Reasons {
			fmt.Fprintf(b, "%-9s %s: %s\n", first(i, "why now"), h.VM, r)
		}
	}
	for i, line := range d.Saw {
		fmt.Fprintf(b, "%-9s %s\n", first(i, "saw"), line)
	}
}

func (d *Decision) tell(b *strings.Builder, who string, all bool) {
	if d == nil {
		fmt.Fprintf(b, "%-9s nothing\n", who)
		return
	}
	fmt.Fprintf(b, "%-9s %s: %s\n", who, d.Record, d.What)
	for _, r := range d.Reasons {
		fmt.Fprintf(b, "%-9s   because %s\n", "", r)
	}
	if !all {
		return
	}
	for _, f := range d.Changes {
		fmt.Fprintf(b, "%-9s   %s: %s → %s\n", "", f.Path, none(f.From), none(f.To))
	}
	for _, s := range d.Said {
		fmt.Fprintf(b, "%-9s   says %s\n", "", s)
	}
}

// first returns a word for the first of several lines.
func first(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}

func none(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// plain takes out what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}
