package audit_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

func open(t testing.TB, path string) *audit.File {
	t.Helper()
	f, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func add(t testing.TB, f *audit.File, what string) {
	t.Helper()
	if err := f.Append(audit.Line{Kind: audit.NoteKind, What: what}); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, text []byte) audit.Summary {
	t.Helper()
	s, err := audit.Verify(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// lines returns what is in a log.
func lines(t testing.TB, path string) (all []audit.Line) {
	t.Helper()
	if _, err := audit.Read(bytes.NewReader(read(t, path)), func(l audit.Line) error {
		all = append(all, l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTornAtAnyByte: wherever a crash tears the file, what was whole stays, the numbers go
// on, and the log is sound.
func TestTornAtAnyByte(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	f := open(t, whole)
	for _, what := range []string{"one", "two"} {
		add(t, f, what)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text := read(t, whole)
	for n := bytes.IndexByte(text, '\n') - 2; n <= len(text); n += 1 + len(text)/60 {
		path := filepath.Join(dir, "torn")
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		kept := bytes.Count(text[:n], []byte("\n"))
		f := open(t, path)
		add(t, f, "after")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		after := read(t, path)
		if !bytes.HasPrefix(after, text[:n]) {
			t.Fatalf("torn after %d bytes, what was there has changed", n)
		}
		s := verify(t, after)
		want := kept + 1
		if n < len(text) && text[n] == '\n' { // it lacks nothing but its end: it is whole
			want++
		}
		if len(s.Findings) > 0 || s.Lines != want {
			t.Fatalf("torn after %d bytes of %d: %+v, want %d lines", n, len(text), s, want)
		}
	}
}

// TestWhatIsForgedIsFound takes lines out, swaps and changes them.
func TestWhatIsForgedIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	for _, what := range []string{"one", "two", "three", "four"} {
		add(t, f, what)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text := string(read(t, path))
	if s := verify(t, []byte(text)); len(s.Findings) > 0 || s.First != 1 || s.Last != 4 {
		t.Fatalf("untouched: %+v", s)
	}
	lines := strings.SplitAfter(text, "\n")
	for name, forged := range map[string]string{
		"a line is taken out":   lines[0] + lines[2] + lines[3],
		"two lines are swapped": lines[0] + lines[2] + lines[1] + lines[3],
		"a word is changed":     strings.Replace(text, "two", "six", 1),
		"a line is put in":      lines[0] + lines[0] + lines[1] + lines[2] + lines[3],
		"a line is emptied":     lines[0] + "\n" + lines[2] + lines[3],
	} {
		if s := verify(t, []byte(forged)); len(s.Findings) == 0 {
			t.Errorf("%s, and nothing is found", name)
		}
	}
}

// TestRotation: after the file was moved away numbers and hashes go on in a new one.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	add(t, f, "one")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	add(t, f, "two")
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	add(t, f, "three")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(audit.Line{}); err == nil || f.Err() == nil {
		t.Error("a closed log takes lines")
	}
	s := verify(t, append(read(t, path+".1"), read(t, path)...))
	if len(s.Findings) > 0 || s.Lines != 3 || s.Last != 3 {
		t.Errorf("the two files together: %+v", s)
	}
	about, err := os.Stat(path)
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", about.Mode(), err)
	}
}

// TestNoLineIsTooLongToBeRead, and none comes between two others.
func TestNoLineIsTooLongToBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	long := audit.Line{What: strings.Repeat("\x00", 1<<20)}
	for range 1000 {
		long.Reasons = append(long.Reasons, hypervisor.Reason{Have: strings.Repeat("\x01", 1<<16)})
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				if err := f.Append(long); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s := verify(t, read(t, path)); s.Lines != 12 || len(s.Findings)+s.Torn > 0 {
		t.Errorf("%+v", s)
	}
	f = open(t, path)
	add(t, f, "after")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s := verify(t, read(t, path)); s.Last != 13 {
		t.Errorf("after it was opened again: %+v", s)
	}
}

// TestAFullDiskIsAnError that stays until a line can be written.
func TestAFullDiskIsAnError(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	f := open(t, "/dev/full")
	defer f.Close()
	if err := f.Append(audit.Line{What: "x"}); err == nil || f.Err() == nil {
		t.Error("a full disk takes lines")
	}
}

// TestATrailSaysWhoWroteWhatAndWhy: every writing but heartbeats is a line.
func TestATrailSaysWhoWroteWhatAndWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	trail := &audit.History{File: f, By: "controller/a", Now: time.Now,
		Term: func() uint64 { return 7 }}
	records, ctx := trail.Over(store.NewMemory()), context.Background()
	put := func(r store.Record) store.Record {
		t.Helper()
		stored, err := records.Put(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	m := put(&store.Migration{Spec: migration.Spec{ID: "default/web#1", VM: "default/web"}})
	put(&store.Lease{Owner: "host/n1"})
	next := *m.(*store.Migration)
	next.State.Phase, next.State.Because = migration.Failed, "conflict"
	next.Decision = &placement.Decision{Why: []hypervisor.Reason{{Check: "memory"}}}
	m = put(&next)
	if _, err := records.Put(ctx, &next); err == nil {
		t.Fatal("a stale writing is accepted")
	}
	trail.Note(time.Now(), "", "default/web", "Pending → Failed")
	if err := records.Delete(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := lines(t, path)
	if len(got) != 4 {
		t.Fatalf("%d lines, want 4: %+v", len(got), got)
	}
	l := got[1]
	if l.What != "asked for → Failed: conflict" || l.Was != 1 || l.Version != 3 || l.Term != 7 ||
		l.By != "controller/a" || l.Record != "migration default/web#1" ||
		l.Migration != "default/web#1" || len(l.Reasons) != 1 {
		t.Errorf("the failure is told as %+v", l)
	}
	if got[2].Kind != audit.NoteKind || got[3].What != "deleted" || got[3].Version != 0 {
		t.Errorf("note and deletion are told as %+v", got[2:])
	}
}

// TestVerifyNeverPanics, whatever the file.
func TestVerifyNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte("{}\"seq:1,\n\x00x"))).Draw(t, "text")
		if _, err := audit.Verify(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	})
}
