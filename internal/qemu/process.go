//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/backend"
)

// A Process is a process that was started by this package or found. Its methods are safe for
// concurrent use.
type Process struct {
	id   Identity
	file *os.File // the pidfd
	done chan struct{}

	stopping sync.Once
	watcher  sync.WaitGroup // waits for a process that is no child

	// Written before done is closed, read after it.
	state *os.ProcessState // nil if it was no child
}

// Open takes over a process that may have no parent here. It fails with [ErrGone]
// if the process surely has ended.
func Open(id Identity) (*Process, error) {
	if id.PID <= 0 {
		return nil, fmt.Errorf("%+v identifies no process", id)
	}
	// First hold whatever has the number, then look what it is: afterwards the
	// number cannot come to mean another process.
	pidfd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		if gone := id.Check(); gone != nil {
			return nil, gone
		}
		return nil, fmt.Errorf("process %d: open a pidfd: %w", id.PID, err)
	}
	file := os.NewFile(uintptr(pidfd), "pidfd")
	if err := id.Check(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p := &Process{id: id, file: file, done: make(chan struct{})}
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p.watcher.Go(func() { p.watch(conn) })
	return p, nil
}

// watch waits for the end of a process that is no child. No thread is held
// meanwhile: the pidfd becomes readable when the process ends.
func (p *Process) watch(conn syscall.RawConn) {
	err := conn.Read(func(fd uintptr) (ended bool) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return err == nil && n > 0
	})
	if err == nil { // otherwise it was closed
		close(p.done)
	}
}

// reap waits for a child, so that no zombie remains.
func (p *Process) reap(cmd *exec.Cmd) {
	_ = cmd.Wait() // how it ended is in the state
	p.state = cmd.ProcessState
	close(p.done)
}

// Identity returns what finds the process again.
func (p *Process) Identity() Identity { return p.id }

// Done returns a channel that is closed when the process has ended. That of a
// process that was taken over by [Open] stays open for ever after [Process.Close].
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Exit returns how the process ended: its exit code, or -1 and the signal that
// killed it. It is not known before the end, nor of a process that was no child.
func (p *Process) Exit() (code int, signal syscall.Signal, known bool) {
	if !p.Ended() || p.state == nil {
		return -1, 0, false
	}
	status, ok := p.state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return -1, status.Signal(), true
	}
	return p.state.ExitCode(), 0, true
}

// Wait returns when the process has ended, or with the context's cause.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for process %d: %w", p.id.PID, context.Cause(ctx))
	}
}

// Kill ends the process at once (SIGKILL). It does not wait until it has ended.
func (p *Process) Kill() error { return p.Signal(syscall.SIGKILL) }

// Signal sends a signal. It fails with [ErrGone] if the process has ended, and
// with os.ErrClosed after [Process.Close]; it never reaches another process.
func (p *Process) Signal(signal syscall.Signal) error {
	if p.Ended() { // the kernel takes signals for zombies
		return fmt.Errorf("signal process %d: %w", p.id.PID, ErrGone)
	}
	conn, err := p.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("signal process %d: %w", p.id.PID, err)
	}
	var sent error
	err = conn.Control(func(fd uintptr) {
		sent = unix.PidfdSendSignal(int(fd), signal, nil, 0)
	})
	switch {
	case err != nil: // the only reason
		return fmt.Errorf("signal process %d: %w", p.id.PID, os.ErrClosed)
	case errors.Is(sent, syscall.ESRCH):
		return fmt.Errorf("signal process %d: %w", p.id.PID, ErrGone)
	case sent != nil:
		return fmt.Errorf("send %v to process %d: %w", signal, p.id.PID, sent)
	}
	return nil
}

// Close lets go of the process and does nothing to it. A child is still reaped
// when it ends. It may be repeated.
func (p *Process) Close() error {
	var err error
	p.stopping.Do(func() { err = p.file.Close() })
	p.watcher.Wait()
	return err
}

// Pin lets a thread of the process, named by its thread ID, run only on the given
// CPUs of the host. It fails if the process has no such thread.
func (p *Process) Pin(tid int, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		if cpu < 0 || cpu > backend.MaxCPU {
			return fmt.Errorf("pin thread %d: there is no CPU %d", tid, cpu)
		}
		set.Set(cpu)
	}
	if tid <= 0 || len(cpus) == 0 {
		return fmt.Errorf("pin thread %d to CPUs %v: name a thread and at least one CPU", tid, cpus)
	}
	// The kernel takes any thread of the machine; a stale number must not pin
	// another process's.
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", p.id.PID, tid)); err != nil {
		return fmt.Errorf("pin thread %d of process %d: %w", tid, p.id.PID, err)
	}
	if err := p.id.Check(); err != nil {
		return fmt.Errorf("pin thread %d: %w", tid, err)
	}
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("pin thread %d of process %d to CPUs %v: %w", tid, p.id.PID, cpus, err)
	}
	return nil
}
