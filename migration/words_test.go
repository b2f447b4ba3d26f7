package migration

import (
	"os"
	"strings"
	"testing"
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
	for _, w := range words {
		if !strings.Contains(string(page), "`"+w+"`") {
			t.Errorf("docs/failed-migrations.md does not say what %q means", w)
		}
	}
}
