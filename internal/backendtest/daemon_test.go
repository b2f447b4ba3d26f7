//go:build linux

package backendtest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A daemon is a process that is started again whenever it has ended, as a supervisor
// does.
type daemon struct {
	name string
	argv []string
	log  string

	mu      sync.Mutex
	process *os.Process   // nil: it does not run
	ended   chan struct{} // closed when the present process is reaped
	pause   time.Duration // before the next start, once
	crashes int           // how often it was killed
	ends    []string      // how it has ended otherwise
	last    error         // how it has ended the last time
	leave   bool          // it is not to be started again

	stopped chan struct{} // closed: no start any more
	wake    chan struct{} // ends a pause
	done    sync.WaitGroup
}

// relaunch is how long the supervisor waits before it starts a daemon that has ended by
// itself.
const relaunch = 300 * time.Millisecond

// supervise starts a daemon, and again, until the test ends.
func supervise(t *testing.T, d *daemon) *daemon {
	t.Helper()
	d.stopped, d.wake = make(chan struct{}), make(chan struct{}, 1)
	d.done.Go(d.serve)
	t.Cleanup(func() { _ = d.stop(syscall.SIGKILL) }) // it cannot end well
	return d
}

func (d *daemon) serve() {
	for {
		d.mu.Lock()
		err := d.start()
		ended := d.ended
		if err != nil {
			d.ends = append(d.ends, err.Error())
		}
		d.mu.Unlock()
		if err == nil {
			<-ended
		}
		d.mu.Lock()
		wait := max(d.pause, relaunch)
		d.pause = 0
		leave := d.leave
		d.mu.Unlock()
		if leave {
			return
		}
		select {
		case <-d.stopped:
			return
		case <-d.wake:
		case <-time.After(wait):
		}
	}
}

// start starts the process, with the lock held.
func (d *daemon) start() error {
	if d.leave {
		d.ended = make(chan struct{})
		close(d.ended)
		return nil
	}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintln(log, time.Now().UTC().Format(time.RFC3339Nano), "the supervisor starts it")
	cmd := exec.Command(d.argv[0], d.argv[1:]...)
	cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a share of the processors of its own
	if err := cmd.Start(); err != nil {
		return err
	}
	crashes, ended := d.crashes, make(chan struct{})
	d.process, d.ended = cmd.Process, ended
	d.done.Go(func() {
		err := cmd.Wait()
		d.mu.Lock()
		d.process = nil
		if d.last = err; d.crashes == crashes && !d.leave {
			d.ends = append(d.ends, fmt.Sprint(err))
		}
		d.mu.Unlock()
		close(ended)
	})
	return nil
}

// kill ends the process as kill -9 does; another is started after a pause. It answers
// false when there is none.
func (d *daemon) kill(pause time.Duration) bool {
	d.mu.Lock()
	p, ended := d.process, d.ended
	if p == nil {
		d.mu.Unlock()
		return false
	}
	d.crashes++
	d.pause = pause
	_ = p.Kill() // it may have ended
	d.mu.Unlock()
	<-ended
	return true
}

// stop ends the daemon for good, and answers how it took it.
func (d *daemon) stop(how syscall.Signal) error {
	d.mu.Lock()
	if d.leave {
		d.mu.Unlock()
		return nil
	}
	d.leave = true
	p, ended := d.process, d.ended
	close(d.stopped)
	d.mu.Unlock()
	var late error
	if p != nil {
		_ = p.Signal(how) // it may have ended
		select {
		case <-ended:
		case <-time.After(time.Minute):
			late = fmt.Errorf("it has not ended a minute after %v", how)
			_ = p.Kill()
			<-ended
		}
	}
	d.done.Wait()
	if p == nil {
		return nil
	}
	return errors.Join(late, d.last)
}

// troubles answers what a daemon must never say.
func (d *daemon) troubles() error {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err
	}
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "fatal error:"} {
		if i := bytes.Index(text, []byte(bad)); i >= 0 {
			return fmt.Errorf("%s: %s", d.name, text[i:min(len(text), i+4000)])
		}
	}
	return nil
}

// audited checks that no line is missing from a daemon's audit log, or was torn by more
// than the crashes.
func (d *daemon) audited() error {
	f, err := os.Open(strings.TrimSuffix(d.log, ".log") + ".audit")
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := audit.Verify(f)
	if err == nil && (len(s.Findings) > 0 || s.Torn > d.crashes) {
		err = fmt.Errorf("%d lines are torn after %d crashes: %v", s.Torn, d.crashes, s.Findings)
	}
	if err != nil {
		return fmt.Errorf("audit log of %s: %w", d.name, err)
	}
	return nil
}

// unexpected lists how the daemon has ended when it was not killed.
func (d *daemon) unexpected() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.ends, ", ")
}

// tail answers the end of a daemon's log.
func (d *daemon) tail(most int) string {
	text, _ := os.ReadFile(d.log)
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return string(text)
}

// build compiles the daemons once, with the race detector where the test has it.
var build = sync.OnceValues(func() (string, error) {
	program := filepath.Join(os.Getenv(rootKey), "godwit")
	args := []string{"build", "-o", program}
	if testutil.Raced {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/godwit-vm/godwit/cmd/godwit")...)
	// What it needs on the way is large, and not for the memory of the namespaces.
	cmd.Env = append(os.Environ(), "TMPDIR=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/godwit: %w\n%s", err, out)
	}
	return program, nil
})
