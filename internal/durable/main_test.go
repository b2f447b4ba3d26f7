package durable_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/internal/durable"
)

// ownerKey names the directory that a copy of this program is to hold, and nothing
// else.
const ownerKey = "GODWIT_TEST_OWNS"

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
	fmt.Println("owned")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// startOwner starts another process that holds dir. It ends with the test.
func startOwner(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ownerKey+"="+dir)
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
