package placement_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/migration/placement"
)

// TestEveryFilterIsExplained holds the names of filters against the page that operators read.
func TestEveryFilterIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/failed-migrations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Why a host refuses a VM\n")
	rows := strings.Split(section, "\n")
	for _, f := range append(placement.AllFilters(), placement.ForcedMemory()) {
		row := "| `" + f.Name + "` |"
		if f.Class == placement.Physics {
			row = "| `" + f.Name + "` (hard) |"
		}
		if !slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, row) }) {
			t.Errorf("docs/failed-migrations.md has no row %s under \"Why a host refuses a VM\"", row)
		}
	}
}
