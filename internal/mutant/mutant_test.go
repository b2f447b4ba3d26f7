package mutant_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/mutant"
)

func TestPlantLeavesTheFileAsItIs(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	real := filepath.Join(root, "a.go")
	if err := os.WriteFile(real, []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := mutant.Mutant{Name: "ones", File: "a.go", Old: "one", New: "three"}
	overlay, err := m.Plant(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	edited, err := os.ReadFile(list.Replace[real])
	if err != nil || string(edited) != "three two two" {
		t.Errorf("planted %q, %v", edited, err)
	}
	if kept, _ := os.ReadFile(real); string(kept) != "one two two" {
		t.Errorf("the file itself is now %q", kept)
	}
}

// A text that is not there, or is there twice, is a mutant that has gone stale.
func TestAStaleMutantIsRefused(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, old, want string }{
		{"a.go", "four", "a.go has 0 times"},
		{"a.go", "two", "a.go has 2 times"},
		{"b.go", "one", "b.go"},
	} {
		m := mutant.Mutant{Name: "stale", File: test.file, Old: test.old}
		_, err := m.Plant(root, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), `"stale"`) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
