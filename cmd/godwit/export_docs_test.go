package main

import (
	"strings"
	"testing"
)

// TestTheCommandsThatExportAClusterAreShown: those that the importer names are on the page, and in the help.
func TestTheCommandsThatExportAClusterAreShown(t *testing.T) {
	page := read(t, "../../docs/scenarios.md")
	c, _, err := rootCommand().Find([]string{"convert"})
	if err != nil {
		t.Fatal(err)
	}
	help := strings.Join(strings.Fields(strings.ReplaceAll(c.Long, "\\\n", "")), " ")
	found := 0
	for line := range strings.Lines(read(t, "../../internal/importer/doc.go")) {
		command, is := strings.CutPrefix(strings.TrimSpace(line), "//\topenstack ")
		if !is {
			continue
		}
		found++
		if command = "openstack " + command; !strings.Contains(page, command) || !strings.Contains(help, command) {
			t.Errorf("docs/scenarios.md and godwit help convert do not both show %q", command)
		}
	}
	if found != 5 {
		t.Errorf("%d commands are found", found)
	}
	for _, c := range []string{"kubectl get nodes,pods,vmis,", "hscan -L", "capabilities.xml", "dumpxml"} {
		if !strings.Contains(page, c) || !strings.Contains(help, c) {
			t.Errorf("docs/scenarios.md and godwit help convert do not both show %q", c)
		}
	}
}
