package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxRecord bounds what is written and read as one record, in bytes. It is more than the largest record of a store
// takes, with what is kept beside it.
const maxRecord = 2 << 20

// Write replaces the record at path by v, and, when synced, so that it survives a loss
// of power, too. One that would not be read again is refused, and the old one stays.
func Write(path string, v any, synced bool) error {
	text, err := textOf(v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return WriteText(path, text, synced)
}

// textOf returns the text of a record: in lines for people, unless it is too large so.
func textOf(v any) ([]byte, error) {
	lines, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return nil, err
	}
	if text := append(summed(lines), '\n'); len(text) <= maxRecord {
		return text, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if body, is := bytes.CutSuffix(text, []byte("}")); is { // so that it has a sum, too
		text = append(body, "\n}"...)
	}
	if text = append(summed(text), '\n'); len(text) > maxRecord {
		return nil, fmt.Errorf("it has %d bytes, and a record has %d at most", len(text), maxRecord)
	}
	return text, nil
}

// WriteText replaces the file at path by a text that only we can read: a reader finds the old one
// or the new one. When synced it survives a loss of power, too.
func WriteText(path string, text []byte, synced bool) (err error) {
	f, err := os.OpenFile(path+Unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(path + Unfinished)
		}
	}()
	_, err = f.Write(text)
	if err == nil { // a name without its contents would be worse than the old file
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+Unfinished, path); err != nil || !synced {
		return err
	}
	return Sync(filepath.Dir(path))
}

// Create writes a new file that only we can read, whole or not at all, so that it survives a loss of
// power. A file of that name is never replaced: then the error is fs.ErrExist.
func Create(path string, text []byte) error {
	return finish(path, text, func(unfinished string) error {
		return errors.Join(os.Link(unfinished, path), os.Remove(unfinished))
	})
}

// Place is Create for a file that takes the place of what is there.
func Place(path string, text []byte) error {
	return finish(path, text, func(unfinished string) error { return os.Rename(unfinished, path) })
}

// finish writes a file under a name of its own, and then lets it get its name.
func finish(path string, text []byte, name func(unfinished string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // of the mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = name(f.Name()); err != nil {
		return err
	}
	return Sync(dir)
}

// Sync writes what is cached of a file, or of a directory: the names in it.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Read fills v from the record at path, and says where in it something is wrong. A file
// that is not there is fs.ErrNotExist; a field that v does not have, a file that is
// too large and what is no file, but a link, a pipe or a directory, are refused.
func Read(path string, v any) error {
	// Without O_NONBLOCK a pipe that was put there would make us wait for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || !i.Mode().IsRegular() {
		return fmt.Errorf("%s is no file: move it away", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case len(text) > maxRecord:
		return fmt.Errorf("%s: it has more than %d bytes and is no record", path, maxRecord)
	}
	text, changed := unsummed(text)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	at := dec.InputOffset()
	if _, end := dec.Token(); err == nil && end != io.EOF {
		return fmt.Errorf("%s:%d: there is something after the record: repair the file or "+
			"move it away", path, line(text, at))
	}
	if err == nil && changed != nil {
		return fmt.Errorf("%s: %w: repair the file or move it away", path, changed)
	}
	if err == nil {
		return nil
	}
	where := path // of an unknown field the decoder says the name and not the place
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		where = fmt.Sprintf("%s:%d", path, line(text, syntax.Offset))
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where = fmt.Sprintf("%s:%d", path, line(text, kind.Offset))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		where = fmt.Sprintf("%s:%d", path, line(text, int64(len(text))))
	}
	return fmt.Errorf("%s: %w: repair the file or move it away", where, err)
}

// line returns the number of the line of text that an offset is in.
func line(text []byte, at int64) int {
	return 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
}
