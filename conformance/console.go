package conformance

import (
	"errors"
	"io"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// consoles are cases about a host that is a [hypervisor.Consoler].
var consoles = []trial{
	{Name: "a VM that executes has one console, once at a time, which ends with it", Run: func(w *world) {
		w.Running()
		c := opensConsole(w, theVM)
		w.Refused(errOf(consoler(w).Console(w.Ctx, theVM)), hypervisor.Conflict)
		if _, err := c.Write([]byte("\r")); err != nil {
			w.T.Fatalf("type: %v", err)
		}
		w.Must(c.Close())
		w.Sound(source)
		var again io.ReadWriteCloser
		w.Until("it can be opened again", func() bool { // Close need not wait for the hypervisor
			var err error
			again, err = consoler(w).Console(w.Ctx, theVM)
			return err == nil
		})
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, again)
			ended <- err
		}()
		w.Do(source, theVM, hypervisor.Kill{})
		w.UntilState(source, theVM, hypervisor.Shutoff)
		select { // a reader ends by the clock, however fast the time of the lab passes
		case <-ended:
		case <-time.After(testutil.Limit(testutil.DefaultLimit)):
			w.T.Fatalf("the console does not end with its VM")
		}
		_ = again.Close()
		w.Refused(errOf(consoler(w).Console(w.Ctx, theVM)), hypervisor.Conflict)
	}},
	{Name: "an unknown VM has no console", Run: func(w *world) {
		w.Refused(errOf(consoler(w).Console(w.Ctx, theVM)), hypervisor.NotFound)
	}},
}

// consoler returns the source as what opens consoles; the case is skipped where it is none.
func consoler(w *world) hypervisor.Consoler {
	w.T.Helper()
	c, is := w.Source.(hypervisor.Consoler)
	if !is {
		w.Skip("a host opens no consoles")
	}
	return c
}

func opensConsole(w *world, vm hypervisor.VMID) io.ReadWriteCloser {
	w.T.Helper()
	c, err := consoler(w).Console(w.Ctx, vm)
	if errors.Is(err, hypervisor.Unsupported) {
		w.Skip("the VM has no serial port that can be opened")
	}
	w.Must(err)
	return c
}

// errOf is the error of a console that is not to be opened.
func errOf(c io.Closer, err error) error {
	if err == nil {
		_ = c.Close()
	}
	return err
}
