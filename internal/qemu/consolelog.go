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
// meanwhile: it appends, and so does this, so that nothing is written over. What comes in between may be lost,
// or be before what is kept. Source: QEMU 7.2 chardev/char.c (qemu_char_open, logappend: O_APPEND).
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
	kept := make([]byte, keptConsole)
	n, err := f.ReadAt(kept, at.Size()-keptConsole)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Write(kept[:n])
	return err
}
