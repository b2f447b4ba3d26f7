package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
)

const (
	// columns is how wide a page is.
	columns = 100
	// mostHosts is how many hosts a page has.
	mostHosts = 40
)

// A page is text that keeps within its columns.
type page struct{ strings.Builder }

func (p *page) hosts(all []hostVerdict) {
	width := len("HOST")
	for _, h := range all[:min(len(all), mostHosts)] {
		width = max(width, min(len(h.Host), columns/2))
	}
	if len(all) > 0 {
		p.line(0, "")
		p.line(0, "%-*s  SCORE  VERDICT", width, "HOST")
	}
	for _, h := range all[:min(len(all), mostHosts)] {
		score := ""
		if h.Score != nil {
			score = fmt.Sprintf("%5.2f", *h.Score)
		}
		said := h.Verdict
		if len(h.Reasons) > 0 {
			said += ", " + humanize.Count(len(h.Reasons), "reason")
			if h.Verdict == isChosen {
				said = isChosen + ", " + humanize.Count(len(h.Reasons), "debt")
			}
		}
		p.line(width+9, "%-*s  %5s  %s", width, h.Host, score, said)
		p.reasons(width+9, h.Reasons)
	}
	if more := len(all) - mostHosts; more > 0 {
		p.line(0, "… and %d more; --json lists them all", more)
	}
}

func (p *page) histogram(all []refusals) {
	if len(all) > 0 {
		p.line(0, "")
		p.line(0, "REFUSED BY            HOSTS")
	}
	for _, c := range all {
		p.line(0, "%-20s  %5d", c.Check, c.Hosts)
	}
}

func (p *page) nearest(all []miss) {
	if len(all) > 0 {
		p.line(0, "")
		p.line(0, "NEAREST")
	}
	for _, m := range all {
		p.line(2, "%s", m.Text)
	}
}

// quota prints why the quotas of a namespace admit no second copy.
func (p *page) quota(why []placement.Reason) {
	p.line(0, "")
	p.line(0, "QUOTA")
	p.reasons(0, why)
}

func (p *page) reasons(indent int, all []placement.Reason) {
	for _, r := range all {
		p.line(indent+2, "%s%s", strings.Repeat(" ", indent), humanize.Unmet(r.Check, r.Need, r.Have))
	}
}

// line writes a line, and goes on in further ones, indented, when it is too long.
func (p *page) line(indent int, format string, args ...any) {
	text := []rune(plain(fmt.Sprintf(format, args...)))
	for len(text) > columns {
		cut := columns
		for cut > indent+1 && text[cut] != ' ' {
			cut--
		}
		if cut <= indent+1 { // one word fills the line
			cut = columns
		}
		p.WriteString(strings.TrimRight(string(text[:cut]), " ") + "\n")
		rest := strings.TrimLeft(string(text[cut:]), " ")
		text = []rune(strings.Repeat(" ", indent) + rest)
	}
	p.WriteString(strings.TrimRight(string(text), " ") + "\n")
}

// plain escapes control characters.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, text)
}
