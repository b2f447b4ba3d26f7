//go:build linux

package qemu

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Spec says what to run.
type Spec struct {
	Path string   // the program, absolute
	Args []string // its arguments, without its name
	// Env is the whole environment. Default: only PATH.
	Env []string
	// Dir is the folder of the process's own files. It is made if it is missing,
	// and must not be shared: sockets that the process makes are protected by
	// it alone. The process does not run in it, but in "/". Default: none.
	Dir string
	// Log is the file to which its output and errors are appended. Default: none,
	// they are thrown away.
	Log string
	// Lock is a lock that the process inherits and holds until it ends. The caller may close
	// its own copy. Default: none.
	Lock *Lock
}

// Start runs a program that lives on when the caller dies, in whatever way: it
// has a session of its own and shares no file with the caller but its lock. As long as the
// caller lives, the process is its child and reaped as soon as it has ended.
//
// The error is fs.ErrNotExist if there is no such program.
func Start(spec Spec) (*Process, error) {
	if !filepath.IsAbs(spec.Path) {
		return nil, fmt.Errorf("start %q: the program needs an absolute path", spec.Path)
	}
	if err := private(spec.Dir); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	defer log.Close()
	// Files that the caller itself inherited would be passed on, because they
	// are not marked: a QEMU that holds the lock of its agent keeps the next agent out.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("start %s: keep the caller's files: %w", spec.Path, err)
	}
	pidfd := -1
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir, cmd.Env = "/", spec.Env
	if cmd.Env == nil {
		cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	cmd.Stdout, cmd.Stderr = log, log
	if spec.Lock != nil {
		cmd.ExtraFiles = []*os.File{spec.Lock.file}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return adoptChild(cmd, pidfd)
}

// adoptChild takes over a child that was started just now. Until a process waits
// for it, no other can have its number.
func adoptChild(cmd *exec.Cmd, pidfd int) (*Process, error) {
	id, err := identify(cmd.Process.Pid)
	if err == nil && pidfd < 0 {
		err = fmt.Errorf("process %d: the kernel has no pidfd: Linux 5.11 is needed", id.PID)
	}
	if err != nil {
		failed := cmd.Process.Kill()
		_ = cmd.Wait() // that it was killed is known
		if pidfd >= 0 {
			failed = errors.Join(failed, unix.Close(pidfd))
		}
		return nil, errors.Join(fmt.Errorf("start %s: %w", cmd.Path, err), failed)
	}
	p := &Process{id: id, file: os.NewFile(uintptr(pidfd), "pidfd"), done: make(chan struct{})}
	go p.reap(cmd)
	return p, nil
}

// private makes dir, or checks that it is a folder that only its owner may enter.
func private(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	at, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !at.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case at.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (%04o): change its mode to 0700", dir,
			at.Mode().Perm())
	}
	return nil
}

func openLog(name string) (*os.File, error) {
	if name == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE | syscall.O_NOFOLLOW
	log, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := log.Chmod(0o600); err != nil { // it may have been there with another mode
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}
