package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/lint"
)

const modulePath = "github.com/godwit-vm/godwit"

// TestTheModuleKeepsTheHouseRules prints every place where it does not.
func TestTheModuleKeepsTheHouseRules(t *testing.T) {
	m, err := lint.Load(os.DirFS(root(t)), modulePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Check() {
		t.Error(f)
	}
}

// root returns the folder of the module: the first above with a go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the test")
	return ""
}
