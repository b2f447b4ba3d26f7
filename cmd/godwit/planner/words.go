package planner

import (
	"fmt"
	"io"

	"github.com/godwit-vm/godwit/internal/words"
)

// listed prints texts, each in a line.
func listed(out io.Writer, all []string) {
	few := words.Few(len(all))
	for _, text := range all[:few] {
		fmt.Fprintf(out, "  %s\n", text)
	}
	if more := len(all) - few; more > 0 {
		fmt.Fprintf(out, "  … and %d more; --json lists them all\n", more)
	}
}
