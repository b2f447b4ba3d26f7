package main

import (
	"regexp"
	"strings"
	"testing"
)

// Every command that docs/vms.md shows is run by the script, with whatever is added to it.
func TestTheCommandsAboutVMsAreRun(t *testing.T) {
	script := read(t, "testdata/script/vm-life.txtar")
	found := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(
		read(t, "../../docs/vms.md"), -1) {
		for line := range strings.Lines(block[1]) {
			if found++; !strings.Contains(script, " "+strings.TrimSpace(line)) {
				t.Errorf("no script runs %q", line)
			}
		}
	}
	if found == 0 {
		t.Error("the page shows no command")
	}
}
