//go:build linux

package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// part names, in the environment, what the test binary plays when a test runs it.
const part = "GODWIT_PROCESS_TEST"

func TestMain(m *testing.M) {
	if path := os.Getenv(probing); path != "" {
		_, err := qemu.Probe(context.Background(), path)
		panic(err) // it hangs, and we are killed
	}
	switch os.Getenv(part) {
	case "parent":
		playParent()
	case "greeter":
		fmt.Println("out", os.Args[1:])
		fmt.Fprintln(os.Stderr, "err")
		os.Exit(7)
	case "idler":
		time.Sleep(time.Hour)
	default:
		goleak.VerifyTestMain(m)
	}
}

// playParent starts its arguments as a process, says its identity, and waits to
// be killed.
func playParent() {
	p, err := qemu.Start(qemu.Spec{Path: os.Args[1], Args: os.Args[2:]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(p.Identity()); err != nil {
		os.Exit(1)
	}
	time.Sleep(time.Hour)
}

// play returns what makes the test binary play a part.
func play(t *testing.T, role string) (self string, env []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self, []string{part + "=" + role}
}

func sleepPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep: ", err)
	}
	return path
}

// processStart runs a process that ends at the latest with the test.
func processStart(t *testing.T, spec qemu.Spec) *qemu.Process {
	t.Helper()
	p, err := qemu.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, p) })
	return p
}

func sleeper(t *testing.T) *qemu.Process {
	t.Helper()
	return processStart(t, qemu.Spec{Path: sleepPath(t), Args: []string{"1000"}})
}

// adopt opens a process that is let go at the end of the test.
func adopt(t *testing.T, id qemu.Identity) *qemu.Process {
	t.Helper()
	p, err := qemu.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func end(t *testing.T, p *qemu.Process) {
	t.Helper()
	if !p.Ended() {
		err := p.Kill()
		if err != nil && !errors.Is(err, qemu.ErrGone) && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	awaitEnd(t, p)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// awaitEnd fails the test if p does not end.
func awaitEnd(t *testing.T, p *qemu.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(testutil.Limit(time.Minute)):
		t.Fatalf("process %d has not ended", p.Identity().PID)
	}
}

// eventually waits until it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testutil.Eventually(t, what, testutil.Holds(holds))
}

// files counts the open files of the test.
func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
