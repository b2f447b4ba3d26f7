//go:build linux

package testutil

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// reaperKey tells a copy of a test program which folder it clears away.
const reaperKey = "GODWIT_TEST_REAPER"

// Main is what a Reaped runs: a *testing.M.
type Main interface{ Run() int }

// Reaped runs the tests of a package that start processes which outlive them, such as
// QEMUs. All temporary files are below one folder. When the tests end, also by a panic, a
// time-out or kill -9, a process of its own kills every process that names a file of the
// folder in its arguments, and removes the folder. Use it in TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testutil.Reaped{m}.Run()) }
type Reaped struct{ Main }

// Run runs the tests and returns their exit status.
func (r Reaped) Run() int {
	if dir := os.Getenv(reaperKey); dir != "" {
		return reap(dir)
	}
	status, err := r.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests do not clear up:", err)
		return max(status, 1)
	}
	return status
}

func (r Reaped) run() (status int, err error) {
	root, err := shortDir()
	if err != nil {
		return 1, err
	}
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	reaper := exec.Command(self)
	reaper.Env = append(os.Environ(), reaperKey+"="+root)
	reaper.Stderr = os.Stderr
	// A signal to the process group of the tests must not end it.
	reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := reaper.StdinPipe()
	if err != nil {
		return 1, err
	}
	if err := errors.Join(os.Setenv("TMPDIR", root), reaper.Start()); err != nil {
		return 1, err
	}
	status = r.Main.Run()
	return status, errors.Join(stdin.Close(), reaper.Wait())
}

// shortDir makes a folder with a name of five letters: the path of a socket in it has 107
// bytes at most.
func shortDir() (dir string, err error) {
	for range 1000 {
		dir = fmt.Sprintf("/tmp/g%04x", rand.IntN(1<<16))
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
	return "", err
}

// reap waits until the tests have ended, and clears up after them.
func reap(dir string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := errors.Join(KillBelow(dir), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "clear up:", err)
		return 1
	}
	return 0
}

// KillBelow kills every process, but this one, that names a file below dir in its arguments.
func KillBelow(dir string) (err error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		args, gone := os.ReadFile(path)
		if gone != nil || !bytes.Contains(args, []byte(dir+"/")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if pid != os.Getpid() {
			err = errors.Join(err, ignoreGone(syscall.Kill(pid, syscall.SIGKILL)))
		}
	}
	return err
}

func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
