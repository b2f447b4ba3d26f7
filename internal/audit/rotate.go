package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/durable"
)

// A Rotation says when a file is full, and how many full ones are kept: FILE.1 is the newest, and
// the oldest is removed. The zero value is no rotation.
type Rotation struct {
	MaxSize int64 // in bytes; 0 is no rotation
	Keep    int   // at least 1

	stepped func() // is called after each step of a rotation, if it is set
}

// did says that a step of a rotation was done.
func (r *Rotation) did() {
	if r.stepped != nil {
		r.stepped()
	}
}

// older returns the name of the nth file before the one that is written.
func older(path string, n int) string { return path + "." + strconv.Itoa(n) }

// Rotate moves the file away when it is full, and goes on in a new one. A crash at any moment
// loses no line: a file is renamed, and never copied. A Recorder calls it between two looks.
func (f *File) Rotate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		f.unrotated = f.rotate()
	}
}

// betweenLooks rotates, and lets no line of a look do it: a replay needs whole looks.
func (f *File) betweenLooks() {
	f.mu.Lock()
	f.recorded = true
	f.mu.Unlock()
	f.Rotate()
}

// rotate does what Rotate does. After an error the old file is written on.
func (f *File) rotate() error {
	about, err := f.file.Stat()
	if err != nil || f.rotation.MaxSize <= 0 || about.Size() < f.rotation.MaxSize {
		return err
	}
	named, err := os.Lstat(f.path)
	switch {
	case err == nil && os.SameFile(about, named):
		err = errors.Join(f.rotation.trim(f.path), f.rotation.shift(f.path))
	case errors.Is(err, fs.ErrNotExist): // it was moved away: only the new one is missing
		err = nil
	}
	if err != nil {
		return fmt.Errorf("audit log %s: it is full, and is not rotated: %w", f.path, err)
	}
	return f.reopen()
}

// mostKept bounds the numbers that are taken for ours. A date is more.
const mostKept = 1_000_000

// trim removes the files that are more than are kept, the oldest first: more were kept before. What
// does not begin as an audit log is left alone.
func (r *Rotation) trim(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var more []int
	for _, f := range files {
		text, is := strings.CutPrefix(f.Name(), filepath.Base(path)+".")
		n, err := strconv.Atoi(text)
		if is && err == nil && n > r.Keep && n < mostKept && older(path, n) == path+"."+text {
			more = append(more, n)
		}
	}
	slices.Sort(more)
	for _, n := range slices.Backward(more) {
		if !begins(older(path, n)) {
			continue
		}
		if err := os.Remove(older(path, n)); err != nil {
			return err
		}
		r.did()
	}
	return nil
}

// begins reports whether a file's first line is one of an audit log.
func begins(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	text, _ := bufio.NewReader(io.LimitReader(f, maxLine)).ReadBytes('\n')
	_, err = parse(bytes.TrimSuffix(text, []byte("\n")))
	return err == nil
}

// shift gives each file the next number, from the first that is free on. Where a crash has left a
// number free, those after it keep theirs.
func (r *Rotation) shift(path string) error {
	free := 1
	for free < r.Keep {
		_, err := os.Lstat(older(path, free))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		free++
	}
	for n := free; n > 1; n-- {
		if err := os.Rename(older(path, n-1), older(path, n)); err != nil {
			return err
		}
		r.did()
	}
	if err := os.Rename(path, older(path, 1)); err != nil {
		return err
	}
	r.did()
	return durable.Sync(filepath.Dir(path))
}

// openPrivate opens a file to add to, or makes it, that only its owner may read. A link is not
// followed, and a directory in which others could put another file in its place is refused.
// It returns the mode that a file had that was open to others; 0 is that it was not.
func openPrivate(path string) (*os.File, os.FileMode, error) {
	if err := closed(filepath.Dir(path)); err != nil {
		return nil, 0, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|
		unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, 0, fmt.Errorf("%s is a symbolic link, and is not followed: name the file itself",
			path)
	}
	if err != nil {
		return nil, 0, err
	}
	mode, err := private(file)
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, mode, nil
}

// private refuses what is no file of ours, and closes to others one that is open to them, whose mode
// it returns.
func private(file *os.File) (open os.FileMode, err error) {
	about, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if about.Mode()&os.ModeCharDevice != 0 {
		return 0, nil // such as /dev/null: it keeps nothing
	}
	if !about.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is no file: name a file", file.Name())
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return 0, err
	}
	if int(s.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("%s belongs to user %d, and not to %d, which runs this: move it away, "+
			"or chown it", file.Name(), s.Uid, os.Geteuid())
	}
	if about.Mode().Perm()&0o077 == 0 {
		return 0, nil
	}
	if err := file.Chmod(0o600); err != nil {
		return 0, fmt.Errorf("%s has mode %04o and is open to others: chmod 0600: %w", file.Name(),
			about.Mode().Perm(), err)
	}
	return about.Mode().Perm(), nil
}

// closed refuses a directory in which others may replace files: one that all may write to, and in
// which not only a file's owner may remove it.
func closed(dir string) error {
	about, err := os.Stat(dir)
	if err != nil {
		return nil // opening the file says it
	}
	if m := about.Mode(); m.Perm()&0o002 != 0 && m&os.ModeSticky == 0 {
		return fmt.Errorf("%s has mode %04o, and others could replace the file: chmod o-w, or "+
			"choose another directory", dir, m.Perm())
	}
	return nil
}
