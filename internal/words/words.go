// Package words writes numbers for people.
package words

import (
	"fmt"
	"time"
)

// Count says how many of something there are: "1 VM", "2 VMs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
