package audit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/internal/audit"
)

// whole returns all files of a log, joined, the oldest first, and their numbers.
func whole(t *testing.T, path string) (text []byte, numbers []int) {
	t.Helper()
	files, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		n, err := strconv.Atoi(strings.TrimPrefix(f, path+"."))
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		text = append(text, read(t, fmt.Sprintf("%s.%d", path, n))...)
	}
	if _, err := os.Stat(path); err == nil {
		text = append(text, read(t, path)...)
	}
	return text, numbers
}

// TestAFullFileIsRotated: numbers and hashes go on, and only the oldest lines are given up.
func TestAFullFileIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const all, size = 200, 2000
	for range 2 { // a process after the other
		f, err := audit.OpenRotating(path, audit.Rotation{MaxSize: size, Keep: 3})
		if err != nil {
			t.Fatal(err)
		}
		for range all {
			add(t, f, "something")
		}
		if err := errors.Join(f.Err(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	text, numbers := whole(t, path)
	if !slices.Equal(numbers, []int{1, 2, 3}) {
		t.Errorf("kept %v", numbers)
	}
	if s := verify(t, text); len(s.Findings) > 0 || s.Last != 2*all || s.Torn > 0 {
		t.Errorf("the files together: %+v", s)
	}
	for _, n := range numbers {
		about, err := os.Stat(fmt.Sprintf("%s.%d", path, n))
		if err != nil || about.Mode().Perm() != 0o600 || about.Size() < size ||
			about.Size() > 2*size {
			t.Errorf("file %d: %v, %v", n, about, err)
		}
	}
}

// TestAFileThatCannotBeRotatedIsWrittenOn, and it is told of.
func TestAFileThatCannotBeRotatedIsWrittenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := audit.OpenRotating(path, audit.Rotation{MaxSize: 500, Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.MkdirAll(path+".1/in the way", 0o700); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		add(t, f, "something")
	}
	if f.Unrotated() == nil || f.Err() != nil || !strings.Contains(f.Unrotated().Error(), "is not rotated") {
		t.Errorf("got %v, %v", f.Unrotated(), f.Err())
	}
	if s := verify(t, read(t, path)); s.Lines != 20 {
		t.Errorf("%d lines, want 20", s.Lines)
	}
	if err := os.RemoveAll(path + ".1"); err != nil {
		t.Fatal(err)
	}
	add(t, f, "something")
	if s := verify(t, read(t, path)); f.Unrotated() != nil || s.Lines != 1 {
		t.Errorf("then: %v, %d lines", f.Unrotated(), s.Lines)
	}
}

// writerKey names the log that a process of this test writes, and diesKey after which step of its
// rotations it kills itself.
const (
	writerKey = "GODWIT_TEST_AUDIT_WRITER"
	diesKey   = "GODWIT_TEST_AUDIT_DIES"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerKey); path != "" {
		if err := write(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const full = 300 // bytes: two lines are more

// write adds a few lines, and says which are on disk. Each second one makes the file full.
func write(path string) error {
	left, err := strconv.Atoi(os.Getenv(diesKey))
	if err != nil {
		return err
	}
	f, err := audit.OpenRotating(path, audit.Rotation{MaxSize: full, Keep: 3}.Stepped(func() {
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}))
	for n := 1; n <= 5 && err == nil; n++ {
		if err = f.Append(audit.Line{Kind: audit.NoteKind, What: "something that is long"}); err == nil {
			_, err = fmt.Println(n)
		}
	}
	return err
}

// TestAKillInARotationLosesNothing: a process is killed after each step of a rotation that also removes
// files which are more than are kept. Every line that it has said to be on disk is in the files then, in
// order, and the next process goes on.
func TestAKillInARotationLosesNothing(t *testing.T) {
	steps := 0
	for killed := true; killed; {
		steps++
		path := filepath.Join(t.TempDir(), "log")
		said := fill(t, path, 6, 14)
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), writerKey+"="+path, fmt.Sprint(diesKey, "=", steps))
		out, err := c.Output()
		if said += strings.Count(string(out), "\n"); err != nil && c.ProcessState.ExitCode() != -1 {
			t.Fatalf("%v: %s", err, out)
		}
		killed = err != nil
		text, numbers := whole(t, path)
		if s := verify(t, text); len(s.Findings) > 0 || s.Torn > 0 || s.Last != uint64(said) {
			t.Errorf("killed after step %d: %d were on disk, files %v: %+v", steps, said, numbers, s)
		}
		said = fill(t, path, 3, 4)
		text, numbers = whole(t, path)
		if s := verify(t, text); len(s.Findings) > 0 || s.Last != uint64(said) {
			t.Errorf("killed after step %d, and then: files %v: %+v", steps, numbers, s)
		}
		if !slices.Equal(numbers, []int{1, 2, 3}) {
			t.Errorf("killed after step %d: files %v, want 1, 2 and 3", steps, numbers)
		}
	}
	// Three files are removed, three renamed, the log itself is, and its directory is synced; the new
	// one is opened, and the old one closed. A second rotation removes none.
	if steps < 3+3+1+1+1+1 {
		t.Errorf("%d steps were seen", steps)
	}
}

// fill adds lines in this process, and returns the number of the last.
func fill(t *testing.T, path string, keep, lines int) int {
	t.Helper()
	f, err := audit.OpenRotating(path, audit.Rotation{MaxSize: full, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	for range lines {
		add(t, f, "something that is long")
	}
	if err := errors.Join(f.Err(), f.Unrotated(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return int(verify(t, read(t, path)).Last)
}

// TestFewerAreKept: what is more than are kept now is removed, and what only looks so is not.
func TestFewerAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	fill(t, path, 8, 30)
	others := []string{path + ".20260501", path + ".07", path + ".9", path + ".txt", path + ".-5"}
	for _, other := range others {
		if err := os.WriteFile(other, []byte("of another user\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := fill(t, path, 2, 4)
	for _, other := range others {
		if text, err := os.ReadFile(other); err != nil || string(text) != "of another user\n" {
			t.Errorf("%s: %q, %v", other, text, err)
		}
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
	}
	text, numbers := whole(t, path)
	if s := verify(t, text); len(s.Findings) > 0 || s.Last != uint64(said) {
		t.Errorf("the files together: %+v", s)
	}
	if !slices.Equal(numbers, []int{1, 2}) {
		t.Errorf("kept %v", numbers)
	}
}

// TestWhatCannotBeFollowedIsRefused: numbers that begin anew would hide that lines are missing.
func TestWhatCannotBeFollowedIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":          func(path string) error { return os.Symlink("/dev/null", path) },
		"a pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"something else":  func(path string) error { return os.WriteFile(path, []byte("else\n"), 0o600) },
		"a link to a log": func(path string) error { return os.Symlink("log.2", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			said := fill(t, path, 3, 9)
			if err := errors.Join(os.Rename(path, path+".new"), os.Rename(path+".1", path+".old"),
				spoil(path+".1")); err != nil {
				t.Fatal(err)
			}
			f, err := audit.Open(path)
			if err == nil {
				_ = f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "the numbers go on from those of "+path+".1") {
				t.Errorf("got %v", err)
			}
			if err := errors.Join(os.RemoveAll(path+".1"), os.Rename(path+".new", path+".1")); err != nil {
				t.Fatal(err)
			}
			f = open(t, path)
			add(t, f, "it goes on")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if s := verify(t, read(t, path)); s.First != uint64(said+1) {
				t.Errorf("it goes on with %d after %d", s.First, said)
			}
		})
	}
}

// TestAFileIsOurs: links are not followed, and what is open to others is closed or refused.
func TestAFileIsOurs(t *testing.T) {
	refused := func(path, why string) {
		t.Helper()
		f, err := audit.Open(path)
		if err == nil {
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q", err, why)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, want := range []os.FileMode{0o666, 0} { // it is told once
		f := open(t, path)
		if got := f.Exposed(); got != want {
			t.Errorf("it was open to others with mode %04o, want %04o", got, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("an open mode became %v, %v", about.Mode(), err)
	}
	link := filepath.Join(dir, "link")
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(path, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	refused(link, "is a symbolic link, and is not followed")
	refused(pipe, "is no file")
	for _, row := range []struct {
		mode os.FileMode
		ok   bool
	}{{0o777, false}, {0o777 | os.ModeSticky, true}, {0o755, true}} { // the last one stays
		if err := os.Chmod(dir, row.mode); err != nil {
			t.Fatal(err)
		}
		if row.ok {
			if err := open(t, path).Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		refused(path, "others could replace the file")
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
		refused(path, "belongs to user 65534")
	}
}
