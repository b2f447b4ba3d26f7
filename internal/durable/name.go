package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// The ends of the names of what a process was at when it died.
const (
	// Unfinished ends the name of a record that is being written.
	Unfinished = ".new"
	// Gone ends the name of a directory that is being removed.
	Gone = ".gone"
)

// Name returns a name for a file: the readable beginning of id, and a digest. It is
// at most 33 bytes long, so that a socket fits below it, and no two ids share one.
func Name(id string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, id)
	sum := sha256.Sum256([]byte(id))
	return plain[:min(len(plain), 16)] + "." + hex.EncodeToString(sum[:8])
}

// Ours reports whether a file has a name as [Name] makes them.
func Ours(file string) bool {
	dot := strings.LastIndexByte(file, '.')
	sum, err := hex.DecodeString(file[dot+1:])
	return dot >= 0 && err == nil && len(sum) == 8
}

// Text refuses an id that cannot be kept: it would come back as another one.
func Text(id string) error {
	if !utf8.ValidString(id) {
		return fmt.Errorf("the id %q is no text in UTF-8: choose another", id)
	}
	return nil
}

// Swept removes the file at path if it is a record of ours that a process died
// writing, and reports whether it is one.
func Swept(path string) (bool, error) {
	whole, half := strings.CutSuffix(filepath.Base(path), Unfinished)
	if !half || !Ours(whole) {
		return false, nil
	}
	return true, os.Remove(path)
}

// SweptDir removes the directory at path if it is one of ours that a process died
// removing, and reports whether it is one.
func SweptDir(path string) (bool, error) {
	whole, half := strings.CutSuffix(filepath.Base(path), Gone)
	if !half || !Ours(whole) {
		return false, nil
	}
	return true, os.RemoveAll(path)
}

// RemoveDir removes a directory and all that is in it. If the process dies in the
// middle of it, the directory is gone, and what is left is for [SweptDir]. What is not
// there is no error.
func RemoveDir(dir string) error {
	if err := os.RemoveAll(dir + Gone); err != nil {
		return err
	}
	if err := os.Rename(dir, dir+Gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir + Gone)
}
