package lint_test

import (
	"os"
	"testing"

	"github.com/godwit-vm/godwit/internal/tools/lint"
)

const modulePath = "github.com/godwit-vm/godwit"

// TestTheModuleKeepsTheHouseRules prints every place where it does not.
func TestTheModuleKeepsTheHouseRules(t *testing.T) {
	m, err := lint.Load(os.DirFS(root), modulePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Check() {
		t.Error(f)
	}
}

// root is the folder of the module that is checked: this one is nested in it.
const root = "../../.."
