package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// features asks the installed QEMU once what it can do.
var features = sync.OnceValues(func() (qemu.Features, error) {
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return qemu.Features{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	return qemu.Probe(ctx, path)
})

// runsQEMU says why no QEMU runs here; nil when one does.
func runsQEMU() error {
	_, err := features()
	return err
}

func accelerator() string {
	f, _ := features() // without QEMU they are not asked for
	return f.Accelerator
}

// eventually is how long a script waits for what has to come about.
const eventually = 90 * time.Second

// until PATTERN COMMAND… runs a command until its output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	repeat(ts, neg, args, "until", func(out []byte, want *regexp.Regexp, err error) error {
		if err == nil && !want.Match(out) {
			err = fmt.Errorf("%q is not in it", args[0])
		}
		if err != nil {
			return fmt.Errorf("%w; it prints\n%s", err, out)
		}
		return nil
	})
}

// untilAlarm PATTERN COMMAND… runs a command until it exits with 4 and its output matches.
func untilAlarm(ts *testscript.TestScript, neg bool, args []string) {
	repeat(ts, neg, args, "until-alarm", func(out []byte, want *regexp.Regexp, err error) error {
		failed, _ := errors.AsType[*exec.ExitError](err)
		if failed == nil || failed.ExitCode() != 4 || !want.Match(out) {
			return fmt.Errorf("it ends with %v, and %q is to be in\n%s", err, args[0], out)
		}
		return nil
	})
}

// repeat runs a command of ours until a check accepts its output and how it ended.
func repeat(ts *testscript.TestScript, neg bool, args []string, name string,
	check func(out []byte, want *regexp.Regexp, err error) error) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: %s PATTERN COMMAND…", name)
	}
	want := regexp.MustCompile("(?m)" + args[0])
	program, err := exec.LookPath(args[1])
	ts.Check(err)
	ts.Check(testutil.Poll(context.Background(), eventually, func() error {
		c := exec.Command(program, args[2:]...)
		c.Dir = ts.Getenv("WORK")
		c.Env = append(os.Environ(), "GODWIT_STORE="+ts.Getenv("GODWIT_STORE"))
		out, err := c.CombinedOutput()
		return check(out, want, err)
	}))
}

// killQEMU DIR kills the QEMUs whose files are below a directory of the script.
func killQEMU(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill-qemu DIR")
	}
	dir := ts.MkAbs(args[0])
	if len(qemus(dir)) == 0 {
		ts.Fatalf("no QEMU runs in %s", dir)
	}
	killQEMUs(dir)
	ts.Check(testutil.Poll(context.Background(), eventually, func() error {
		if left := qemus(dir); len(left) > 0 {
			return fmt.Errorf("QEMU runs on: %v", left)
		}
		return nil
	}))
}

// load is what the guests of scripts do. Each heartbeat costs time of a processor: in QEMU, and in the
// test that hears it.
func load() guest.Params {
	return guest.Params{Fill: 24 << 20, WorkingSet: 1 << 20, Rate: 512 << 10, Random: true,
		Heartbeat: 10 * time.Millisecond}.On(testutil.Accelerator(), testutil.QEMU())
}

// rom FILE writes the firmware of a guest that dirties memory, and obeys the power button.
func rom(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: rom FILE")
	}
	image, err := load().Firmware()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), image, 0o644))
}

// noQEMU fails while a QEMU of the script runs.
func noQEMU(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: noqemu")
	}
	if left := qemus(ts.Getenv("WORK")); len(left) > 0 {
		ts.Fatalf("QEMU runs on: %v", left)
	}
}

// countQEMUs N fails unless so many QEMUs of the script run.
func countQEMUs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: qemus N")
	}
	if found := qemus(ts.Getenv("WORK")); strconv.Itoa(len(found)) != args[0] {
		ts.Fatalf("%d QEMUs run, want %s: %v", len(found), args[0], found)
	}
}

// adoptKeep HOST does what the alarm about a second agent of a host says.
func adoptKeep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: adopt-keep HOST")
	}
	_ = ts.Exec("godwit", "status") // it has an alarm, and says so by its status
	line := regexp.MustCompile(`: godwit (host adopt \S+ --id \S+)`).FindStringSubmatch(
		ts.ReadFile("stdout"))
	if line == nil {
		ts.Fatalf("the status advises nothing")
	}
	ts.Check(ts.Exec("godwit", append(strings.Fields(line[1]), "--yes", "--by", "alice")...))
}

// qemus finds the processes of QEMU whose files are below a directory.
func qemus(dir string) []int {
	var found []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "qemu") ||
			!strings.Contains(string(text), dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// endqemu DIR [again] ends the QEMU whose files are in a directory of the script, as an operator
// does, and waits until another one runs there, if it is to.
func endQEMU(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: endqemu DIR [again]")
	}
	found := qemus(ts.MkAbs(args[0]))
	if len(found) != 1 {
		ts.Fatalf("%d QEMUs run there", len(found))
	}
	ts.Check(syscall.Kill(found[0], syscall.SIGKILL))
	if len(args) == 1 {
		return
	}
	ts.Check(testutil.Poll(context.Background(), eventually, func() error {
		if now := qemus(ts.MkAbs(args[0])); len(now) != 1 || now[0] == found[0] {
			return fmt.Errorf("these run: %v, and %d ran", now, found[0])
		}
		return nil
	}))
}

func killQEMUs(dir string) {
	for _, pid := range qemus(dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// get URL [STATUS] prints what is served there.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: get URL [STATUS]")
	}
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get(args[0])
	ts.Check(err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	ts.Check(err)
	if want := append(args, "200")[1]; strconv.Itoa(r.StatusCode) != want {
		ts.Fatalf("%s: status %d, want %s\n%s", args[0], r.StatusCode, want, body)
	}
	fmt.Fprintf(ts.Stdout(), "%s", body)
}

// busy VARIABLE listens at an address of the loopback until the script ends.
func busy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: busy VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// loopback VARIABLE is an address of this machine that no other script has.
func loopback(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: loopback VARIABLE")
	}
	b := make([]byte, 3)
	_, err := rand.Read(b)
	ts.Check(err)
	ts.Setenv(args[0], net.IPv4(127, 1+b[0]%254, b[1], 1+b[2]%254).String())
}
