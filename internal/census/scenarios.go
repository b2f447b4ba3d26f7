package census

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// A shelf is a folder of scenarios of one kind.
type shelf struct {
	kind, folder, suffix string
	// opens reports whether a line begins a scenario; nil is one scenario a file.
	opens func(line, before string) bool
	// expects is in every scenario: what it expects begins so. Others are none.
	expects string
}

var shelves = []shelf{
	{"simulated world", "sim/testdata", ".txt", command("world"), "----"},
	{"story of a migration", "migration/testdata/step", ".txt", command("new"), "----"},
	{"life with QEMU", "hypervisor/qmp/life/testdata/story", ".txt", command("host"), "----"},
	{"life with libvirt", "hypervisor/libvirt/life/testdata/story", ".txt", command("host"),
		"----"},
	{"request for a target", "migration/placement/choose/testdata", ".txt", nil, "----"},
	{"explored scene", "sim/explore/testdata", ".txt", nil, "script"},
	{"command line", "cmd/godwit/testdata/script", ".txtar", section, "godwit"},
	{"example", "examples", ".yaml", nil, "events:"},
}

// command opens a scenario with a command of a transcript.
func command(word string) func(line, before string) bool {
	return func(line, _ string) bool { return line == word || strings.HasPrefix(line, word+" ") }
}

// section opens a scenario with a comment of a script.
func section(line, before string) bool {
	return strings.HasPrefix(line, "# ") && !strings.HasPrefix(before, "#")
}

// Scenarios finds the scenarios of the module whose root is given. The error says that a file
// could not be read.
func Scenarios(root fs.FS) ([]Item, error) {
	var all []Item
	for _, s := range shelves {
		err := fs.WalkDir(root, s.folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, s.suffix) {
				return err
			}
			text, err := fs.ReadFile(root, name)
			all = append(all, s.read(name, string(text))...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("count the scenarios in %s: %w", s.folder, err)
		}
	}
	trials, err := trials(root)
	return append(all, trials...), err
}

// read returns the scenarios of a file.
func (s shelf) read(name, text string) []Item {
	text, _, _ = strings.Cut(text, "\n-- ") // files that a script brings along
	base := strings.TrimSuffix(path.Base(name), s.suffix)
	var all []Item
	var part strings.Builder
	first, title, comment, before := 1, "", "", ""
	end := func(next int) {
		if strings.Contains(part.String(), s.expects) {
			all = append(all, Item{Kind: s.kind, Name: strings.TrimSpace(base + ": " + title),
				Where: fmt.Sprintf("%s:%d", name, first), shingles: shingles(words(part.String()))})
		}
		part.Reset()
		first, title = next, comment
	}
	for i, line := range strings.Split(text, "\n") {
		text, isComment := strings.CutPrefix(line, "#")
		if isComment && !strings.HasPrefix(before, "#") {
			comment = strings.TrimSpace(text) // its first line
		}
		if s.opens != nil && s.opens(line, before) {
			end(i + 1)
		}
		if before = line; isComment {
			continue
		}
		part.WriteString(line + "\n")
	}
	end(0)
	return all
}
