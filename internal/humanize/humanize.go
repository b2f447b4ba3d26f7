// Package humanize writes numbers, lists of names and enumerations for people, and reads
// enumerations again.
package humanize

import (
	"fmt"
	"strings"
	"time"
)

// Count says how many of something there are: "1 VM", "2 VMs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Unmet says which check failed, what it needs and what there is: "memory: needs 4GiB, has 2GiB".
func Unmet(check, need, have string) string {
	return fmt.Sprintf("%s: needs %s, has %s", check, need, have)
}

// Span writes seconds in two units at most: "4.2s", "2m14s", "3h05m".
func Span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60; {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", seconds)
	case h == 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	default:
		return fmt.Sprintf("%dh%02dm", h, m)
	}
}

// Few says how many of a list a page shows: all of a short one, and never all but one or two.
func Few(all int) int {
	if all > 12 {
		return 10
	}
	return all
}

// List writes names in one line, the first few of many: "a, b, … and 11 more".
func List[T ~string](all []T) string {
	few := Few(len(all))
	texts := make([]string, few, few+1)
	for i := range texts {
		texts[i] = string(all[i])
	}
	if more := len(all) - few; more > 0 {
		texts = append(texts, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// Milliseconds writes a downtime: in milliseconds when it is short, as [Span] does when it is
// ten seconds or more. What is not zero is never written as zero.
func Milliseconds(ms float64) string {
	switch {
	case ms >= 10_000:
		return Span(ms / 1000)
	case ms > 0 && ms < 0.5:
		return "<1 ms"
	}
	return fmt.Sprintf("%.0f ms", ms)
}
