package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration"
)

// listed prints texts, each in a line.
func listed(out io.Writer, all []string) {
	few := humanize.Few(len(all))
	for _, text := range all[:few] {
		fmt.Fprintf(out, "  %s\n", text)
	}
	if more := len(all) - few; more > 0 {
		fmt.Fprintf(out, "  … and %d more; --json lists them all\n", more)
	}
}

// limit says how many may move, and in a word of the caller's that there is no limit.
func limit(n int, none string) string {
	if n >= migration.Unlimited {
		return none
	}
	return strconv.Itoa(n)
}

// when says how long something takes; nil is never.
func when(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return humanize.Span(*seconds)
}

func after(what string, seconds *float64) string {
	if seconds == nil {
		return "never " + what
	}
	return what + " after " + humanize.Span(*seconds)
}

func downtime(milliseconds *float64) string {
	if milliseconds == nil {
		return ""
	}
	return humanize.Milliseconds(*milliseconds)
}
