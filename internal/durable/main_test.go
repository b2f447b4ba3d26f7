package durable_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/durable"
)

// ownerKey names the directory that a copy of this program is to hold, and nothing
// else.
const ownerKey = "GODWIT_TEST_OWNS"

// childKey lets that copy leave a child behind that has not come to its exec for a while.
const childKey = "GODWIT_TEST_FORKS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerKey); dir != "" {
		os.Exit(hold(dir))
	}
	goleak.VerifyTestMain(m)
}

// hold owns a directory until standard input ends, or until it is killed.
func hold(dir string) int {
	lock, err := durable.Own(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer lock.Close()
	if os.Getenv(childKey) != "" {
		if err := forked(dir, "0.2").Start(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("owned")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// forked is a process that has the lock of dir open, as we have it, for so many seconds:
// a child of ours between its fork and its exec.
func forked(dir, seconds string) *exec.Cmd {
	cmd := exec.Command("sleep", seconds)
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		of, _ := os.Readlink(name)
		if of == filepath.Join(dir, "lock") && len(cmd.ExtraFiles) == 0 {
			fd, _ := strconv.Atoi(filepath.Base(name))
			dup, _ := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(dup), of))
		}
	}
	return cmd
}

// startOwner starts another process that holds dir. It ends with the test.
func startOwner(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), ownerKey+"="+dir), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "owned\n" {
		t.Fatalf("the owner says %q, %v", line, err)
	}
	return cmd
}
