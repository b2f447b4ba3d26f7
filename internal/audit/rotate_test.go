package audit_test

import (
	"bufio"
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
	"github.com/godwit-vm/godwit/internal/testutil"
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

// writerKey names the log that a process of this test writes until it is killed.
const writerKey = "GODWIT_TEST_AUDIT_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerKey); path != "" {
		fmt.Fprintln(os.Stderr, write(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// write adds lines, and says which are on disk.
func write(path string) error {
	f, err := audit.OpenRotating(path, audit.Rotation{MaxSize: 300, Keep: 1 << 20})
	for n := 1; err == nil; n++ {
		if err = f.Append(audit.Line{Kind: audit.NoteKind, What: "x"}); err == nil {
			_, err = fmt.Println(n)
		}
	}
	return err
}

// TestAKillInARotationLosesNothing: a process that rotates at every second line is killed at any
// moment, and every line that it has said to be on disk is in the files, in order.
func TestAKillInARotationLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	said := 0
	for round := range testutil.Rounds(t, 25, 200) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), writerKey+"="+path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 + round%7 {
			if lines.Scan() {
				said++
			}
		}
		_ = c.Process.Signal(syscall.SIGKILL)
		for lines.Scan() { // what it has said before it died
			said++
		}
		_ = c.Wait()
		text, numbers := whole(t, path)
		s := verify(t, text)
		if len(s.Findings) > 0 || s.First > 1 || s.Lines < said {
			t.Fatalf("round %d: %d were on disk, files %v: %+v", round, said, numbers, s)
		}
		said = s.Lines // the last may have been on disk, and not said
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
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
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
	for mode, ok := range map[os.FileMode]bool{0o777: false, 0o777 | os.ModeSticky: true,
		0o755: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if ok {
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
