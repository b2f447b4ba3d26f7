package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/testutil"
)

var ctx = context.Background()

// fenceAgent is a fence agent as the interface has it: options on standard input, the answer
// as exit status. It writes what it is asked into a log, and its state into a file.
const fenceAgent = `#!/bin/sh
while read -r line; do
	case "$line" in
	action=*) action=${line#*=} ;;
	nodename=*) nodename=${line#*=} ;;
	dir=*) dir=${line#*=} ;;
	how=*) how=${line#*=} ;;
	password=*) password=${line#*=} ;;
	esac
done
echo "$action $nodename $password $# $$" >>"$dir/log"
test "$action" = monitor -a "$how" = absent && { echo "cannot reach $password@bmc"; exit 1; }
test "$action" = monitor && exit 0
if test "$action" = off; then
	case "$how" in
	hangs) sleep 600 & echo $! >"$dir/child"; wait; exit 0 ;;
	refuses) echo "login with $password denied" >&2; exit 1 ;;
	misused) exit 2 ;;
	garbage) head -c 1000000 /dev/zero | tr '\0' '\377'; exit 7 ;;
	daemon) sleep 600 & echo $! >"$dir/child"; echo off >"$dir/state"; exit 0 ;;
	lies) exit 0 ;;
	slow) (sleep 1; echo off >"$dir/state") >/dev/null 2>&1 & exit 0 ;;
	*) echo off >"$dir/state"; exit 0 ;;
	esac
fi
test "$how" = shy && exit 1
test "$how" = revives && test "$(grep -c ^status "$dir/log")" -gt 1 && exit 0
test "$(cat "$dir/state" 2>/dev/null)" = off && exit 2
exit 0
`

