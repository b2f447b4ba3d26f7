//go:build linux

package backendtest_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/etcdtest"
)

const (
	roleKey = "GODWIT_CRASHES_ROLE" // what a copy of this program is to be
	rootKey = "GODWIT_CRASHES_ROOT" // where its files are

	roleFirst  = "first"  // the first process of the namespaces
	roleInside = "inside" // the tests
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(roleKey) == roleFirst:
		os.Exit(first())
	case os.Getenv(roleKey) == roleInside || os.Getuid() != 0:
		os.Exit(m.Run())
	}
	os.Exit(outside())
}

// inside skips a test that does not run in namespaces of its own.
func inside(t *testing.T) {
	t.Helper()
	if os.Getenv(roleKey) != roleInside {
		t.Skip("it makes namespaces and drops packets: it needs root")
	}
}

// outside runs the tests in namespaces of their own and answers their exit status. The
// thread that starts them must live as long as they: the kernel kills them when it ends.
func outside() int {
	if err := etcdtest.Build(); err != nil { // the namespaces have no network
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	runtime.LockOSThread()
	root, err := os.MkdirTemp("/tmp", "gwm") // a socket's path is short
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.Remove(root) // what is in it, is in the memory of the namespaces
	status, err := runAs(roleFirst, root, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET})
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces:", err)
		return 1
	}
	return status
}

// runAs runs a copy of this program to its end.
func runAs(role, root string, attr *syscall.SysProcAttr) (status int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for key, value := range map[string]string{roleKey: role, rootKey: root, "TMPDIR": root} {
		if err := os.Setenv(key, value); err != nil {
			return 0, err
		}
	}
	p, err := os.StartProcess(self, os.Args, &os.ProcAttr{Sys: attr,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, err
	}
	if role == roleInside {
		return reap(p.Pid)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-asked
		_ = p.Kill() // and with it all others; what is outside is then cleared away
	}()
	s, err := p.Wait()
	if err != nil {
		return 0, err
	}
	return exitStatus(s.Sys().(syscall.WaitStatus)), nil
}

func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// first is the first process of the namespaces: QEMUs whose agent is dead are its
// children. When it ends, the kernel ends all others.
func first() int {
	root := os.Getenv(rootKey)
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("tmpfs", root, "tmpfs", 0, "mode=0700"),
		raiseLoopback())
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces:", err)
		return 1
	}
	status, err := runAs(roleInside, root, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces:", err)
		return 1
	}
	return status
}

// raiseLoopback gives the namespace its only network.
func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// reap waits for all that ends, until the process of that number has.
func reap(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		switch ended, err := syscall.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case ended == pid:
			return exitStatus(status), nil
		}
	}
}

// noLeaks fails a test that leaves goroutines.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
}
