// Package mutant plants plausible mistakes in what decides and acts, to see
// whether a test finds them.
//
// A [Mutant] is a small edit of one file of the module. The file itself stays as it is:
// [Mutant.Plant] writes the edited text elsewhere, and what it returns is for the go command:
//
//	go test -overlay FILE
//
// The package runs nothing.
package mutant

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Mutant is a mistake: a small edit of what decides or acts.
type Mutant struct {
	Name     string // what it does wrong
	File     string // in the module, with slashes
	Old, New string // the old text is in the file exactly once
}

// Plant writes the edited file into dir, and beside it the overlay that puts it in the place
// of the real one. root is the module's directory. It returns the overlay's path. It is an
// error when the file does not have the old text, or has it more than once.
func (m *Mutant) Plant(root, dir string) (overlay string, err error) {
	path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.Name, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.Name, err)
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return "", fmt.Errorf("mutant %q: %s has %d times, and must have once:\n%s", m.Name,
			m.File, n, m.Old)
	}
	edited := filepath.Join(dir, "mutant.go")
	overlay = filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: edited}})
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.Name, err)
	}
	err = os.WriteFile(edited, []byte(strings.Replace(string(text), m.Old, m.New, 1)), 0o600)
	if err == nil {
		err = os.WriteFile(overlay, list, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.Name, err)
	}
	return overlay, nil
}
