package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/sim"
)

// tracer writes a trace; the zero value writes none.
type tracer struct {
	file   *os.File
	out    *bufio.Writer
	failed error // nothing is written after it
}

// traceTo lets a world write its trace to a file, if there is to be one. It is opened for
// writing alone: a pipe is broken when its reader has gone, and full for ever if we can read it.
func traceTo(path string, config *sim.Config) (*tracer, error) {
	t := &tracer{}
	switch path {
	case "":
		return t, nil
	case "-":
		return t, fmt.Errorf("--trace: %w", cli.ErrDash)
	}
	var err error
	if t.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
		return t, err
	}
	t.out = bufio.NewWriter(t.file)
	config.Trace = func(e sim.Entry) {
		if _, err := fmt.Fprintln(t.out, e); t.failed == nil {
			t.failed = err
		}
	}
	return t, nil
}

// close writes what is left, and tells the first error.
func (t *tracer) close() error {
	if t.file == nil {
		return nil
	}
	if err := t.out.Flush(); err != nil {
		return errors.Join(fmt.Errorf("trace %s: %w", t.file.Name(), err), t.file.Close())
	}
	return t.file.Close()
}
