package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// pages DIR checks manual pages with groff, which warns of what it does not understand, and that
// each command that the help of its page lists has a page.
func pages(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pages DIR")
	}
	all, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.1"))
	ts.Check(err)
	refers := regexp.MustCompile(`(?m)\\fB(godwit[\w\\-]*)\\fR\(1\)`)
	for _, path := range all {
		text, err := os.ReadFile(path)
		ts.Check(err)
		for _, to := range refers.FindAllStringSubmatch(string(text), -1) {
			page := strings.ReplaceAll(to[1], `\-`, "-") + ".1"
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), page)); err != nil {
				ts.Fatalf("%s: %v", filepath.Base(path), err)
			}
		}
		groff, err := exec.LookPath("groff")
		if err != nil {
			ts.Logf("no groff: the pages are not set")
			return
		}
		c := exec.Command(groff, "-man", "-ww", "-Kutf8", "-Tutf8", path)
		var warnings bytes.Buffer
		c.Stderr = &warnings
		out, err := c.Output()
		if err != nil || warnings.Len() > 0 || len(out) < 200 {
			ts.Fatalf("%s: %v, %s, %d bytes of text", filepath.Base(path), err, warnings.String(), len(out))
		}
	}
	if len(all) < 20 {
		ts.Fatalf("%d pages", len(all))
	}
}

// TestEveryFlagIsInItsPage: what --help shows, the manual page does.
func TestEveryFlagIsInItsPage(t *testing.T) {
	dir := t.TempDir()
	if status := run(t.Context(), []string{"man", dir}); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	text, err := os.ReadFile(filepath.Join(dir, "godwit-agent.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\fB\-\-tls\-dir\fR \fIDIR\fR`, `\fB\-\-store\fR \fIURL\fR`,
		`\fB\-h\fR, \fB\-\-help\fR`, "Run the agent of one host"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("godwit-agent.1 lacks %s", want)
		}
	}
	if strings.Contains(string(text), `\-\-beat\fR`) {
		t.Error("godwit-agent.1 has a former flag")
	}
}
