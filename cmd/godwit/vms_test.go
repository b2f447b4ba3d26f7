package main

import (
	"regexp"
	"strings"
	"testing"
)

// Every command that these pages show is run by their scripts, with whatever is added to it.
func TestTheCommandsOfPagesAreRun(t *testing.T) {
	for page, by := range map[string]string{"vms": "vm-life", "audit": "seal", "failed-migrations": "cluster"} {
		script := read(t, "testdata/script/"+by+".txtar")
		found := 0
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(
			read(t, "../../docs/"+page+".md"), -1) {
			for line := range strings.Lines(block[1]) {
				if found++; !strings.Contains(script, " "+strings.TrimSpace(line)) {
					t.Errorf("no script runs %q of docs/%s.md", line, page)
				}
			}
		}
		if found == 0 {
			t.Errorf("docs/%s.md shows no command", page)
		}
	}
}
