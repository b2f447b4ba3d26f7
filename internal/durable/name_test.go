package durable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/durable"
)

// hostile are ids that would leave the directory, or look like another, if they
// were names of files.
var hostile = []string{"", ".", "..", "/", "../x", "a/b", "a-b", "a.b", "A/b", "\x00", "x\x00y",
	"lock", "a.new", "a.gone", strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10+1),
	"größe", "gröse", "\u202e", "\xff", "\ufffd", " ", "a "}

// TestNames: every id has a name of its own, which is short, is no path, and is not
// taken for a leftover.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	check := func(t interface{ Errorf(string, ...any) }, id string) {
		name := durable.Name(id)
		if other, taken := seen[name]; taken && other != id {
			t.Errorf("%q and %q share %s", id, other, name)
		}
		seen[name] = id
		if len(name) > 33 || filepath.Base(name) != name || strings.HasPrefix(name, "..") ||
			strings.HasSuffix(name, durable.Unfinished) || strings.HasSuffix(name, durable.Gone) {
			t.Errorf("%q has %q", id, name)
		}
		if !durable.Ours(name) {
			t.Errorf("%q has %q, which is not ours", id, name)
		}
	}
	for _, id := range hostile {
		check(t, id)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "id")) })
}

// TestNamesAreKept: what is on disk must be found by later versions.
func TestNamesAreKept(t *testing.T) {
	for id, want := range map[string]string{"default/web": "default-web.82b3ade9d00cd164",
		"": ".e3b0c44298fc1c14"} {
		if got := durable.Name(id); got != want {
			t.Errorf("%q has %s, want %s", id, got, want)
		}
	}
}

func TestOthersNamesAreNotOurs(t *testing.T) {
	for _, file := range []string{"", "domain", "lock", "notes.new", "lost+found",
		"0123456789abcdef", "a.0123456789abcde", "a.0123456789abcdef0", "a.0123456789abcdeg",
		"a.0123456789abcdef.new",
		"a.01234567", "a.0123456789abcdef01"} {
		if durable.Ours(file) {
			t.Errorf("%q is taken for ours", file)
		}
	}
}

func TestTextRefusesWhatWouldComeBackAsAnother(t *testing.T) {
	for id, kept := range map[string]bool{"": true, "a/b": true, "ü\x00": true, "\xff": false,
		"a\xc3": false} {
		if err := durable.Text(id); (err == nil) != kept {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestSweeping: what a process left when it died is removed, and nothing else.
func TestSweeping(t *testing.T) {
	name := durable.Name("vm")
	for _, row := range []struct {
		name       string
		file       string
		swept, dir bool
	}{
		{"a record that was being written", name + durable.Unfinished, true, false},
		{"a directory that was being removed", name + durable.Gone, true, true},
		{"a record", name, false, false},
		{"a directory", name, false, true},
		{"an operator's notes", "notes" + durable.Unfinished, false, false},
		{"an operator's directory", "things" + durable.Gone, false, true},
		{"a directory that looks like a record", name + durable.Unfinished, false, true},
		{"a record that looks like a directory", name + durable.Gone, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			path, sweep := filepath.Join(private(t), row.file), durable.Swept
			if row.dir {
				sweep = durable.SweptDir
				must(t, durable.Private(filepath.Join(path, "sub")))
			} else {
				must(t, os.WriteFile(path, nil, 0o600))
			}
			swept, err := sweep(path)
			_, left := os.Lstat(path)
			if swept != row.swept || err != nil || os.IsNotExist(left) != row.swept {
				t.Errorf("swept %t, %v, %v", swept, err, left)
			}
		})
	}
}

func TestRemoveDir(t *testing.T) {
	parent := private(t)
	dir := filepath.Join(parent, durable.Name("vm"))
	for _, before := range []string{dir, dir + durable.Gone, "none"} {
		if before != "none" {
			must(t, durable.Private(filepath.Join(before, "sub")))
		}
		must(t, durable.RemoveDir(dir))
		if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
			t.Errorf("after %s: left %v, %v", before, left, err)
		}
	}
}
