package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/durable"
)

// record is what these tests keep.
type record struct {
	ID    string
	Count int
}

// corruptions are what can become of a file, and what is said of it.
var corruptions = []struct {
	name  string
	spoil func(t *testing.T, path string)
	want  string // after the file
}{
	{"an empty file", write(""), ":1: EOF: repair the file or move it away"},
	{"garbage", write("\x00\x01garbage"), ":1: invalid character"},
	{"an unfinished object", write("{\n\t\"ID\": \"x\",\n"), ":3: unexpected EOF"},
	{"an unknown field", write("{\n\n\t\"Color\": 1\n}\n"), `: json: unknown field "Color"`},
	{"a field of the wrong type", write("{\n\t\"Count\":\n \"two\"\n}\n"),
		":3: json: cannot unmarshal string"},
	{"a number that is too large", write(`{"Count": 1e99}`), ":1: json: cannot unmarshal"},
	{"an array", write("[]"), ":1: json: cannot unmarshal array"},
	{"two records", write("{}\n{}"), ":1: there is something after the record"},
	{"a huge file", func(t *testing.T, path string) { must(t, os.Truncate(path, 1<<40)) },
		": it has more than 2097152 bytes"},
	{"a deep file", write(strings.Repeat("[", 1<<19)), ":1: "},
	{"a directory", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o700))
	}, " is no file: move it away"},
	{"a pipe without a writer", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, syscall.Mkfifo(path, 0o600))
	}, " is no file: move it away"},
	{"a link to the record", func(t *testing.T, path string) {
		away := filepath.Join(t.TempDir(), "record")
		must(t, os.Rename(path, away))
		must(t, os.Symlink(away, path))
	}, ": too many levels of symbolic links"},
}

func write(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }
}

func TestReadSaysWhatIsWrongAndWhere(t *testing.T) {
	for _, row := range corruptions {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(private(t), "record")
			must(t, durable.Write(path, record{ID: "x"}, false))
			row.spoil(t, path)
			err := durable.Read(path, new(record))
			if err == nil || !strings.Contains(err.Error(), path+row.want) {
				t.Errorf("got %v, want %q", err, path+row.want)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
	if err := durable.Read(filepath.Join(private(t), "none"), new(record)); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}

// TestWhatIsWrittenIsRead up to the largest record, and what would not be read is not written.
func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(private(t), "record")
	type deep struct{ All [][]int }
	list := func(n int) deep { return deep{slices.Repeat([][]int{{1}}, n)} }
	for _, n := range []int{1, 100_000, 500_000} { // of 4 bytes, and 13 in lines for people
		want, got := list(n), deep{}
		if err := errors.Join(durable.Write(path, want, false), durable.Read(path, &got)); err != nil {
			t.Fatalf("%d elements: %v", n, err)
		}
		if len(got.All) != n {
			t.Errorf("%d elements are read, want %d", len(got.All), n)
		}
		text, err := os.ReadFile(path)
		must(t, err)
		text[len(text)/2] ^= 3 // a digit is another one, or it is no JSON
		must(t, os.WriteFile(path, text, 0o600))
		if err := durable.Read(path, &got); err == nil {
			t.Errorf("%d elements, one of them changed: it is read", n)
		}
		must(t, durable.Write(path, want, false))
	}
	err := durable.Write(path, list(600_000), false)
	if err == nil || !strings.Contains(err.Error(), "a record has 2097152 at most") {
		t.Errorf("too large a record: %v", err)
	}
	var got deep
	if err := durable.Read(path, &got); err != nil || len(got.All) != 500_000 {
		t.Errorf("the record before it is %d elements, %v", len(got.All), err)
	}
}

// TestRoundTrip: what was written is what is read, and only we can read it.
func TestRoundTrip(t *testing.T) {
	dir := private(t)
	path := filepath.Join(dir, "record")
	rapid.Check(t, func(t *rapid.T) {
		want := record{rapid.String().Draw(t, "id"), rapid.Int().Draw(t, "count")}
		if durable.Text(want.ID) != nil {
			t.Skip("JSON cannot keep it")
		}
		var got record
		err := errors.Join(durable.Write(path, want, rapid.Bool().Draw(t, "synced")),
			durable.Read(path, &got))
		if got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
	i, err := os.Stat(path)
	if err != nil || i.Mode() != 0o600 {
		t.Errorf("%v, %v", i, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestAWriteThatFailsChangesNothing: the old record stays, and nothing unfinished.
func TestAWriteThatFailsChangesNothing(t *testing.T) {
	dir := private(t)
	path := filepath.Join(dir, "record")
	must(t, durable.Write(path, record{ID: "old"}, true))
	if err := durable.Write(path, func() {}, true); err == nil ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("a function was written: %v", err)
	}
	blocked := filepath.Join(dir, "blocked")
	must(t, durable.Private(filepath.Join(blocked, "full")))
	if err := durable.Write(blocked, record{}, true); err == nil {
		t.Error("a directory was replaced")
	}
	var got record
	must(t, durable.Read(path, &got))
	if got.ID != "old" {
		t.Errorf("got %+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+durable.Unfinished)); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestAnUnfinishedRecordIsWrittenOver: a process died while it wrote.
func TestAnUnfinishedRecordIsWrittenOver(t *testing.T) {
	path := filepath.Join(private(t), "record")
	must(t, os.WriteFile(path+durable.Unfinished, []byte(strings.Repeat("{", 100)), 0o600))
	must(t, durable.Write(path, record{ID: "new"}, false))
	var got record
	must(t, durable.Read(path, &got))
	if got.ID != "new" {
		t.Errorf("got %+v", got)
	}
}