// install writes the agent.
func install(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fence_model")
	if err := os.WriteFile(path, []byte(fenceAgent), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// device is a device of its own that behaves in some way.
func device(t *testing.T, path, how string) daemon.Device {
	return daemon.Device{Agent: path, Timeout: 10 * time.Second, Options: daemon.Options{
		"dir": t.TempDir(), "how": how, "password": "s3cret-pass", "ip": "10.0.0.1"}}
}

func level(devices ...daemon.Device) daemon.Level { return daemon.Level{Devices: devices} }

func fenceStart(t *testing.T, levels ...daemon.Level) *daemon.Fence {
	t.Helper()
	f, err := daemon.NewFence(&daemon.FenceConfig{Hosts: map[hypervisor.HostName][]daemon.Level{"n1": levels}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// wait asks until an attempt has ended.
func wait(t *testing.T, f *daemon.Fence, attempt string) (string, error) {
	t.Helper()
	var by string
	var err error
	testutil.Eventually(t, "the attempt "+attempt+" ends", testutil.Holds(func() bool {
		by, err = f.Cut(ctx, "n1", attempt)
		return by != "" || err != nil
	}))
	return by, err
}

// log returns what a device was asked.
func log(d daemon.Device) []string {
	text, _ := os.ReadFile(filepath.Join(d.Options["dir"], "log"))
	var asked []string
	for line := range strings.Lines(string(text)) {
		asked = append(asked, strings.Fields(line)[0])
	}
	return asked
}

func TestAHostIsOffWhenItsStatusSaysSo(t *testing.T) {
	d := device(t, install(t), "")
	f := fenceStart(t, level(d))
	by, err := wait(t, f, "1")
	if by != "fence_model" || err != nil {
		t.Fatalf("Cut = %q, %v", by, err)
	}
	if got := log(d); !slices.Equal(got, []string{"off", "status"}) {
		t.Errorf("it was asked %q", got)
	}
	text, _ := os.ReadFile(filepath.Join(d.Options["dir"], "log"))
	if !strings.HasPrefix(string(text), "off n1 s3cret-pass 0 ") {
		t.Errorf("it was told %q, want host and password on standard input", text)
	}
	wait(t, f, "1")
	if got := log(d); len(got) != 2 {
		t.Errorf("the same attempt was begun twice: %q", got)
	}
	wait(t, f, "2")
	if got := log(d); len(got) != 4 {
		t.Errorf("another attempt was not begun: %q", got)
	}
}

func TestADeviceThatNeedsTimeIsWaitedFor(t *testing.T) {
	d := device(t, install(t), "slow")
	by, err := wait(t, fenceStart(t, level(d)), "1")
	if by == "" || err != nil {
		t.Errorf("Cut = %q, %v", by, err)
	}
	if got := log(d); len(got) < 3 {
		t.Errorf("it was off only after a while, and was asked %q", got)
	}
}

func TestWhatIsNotProvedIsNotDone(t *testing.T) {
	path := install(t)
	for how, want := range map[string]string{
		"refuses": "off: exit status 1: login with *** denied",
		"misused": "off: exit status 2", // which is "off" as an answer to status only
		"lies":    "nothing proves it within 5s: its status is on",
		"shy":     "nothing proves it within 5s: status: exit status 1",
		"hangs":   "off: no answer within 5s",
		"garbage": "off: exit status 7: ?",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := device(t, path, how)
			if d.Timeout = 5 * time.Second; how == "garbage" || how == "refuses" {
				d.Timeout = time.Minute
			}
			by, err := wait(t, fenceStart(t, level(d)), "1")
			if by != "" || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Cut = %q, %v, want %q", by, err, want)
			}
			if !errors.Is(err, hypervisor.Unknown) || len(err.Error()) > 1000 ||
				strings.Contains(fmt.Sprintf("%#v", err), "s3cret") {
				t.Errorf("the error is %.2000v", err)
			}
			gone(t, d)
		})
	}
}

// gone waits until the process that an agent has left behind is gone, if there is one.
func gone(t *testing.T, d daemon.Device) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.Options["dir"], "child"))
	if err != nil {
		return
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	err = testutil.Poll(t.Context(), testutil.DefaultLimit,
		testutil.Holds(func() bool { return ended(pid) }))
	if err != nil {
		t.Errorf("process %d, which the agent has started, lives on: %v", pid, err)
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// ended reports whether a process is gone, or would be once it is reaped.
func ended(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestWhatAnAgentLeavesBehindIsKilled(t *testing.T) {
	d := device(t, install(t), "daemon")
	by, err := wait(t, fenceStart(t, level(d)), "1")
	if by == "" || err != nil {
		t.Errorf("Cut = %q, %v", by, err)
	}
	if _, err := os.Stat(filepath.Join(d.Options["dir"], "child")); err != nil {
		t.Fatal("it has left nothing behind")
	}
	gone(t, d)
}

func TestTheNextLevelIsTriedWhenOneFails(t *testing.T) {
	path := install(t)
	bad, good, spare := device(t, path, "refuses"), device(t, path, ""), device(t, path, "")
	by, err := wait(t, fenceStart(t, level(bad), level(good), level(spare)), "1")
	if by != "fence_model" || err != nil {
		t.Errorf("Cut = %q, %v", by, err)
	}
	if len(log(good)) != 2 || len(log(spare)) != 0 {
		t.Errorf("the second level was asked %q, the third %q", log(good), log(spare))
	}
	by, err = wait(t, fenceStart(t, level(bad), level(device(t, path, "misused"))), "1")
	if by != "" || err == nil || !strings.Contains(err.Error(), "level 1: fence_model: off: exit "+
		"status 1") || !strings.Contains(err.Error(), "level 2: fence_model: off: exit status 2") {
		t.Errorf("Cut = %q, %v, want both reasons", by, err)
	}
}

func TestAllDevicesOfALevelHaveToBeOff(t *testing.T) {
	path := install(t)
	a, b := device(t, path, ""), device(t, path, "")
	by, err := wait(t, fenceStart(t, level(a, b)), "1")
	if by != "fence_model+fence_model" || err != nil {
		t.Errorf("Cut = %q, %v", by, err)
	}
	if len(log(a)) != 3 || len(log(b)) != 3 {
		t.Errorf("asked %q and %q: the last look is at both", log(a), log(b))
	}
	by, err = wait(t, fenceStart(t, level(device(t, path, ""), device(t, path, "refuses"))), "1")
	if by != "" || err == nil {
		t.Errorf("one of two is off: Cut = %q, %v", by, err)
	}
	by, err = wait(t, fenceStart(t, level(device(t, path, "revives"), device(t, path, ""))), "1")
	if by != "" || err == nil || !strings.Contains(err.Error(), "it was off and is no longer") {
		t.Errorf("one is on again: Cut = %q, %v", by, err)
	}
}

func TestOneAttemptAtATime(t *testing.T) {
	d := device(t, install(t), "slow")
	d.Delay = 300 * time.Millisecond
	f := fenceStart(t, level(d))
	for _, attempt := range []string{"1", "2", "1", "3"} {
		if by, err := f.Cut(ctx, "n1", attempt); by != "" || err != nil {
			t.Fatalf("Cut = %q, %v, and it waits for its delay", by, err)
		}
	}
	if by, err := wait(t, f, "2"); by == "" || err != nil {
		t.Errorf("Cut = %q, %v", by, err)
	}
	if n := strings.Count(strings.Join(log(d), " "), "off"); n != 2 {
		t.Errorf("it was switched off %d times, want twice: attempts 1 and 2", n)
	}
}

func TestCloseEndsWhatRuns(t *testing.T) {
	d := device(t, install(t), "hangs")
	d.Timeout = time.Hour
	f := fenceStart(t, level(d))
	f.Cut(ctx, "n1", "1")
	testutil.Eventually(t, "the agent has a child", func() error {
		_, err := os.Stat(filepath.Join(d.Options["dir"], "child"))
		return err
	})
	f.Close()
	gone(t, d)
	by, err := f.Cut(ctx, "n1", "1")
	if by != "" || err == nil || !strings.Contains(err.Error(), "not known whether") {
		t.Errorf("Cut = %q, %v", by, err)
	}
	by, err = f.Cut(ctx, "n1", "2")
	if by != "" || err == nil {
		t.Errorf("Cut = %q, %v after Close", by, err)
	}
}

func TestAHostWithoutDevicesAndACallerWhoGaveUp(t *testing.T) {
	d := device(t, install(t), "")
	f := fenceStart(t, level(d))
	if _, err := f.Cut(ctx, "n2", "1"); !errors.Is(err, hypervisor.Unsupported) {
		t.Errorf("Cut of a host without devices: %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Cut(over, "n1", "1"); !errors.Is(err, hypervisor.Unknown) || log(d) != nil {
		t.Errorf("Cut after its context's end: %v, asked %q", err, log(d))
	}
}

func TestCheckNamesAllThatDoNotWork(t *testing.T) {
	path := install(t)
	good, bad := device(t, path, ""), device(t, path, "absent")
	f := fenceStart(t, level(good, bad), level(daemon.Device{Agent: "fence_of_nobody"}))
	err := f.Check(ctx)
	if err == nil {
		t.Fatal("two devices of three do not work, and there is no error")
	}
	for _, want := range []string{"host n1: monitor: exit status 1: cannot reach ***@bmc",
		"fence_of_nobody", "install the package fence-agents"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got := log(good); !slices.Equal(got, []string{"monitor"}) {
		t.Errorf("the good one was asked %q", got)
	}
	if err := fenceStart(t, level(good)).Check(ctx); err != nil {
		t.Errorf("all work, and Check says %v", err)
	}
}

// TestARealFenceAgent runs Debian's fence_dummy, which keeps the state in a file.
func TestARealFenceAgent(t *testing.T) {
	path, err := exec.LookPath("/usr/sbin/fence_dummy")
	if err != nil {
		t.Skip("fence_dummy of the package fence-agents is not installed")
	}
	state, broken := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "broken")
	for path, is := range map[string]string{state: "on", broken: "neither"} {
		if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := daemon.Device{Agent: "fence_dummy", Options: daemon.Options{"status_file": state}}
	bad := daemon.Device{Agent: path, Options: daemon.Options{"status_file": broken,
		"no_such_option": "hidden-value"}}
	f := fenceStart(t, level(bad), level(good))
	if err := fenceStart(t, level(good)).Check(ctx); err != nil {
		t.Error(err)
	}
	if by, err := wait(t, f, "1"); by != "fence_dummy" || err != nil {
		t.Errorf("Cut = %q, %v", by, err)
	}
	if text, _ := os.ReadFile(state); string(text) != "off" {
		t.Errorf("the host is %q", text)
	}
	by, err := wait(t, fenceStart(t, level(bad)), "1")
	if by != "" || err == nil || strings.Contains(err.Error(), "hidden-value") ||
		!strings.Contains(err.Error(), "exit status") {
		t.Errorf("Cut = %q, %v", by, err)
	}
}
