package migration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/migration/convergence"
)

// TestEveryReasonOfAFailureIsExplained holds the words of operators against the page that they read.
func TestEveryReasonOfAFailureIsExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/failed-migrations.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{MemoryLost, targetExpired.name, utilityVolumesExpired.name}
	for _, table := range [][]rule{rules[:], kubevirtRules[:]} {
		for _, r := range table {
			if r.name != "done" && r.name != "arrived" { // they end nothing
				words = append(words, r.name)
			}
		}
	}
	for r := convergence.Stuck; r <= convergence.NoBandwidth; r++ {
		if r != convergence.LastMoment { // it gives nothing up
			words = append(words, fmt.Sprintf("given up: Abort (%v)", r))
		}
	}
	for _, w := range words {
		if !strings.Contains(string(page), "`"+w+"`") {
			t.Errorf("docs/failed-migrations.md does not say what %q means", w)
		}
	}
}
