package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/boltstore"
)

// TestAStoreOfANewerVersionIsRefused: the controller ends with exit status 2, says which version
// has written the store and what to do, and changes nothing.
func TestAStoreOfANewerVersionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "c.db")
	s, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.ReplaceAll(text, []byte("format1"), []byte("format2"))
	if bytes.Equal(newer, text) {
		t.Fatal("the file does not say its format where this test looks for it")
	}
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	godwit, err := exec.LookPath("godwit") // testscript puts this binary there
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), godwit, "controller", "--name", "a", "--store", "bolt:"+path)
	said, _ := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 2 {
		t.Errorf("exit status %d, want 2", c.ProcessState.ExitCode())
	}
	for _, want := range []string{path, "its format is 2, and this godwit knows up to 1: upgrade godwit here",
		"nothing was changed"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("it says %q, and not %q", said, want)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, newer) {
		t.Errorf("the file has changed (%v)", err)
	}
}
