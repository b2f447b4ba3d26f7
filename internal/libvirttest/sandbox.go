//go:build linux

package libvirttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Sandbox is a set of namespaces with a first process in it. The zero value is
// off. Requests may be made concurrently, and are served one at a time; they may not
// be made while Launch or Kill is under way.
type Sandbox struct {
	mu   sync.Mutex // one request at a time
	cmd  *exec.Cmd  // nil: it is off
	in   *os.File   // its requests; at their end the process ends
	out  *os.File
	next *json.Decoder
	lost bool // an answer did not come in time: what comes next is not known
}

// Launch starts a first process in namespaces of its own (CLONE_NEWNET and so on). What
// it says on standard error goes to the end of a log file. It ends with the
// process that calls it, however that ends, at the latest.
func (s *Sandbox) Launch(namespaces uintptr, log string) error {
	cmd, err := Copy(roleInit)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Cloneflags = namespaces
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer inRead.Close()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(err, inWrite.Close())
	}
	defer outWrite.Close()
	stderr, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		defer stderr.Close()
		// They are files, so that no goroutine copies.
		cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, stderr
		err = cmd.Start()
	}
	if err != nil {
		return errors.Join(err, inWrite.Close(), outRead.Close())
	}
	s.cmd, s.in, s.out, s.next = cmd, inWrite, outRead, json.NewDecoder(outRead)
	s.lost = false
	return nil
}

// ask has the first process do something.
func (s *Sandbox) ask(r request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return answer{}, errors.New("the host is off; power it on")
	}
	if s.lost {
		return answer{}, errors.New("the host's first process does not answer; power it off and on")
	}
	var a answer
	err := s.in.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		err = json.NewEncoder(s.in).Encode(r)
	}
	if err == nil {
		err = s.out.SetReadDeadline(time.Now().Add(patience))
	}
	if err == nil {
		err = s.next.Decode(&a)
	}
	s.lost = err != nil
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return a, fmt.Errorf("%s: the first process of the host has died: %w", r.Op, err)
	case err != nil:
		return a, fmt.Errorf("%s: %w", r.Op, err)
	case a.Error != "":
		return a, fmt.Errorf("%s: %s", r.Op, a.Error)
	}
	return a, nil
}

// Run runs a program in the namespaces to its end, with an input of at most 64 KiB,
// and answers what it prints on standard output and error. It fails when the program
// does.
func (s *Sandbox) Run(input string, argv ...string) (string, error) {
	a, err := s.ask(request{Op: opRun, Argv: argv, Input: input})
	if err == nil && a.Status != 0 {
		err = fmt.Errorf("%s: exit status %d: %s", strings.Join(argv, " "), a.Status,
			strings.TrimSpace(a.Output))
	}
	return a.Output, err
}

// Kill ends the first process, and so all that is in its PID namespace: when it has
// been waited for, all of it is gone. It may be
// repeated, and Launch starts the sandbox anew.
func (s *Sandbox) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill() // it is our child, not yet reaped: no other has its number
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = s.cmd.Wait() // it was killed, which is what it says
	s.in.Close()
	s.out.Close()
	s.cmd = nil
	return err
}

// PID is the first process, as seen from outside; 0 when the sandbox is off.
func (s *Sandbox) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Boot makes the namespaces those of a host. The sandbox must have been launched with
// CLONE_NEWNS, CLONE_NEWUTS and CLONE_NEWPID, once before.
func (s *Sandbox) Boot(spec Spec) error {
	_, err := s.ask(request{Op: opBoot, Boot: &spec})
	return err
}

// StartDaemon starts the one program that is to run on and may be signalled, unless
// it runs. What it prints goes to the end of a log file, a path inside.
func (s *Sandbox) StartDaemon(log string, argv ...string) error {
	_, err := s.ask(request{Op: opDaemon, Argv: argv, Log: log})
	return err
}

// SignalDaemon sends the daemon a signal. After SIGKILL it waits for its end; it is
// then no error when the daemon does not run.
func (s *Sandbox) SignalDaemon(signal syscall.Signal) error {
	_, err := s.ask(request{Op: opSignal, Signal: signal})
	return err
}

// Sweep kills all processes of the host but the first and the daemon.
func (s *Sandbox) Sweep() error {
	_, err := s.ask(request{Op: opSweep})
	return err
}

// Outer is the number, as seen from outside, of the process that has the number
// inside in the host. It fails when there is none.
func (s *Sandbox) Outer(inside int) (int, error) {
	first := s.PID()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		return 0, fmt.Errorf("find process %d of a host that is off: %w", inside, err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if in, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); err != nil || in != space {
			continue
		}
		if innermost(pid) == inside {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("find process %d of the host: it has ended", inside)
}

// innermost is the number of a process in its own PID namespace, or 0.
func innermost(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(numbers)
			inside, _ := strconv.Atoi(fields[len(fields)-1])
			return inside
		}
	}
	return 0
}
