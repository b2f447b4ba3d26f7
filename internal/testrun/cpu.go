package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// execMode is the first argument with which go test runs a test program through this one: see -exec of go
// help test. go test tells how long a test program took, and not what it and its children used.
const execMode = "exec"

// usedLine is what this program prints when a test program has ended.
var usedLine = regexp.MustCompile(`^testrun: processor time ([0-9.]+) s\n$`)

// execTest runs a test program, prints the processor time that it and the processes that it waited for have
// used, and returns its exit status.
func execTest(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "testrun: exec needs a program")
		return 2
	}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// An interrupt reaches the test program as well: it is in the same process group.
	asked := make(chan os.Signal, 4)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 2
	}
	go func() {
		for s := range asked {
			if s == syscall.SIGQUIT || s == syscall.SIGTERM { // go test sends them to this process only
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	_ = cmd.Wait() // its exit status says it
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("testrun: processor time %.2f s\n", used.Seconds())
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 2 // a signal ended it
}

// processorTime returns what such a line says.
func processorTime(line string) (time.Duration, bool) {
	m := usedLine.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(m[1], 64)
	return time.Duration(seconds * float64(time.Second)), err == nil
}
