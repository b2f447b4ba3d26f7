package cli_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/godwit-vm/godwit/internal/cli"
)

// TestTheChangelogBeginsWithThisVersion reads the first heading with a version.
func TestTheChangelogBeginsWithThisVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	// Source: semver.org 2.0.0, without build metadata, which Debian orders differently.
	heading := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?) `).FindSubmatch(text)
	if heading == nil {
		t.Fatal("CHANGELOG.md has no heading with a version")
	}
	if string(heading[1]) != cli.Version {
		t.Errorf("CHANGELOG.md begins with %s, and this is %s", heading[1], cli.Version)
	}
}
