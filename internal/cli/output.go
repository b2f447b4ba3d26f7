package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// ErrDash refuses "-" as the name of a file: others mean the standard output by it, where the
// answer itself is.
var ErrDash = errors.New(`"-" is no file: name one, the standard output has the answer`)

// Check returns an error when a file could not be written now, or when it is one of those that
// the command reads or writes besides: see [Apart]. The path "" is no file.
func Check(path string, besides ...string) error {
	if path == "-" {
		return ErrDash
	}
	if path == "" || streams(path) {
		return nil
	}
	if err := Apart(path, besides...); err != nil {
		return err
	}
	part, _, err := begin(path)
	if err != nil {
		return err
	}
	return errors.Join(part.Close(), os.Remove(part.Name()))
}

// Apart returns an error when a file is one of several others, by whatever name: what was read
// would be lost. Pipes and devices lose nothing.
func Apart(path string, others ...string) error {
	if path == "" || path == "-" || streams(path) {
		return nil
	}
	for _, other := range others {
		if other != "" && same(path, other) {
			return fmt.Errorf("%s is an input of this command: it would be lost; name another file", path)
		}
	}
	return nil
}

// same reports whether two names of files, which need not be there, are one.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, failed := os.Stat(b)
	if err == nil && failed == nil {
		return os.SameFile(x, y)
	}
	a, err = filepath.Abs(a)
	b, failed = filepath.Abs(b)
	return err == nil && failed == nil && a == b
}

// Write lets a function write a file, which has its old contents, or none, unless that
// succeeds. Pipes and devices are written as they are.
func Write(path string, write func(io.Writer) error) error {
	if streams(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	part, whole, err := begin(path)
	if err != nil {
		return err
	}
	if err = write(part); err == nil { // a name without its contents would be worse than none
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), whole)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s is not written: %w", path, err),
			os.Remove(part.Name()))
	}
	return nil
}

// streams reports whether a path is that of a pipe or a device: opening one to see whether
// that is possible would wait for its reader, or end it.
func streams(path string) bool {
	at, err := os.Stat(path)
	return err == nil && !at.Mode().IsRegular() && !at.IsDir()
}

// begin opens a file beside the one that it becomes, which is where links lead.
func begin(path string) (part *os.File, whole string, err error) {
	whole, mode := path, fs.FileMode(0)
	if old, failed := os.OpenFile(path, os.O_WRONLY, 0); failed == nil {
		at, unknown := old.Stat()
		whole, err = filepath.EvalSymlinks(path)
		if err = errors.Join(err, unknown, old.Close()); err != nil {
			return nil, "", err
		}
		mode = at.Mode().Perm()
	} else if !errors.Is(failed, fs.ErrNotExist) {
		return nil, "", failed
	}
	part, err = os.OpenFile(fmt.Sprintf("%s.part-%08x", whole, rand.Uint32()),
		os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if e, is := errors.AsType[*fs.PathError](err); is {
		e.Path = path // the name of the part file would not help
	}
	if err != nil || mode == 0 {
		return part, whole, err
	}
	if err = part.Chmod(mode); err != nil {
		return nil, "", errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	return part, whole, nil
}
