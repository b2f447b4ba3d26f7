package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxProblems is how many errors are reported of one file, and MaxWarnings how
// many different warnings; one more says how many were left out.
const (
	MaxProblems = 20
	MaxWarnings = 100
)

// maxText is the most bytes of a file's own text that a message repeats.
const maxText = 200

// A Problem is something wrong with a file.
type Problem struct {
	File    string // as it was given to the reader
	Line    int    // from 1; 0 when the problem has no place
	Field   string // "vms[3].memory", "vm prod/db spec.nodeName", or ""
	Message string
}

// Error says the problem in one line: "file:line: field: message".
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Field != "" {
		b.WriteString(": " + p.Field)
	}
	return b.String() + ": " + p.Message
}

// Problems are everything that is wrong with a file, by line. They are never
// empty when they are an error.
type Problems []Problem

// Error says one problem a line.
func (all Problems) Error() string {
	lines := make([]string, len(all))
	for i, p := range all {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.As find a Problem.
func (all Problems) Unwrap() []error {
	errs := make([]error, len(all))
	for i, p := range all {
		errs[i] = p
	}
	return errs
}

// A Report collects what is wrong with one file. The zero value of everything
// but File is ready for use.
type Report struct {
	File     string
	problems Problems
	left     int // problems beyond MaxProblems
	warnings []Problem
	more     map[string]int // by message: warnings that say the same again
	quiet    int            // different warnings beyond MaxWarnings
}

// Errorf adds a problem that makes the file unusable.
func (r *Report) Errorf(line int, field, format string, args ...any) {
	if len(r.problems) >= MaxProblems {
		r.left++
		return
	}
	r.problems = append(r.problems, r.problem(line, field, fmt.Sprintf(format, args...)))
}

// Warnf adds something that should be known. Warnings with one message are
// reported once, for the field that came first, and counted.
func (r *Report) Warnf(line int, field, format string, args ...any) {
	p := r.problem(line, field, fmt.Sprintf(format, args...))
	if _, known := r.more[p.Message]; known {
		r.more[p.Message]++
		return
	}
	if len(r.warnings) >= MaxWarnings {
		r.quiet++
		return
	}
	if r.more == nil {
		r.more = make(map[string]int)
	}
	r.more[p.Message] = 0
	r.warnings = append(r.warnings, p)
}

func (r *Report) problem(line int, field, message string) Problem {
	return Problem{File: r.File, Line: line, Field: printable(field), Message: printable(message)}
}

// Full reports whether further errors are only counted: a reader may stop.
func (r *Report) Full() bool { return r.left > 0 }

// Err returns the [Problems] so far, or nil when there are none.
func (r *Report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	all := slices.Clone(r.problems)
	slices.SortStableFunc(all, byLine)
	if r.left > 0 {
		all = append(all, Problem{
			File: r.File, Message: fmt.Sprintf("and %d more problems", r.left)})
	}
	return all
}

// Warnings returns the warnings so far, by line.
func (r *Report) Warnings() []Problem {
	all := slices.Clone(r.warnings)
	for i, p := range all {
		if n := r.more[p.Message]; n > 0 {
			all[i].Message += fmt.Sprintf(" (and %d more like it)", n)
		}
	}
	slices.SortStableFunc(all, byLine)
	if r.quiet > 0 {
		all = append(all, Problem{
			File: r.File, Message: fmt.Sprintf("and %d more warnings", r.quiet)})
	}
	return all
}

func byLine(a, b Problem) int { return cmp.Compare(a.Line, b.Line) }

// printable shortens text that comes from a file, and shows what a terminal
// would act on instead of printing it.
func printable(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	if strings.IndexFunc(text, Unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if Unprintable(r) {
			fmt.Fprintf(&b, "\\x%02x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Unprintable reports whether a terminal may act on a character instead of printing it: control
// characters, the marks that reverse text, broken UTF-8.
func Unprintable(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\ufffd' ||
		r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
