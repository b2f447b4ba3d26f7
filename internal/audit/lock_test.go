package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/audit"
)

// Two processes that write one log give its lines the same numbers: the second one is refused.
func TestALogHasOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	refused := func(when string) {
		t.Helper()
		second, err := audit.Open(path)
		if err == nil || !strings.Contains(err.Error(), path+": another process writes it") {
			t.Errorf("%s: a second one opens it: %v, %v", when, second, err)
		}
	}
	first, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if err := first.Append(audit.Line{Kind: audit.NoteKind, What: "begins"}); err != nil {
			t.Fatal(err)
		}
	}
	write()
	refused("at first")
	if err := first.Reopen(); err != nil { // no other process has moved it
		t.Fatal(err)
	}
	write()
	refused("after it was reopened")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := first.Reopen(); err != nil {
		t.Fatal(err)
	}
	write()
	refused("after it was moved away")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Append(audit.Line{Kind: audit.NoteKind, What: "goes on"}); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%s, %v", text, err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	for range 2 { // it keeps nothing
		nothing, err := audit.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer nothing.Close()
	}
}
