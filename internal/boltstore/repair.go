package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// A Summary is what the file of a store holds.
type Summary struct {
	Size    int64 // bytes
	Records int
	// Last is the last revision that was given when the file was written.
	Last store.Revision
	// Cluster and Epoch are those of its history. Default: it has none yet.
	Cluster string
	Epoch   uint64
	// Wrong is all that is wrong with the file, what matters most first. Default: it is whole.
	Wrong []error
}

// String sums it up in a line.
func (s Summary) String() string {
	text := fmt.Sprintf("%d bytes, %d records, as of revision %d", s.Size, s.Records, s.Last)
	if s.Cluster != "" {
		text += fmt.Sprintf(", cluster %s, epoch %d", s.Cluster, s.Epoch)
	}
	return text
}

// Examine reads and checks the text of a file.
func Examine(text []byte) Summary {
	c, wrong := inspect(bytes.NewReader(text), int64(len(text)))
	s := Summary{Size: int64(len(text)), Records: len(c.records), Last: store.Revision(c.totals.last),
		Wrong: wrong}
	if c.history != nil {
		s.Cluster, s.Epoch = c.history.Cluster, c.history.Epoch
	}
	return s
}

// CheckFile reads and checks all of a file, and changes nothing. The error is that it cannot be read, or a
// *[LockedError] while another process has it open; what is wrong with it is in the summary.
func CheckFile(path string) (Summary, error) {
	text, err := readLocked(path)
	if err != nil {
		return Summary{}, err
	}
	return Examine(text), nil
}

// Copy writes a copy of a file that no process has open. It refuses one that is damaged.
func Copy(path string, w io.Writer) (int64, error) {
	text, err := readLocked(path)
	if err != nil {
		return 0, err
	}
	if wrong := Examine(text).Wrong; len(wrong) > 0 {
		return 0, &unreadable{path, wrong[0]}
	}
	n, err := w.Write(text)
	return int64(n), err
}

// readLocked reads a file that no other process has open for writing.
func readLocked(path string) ([]byte, error) {
	file, err := openLocked(path, os.O_RDONLY|unix.O_NONBLOCK, unix.LOCK_SH, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if i, err := file.Stat(); err != nil || !i.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file: name the file of a store", path)
	}
	return io.ReadAll(file)
}

// Restore puts a copy of a backup in the place of the file of a store, which no process may have open,
// and keeps that file under another name: "" is that there was none. A backup that is damaged, or that a
// newer godwit has written, is refused, and nothing is changed.
func Restore(backup, path string, now time.Time) (kept string, s Summary, err error) {
	text, err := readLocked(backup)
	if err != nil {
		return "", s, err
	}
	if s = Examine(text); len(s.Wrong) > 0 {
		return "", s, fmt.Errorf("%s: %w; nothing was changed: choose another backup", backup, s.Wrong[0])
	}
	dir := filepath.Dir(path)
	if err := durable.Owned(dir); err != nil {
		return "", s, err
	}
	old, err := openLocked(path, os.O_RDWR, unix.LOCK_EX, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", s, durable.Create(path, text) // a controller that begins now makes one itself
	case err != nil:
		return "", s, err
	}
	defer old.Close() // until then no controller opens it
	kept = path + ".replaced-" + now.UTC().Format("20060102T150405Z")
	if err := os.Link(path, kept); err != nil {
		return "", s, fmt.Errorf("keep the file that is there: %w", err)
	}
	return kept, s, durable.Place(path, text)
}

// Damaged reports whether an error says that a file is damaged, or that a newer godwit has written it.
func Damaged(err error) bool { return kindOf(err) == store.Unreadable }
