//go:build linux

package testutil_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// dies makes a copy of this program start a process that outlives it, and die.
const dies = "GODWIT_TEST_DIES"

func TestMain(m *testing.M) {
	how := os.Getenv(dies)
	if how == "" || os.Getenv("GODWIT_TEST_REAPER") != "" {
		os.Exit(testutil.Reaped{Main: m}.Run())
	}
	os.Exit(testutil.Reaped{Main: abandons(how)}.Run())
}

// abandons stands for tests that end with a status, or by a signal to themselves.
type abandons string

func (how abandons) Run() int {
	sleeper := filepath.Join(os.TempDir(), "sleeper")
	_ = os.WriteFile(sleeper, []byte("while :; do sleep 1; done\n"), 0o700)
	c := exec.Command("/bin/sh", sleeper)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Start() != nil {
		return 1
	}
	_, _ = os.Stdout.WriteString(sleeper + "\n")
	if how == "killed" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return 0
}

func TestWhatTestsLeaveBehindIsKilledAndRemoved(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"passed", "killed"} {
		t.Run(how, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), self)
			c.Env = append(os.Environ(), dies+"="+how)
			c.WaitDelay = 10 * time.Second // its reaper holds the output a moment longer
			out, err := c.Output()
			if (err != nil) != (how == "killed") {
				t.Fatalf("it ended with %v: %s", err, out)
			}
			left := strings.TrimSpace(string(out))
			testutil.Eventually(t, left+" is gone", testutil.Holds(func() bool {
				_, err := os.Stat(left)
				return os.IsNotExist(err) && exec.Command("pgrep", "-f", left).Run() != nil
			}))
		})
	}
}
