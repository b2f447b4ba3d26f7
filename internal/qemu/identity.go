//go:build linux

package qemu

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// An Identity names one process for ever. A process ID alone does not: it is
// used again. It is safe to store as JSON.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // when it was forked, in clock ticks since boot: stat, field 22
	Boot  string `json:"boot"`  // the run of the kernel: /proc/sys/kernel/random/boot_id
}

// ErrGone says that the process surely has ended: nothing has its number, or
// something else has, or the machine was restarted since.
var ErrGone = errors.New("the process has ended")

// Check says whether i runs: nil if it does, [ErrGone] if it surely does not, and
// another error if that could not be found out.
func (i Identity) Check() error {
	if i.PID <= 0 || i.Boot == "" {
		return fmt.Errorf("%+v identifies no process", i)
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	if i.Boot != boot {
		return fmt.Errorf("process %d: %w: the machine was restarted since", i.PID, ErrGone)
	}
	s, err := readStatus(i.PID)
	switch {
	case err != nil:
		return err
	case s.start != i.Start:
		return fmt.Errorf("process %d: %w: another one has its number", i.PID, ErrGone)
	case s.ended():
		return fmt.Errorf("process %d: %w: it is a zombie", i.PID, ErrGone)
	}
	return nil
}

// identify returns the identity of the process that has pid now.
func identify(pid int) (Identity, error) {
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	s, err := readStatus(pid)
	return Identity{PID: pid, Start: s.start, Boot: boot}, err
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("which run of the kernel this is: %w", err)
	}
	return string(bytes.TrimSpace(id)), nil
}

// status is what /proc/pid/stat says about a process.
type status struct {
	state byte // 'R', 'S', … 'Z'
	start uint64
}

// ended reports whether the process is a zombie or about to be no more.
func (s status) ended() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// readStatus fails with [ErrGone] if nothing has the number pid.
func readStatus(pid int) (status, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if vanished(err) {
		return status{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(text)
	if err != nil {
		return status{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return s, nil
}

// vanished reports whether err says that a process went away while it was being
// looked at: its folder is gone, or a file of it was open already.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// The places in /proc/pid/stat after the program's name: of fields 3 and 22.
const (
	stateField = 0
	startField = 19
)

// parseStatus reads the text of /proc/pid/stat. The program chose its name, which
// stands there in parentheses and may itself contain any of them, spaces and line
// ends; nothing after it does, so that it ends at the last one.
func parseStatus(text []byte) (status, error) {
	_, open := bytes.CutPrefix(bytes.TrimLeft(text, "0123456789"), []byte(" ("))
	end := bytes.LastIndexByte(text, ')')
	if !open || end < 0 {
		return status{}, fmt.Errorf("unreadable status %.200q: no name in parentheses", text)
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= startField {
		return status{}, fmt.Errorf("unreadable status %.200q: too few fields", text)
	}
	if len(fields[stateField]) != 1 {
		return status{}, fmt.Errorf("unreadable status %.200q: no state after the name", text)
	}
	start, err := strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("unreadable status %.200q: start: %w", text, err)
	}
	return status{state: fields[stateField][0], start: start}, nil
}
