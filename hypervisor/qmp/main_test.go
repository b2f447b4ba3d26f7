//go:build linux

package qmp_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/hypervisor/qmp/process"
)

// root is where everything is that the tests of this package leave on disk. A
// process of its own clears it away when we end, however we do: QEMUs outlive us.
var root string

const (
	roleKey = "GODWIT_TEST_ROLE" // what a copy of this program is to be
	rootKey = "GODWIT_TEST_ROOT"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleKey) {
	case "reaper":
		os.Exit(reap(os.Getenv(rootKey)))
	case "agent":
		os.Exit(agent(os.Args[1:]))
	case "tracer":
		os.Exit(trace(os.Args[1]))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if root, err = os.MkdirTemp("/tmp", "gw"); err != nil { // a socket's path is short
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	wait, err := startReaper()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	if err := wait(); err != nil {
		fmt.Fprintln(os.Stderr, "clear up:", err)
		status = 1
	}
	return status
}

// startReaper starts the process that clears up when its standard input ends.
func startReaper() (wait func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleKey+"=reaper", rootKey+"="+root)
	cmd.Stderr = os.Stderr
	// What ends us by our process group, an interrupt or a timeout, must not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error { stdin.Close(); return cmd.Wait() }, nil
}

// reap waits until nobody holds the other end of standard input any more, and
// removes all processes and files below dir.
func reap(dir string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := errorsOf(killBelow(dir), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killBelow ends every process that names a file below dir in its arguments.
func killBelow(dir string) error {
	found, err := process.Find(func(argv []string) bool {
		return slices.ContainsFunc(argv, func(arg string) bool {
			return strings.Contains(arg, dir+string(filepath.Separator))
		})
	})
	if err != nil {
		return err
	}
	var bad []error
	for _, f := range found {
		if f.Identity.PID == os.Getpid() {
			continue
		}
		p, err := process.Open(f.Identity)
		if err != nil {
			continue // it has ended meanwhile
		}
		bad = append(bad, p.Kill(), p.Close())
	}
	return errorsOf(bad...)
}
