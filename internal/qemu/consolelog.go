//go:build linux

package qemu

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// How large the log of a serial console may become, and how much of it is kept then, in bytes. Its guest decides
// what it writes there, and must not fill its host's file system.
const (
	mostConsole = 4 << 20
	keptConsole = 1 << 20
)

// CutConsoleLog cuts the log of a serial console to its end when it has become too large. QEMU may write to it
// meanwhile: it appends, so that it writes nothing over.
// Source: QEMU 7.2 chardev/char.c (qemu_char_open, logappend: O_APPEND).
func CutConsoleLog(path string) error {
	at, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && at.Size() <= mostConsole {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if collapse(f, at.Size()-keptConsole) == nil {
		return nil
	}
	return rewrite(f, at.Size())
}

// collapse takes the beginning out of a file, up to a block less than most. The file system does it at once: nothing
// else is lost when we die or the host does, and what is appended meanwhile comes after. Not every file system can.
// Source: Linux fallocate(2) (FALLOC_FL_COLLAPSE_RANGE: ext4, XFS).
func collapse(f *os.File, most int64) error {
	var of unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &of); err != nil {
		return err
	}
	if of.Bsize <= 0 || most < int64(of.Bsize) {
		return unix.EINVAL
	}
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_COLLAPSE_RANGE, 0, most-most%int64(of.Bsize))
}

// rewrite is collapse where the file system cannot. It appends, too. What comes in between may be lost, or be before
// what is kept, and all is lost when we die just then.
func rewrite(f *os.File, size int64) error {
	kept := make([]byte, keptConsole)
	n, err := f.ReadAt(kept, size-keptConsole)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Write(kept[:n])
	return err
}
