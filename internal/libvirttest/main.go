//go:build linux

package libvirttest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/goleak"
)

// A copy of the test's program that is the reaper finds its root in its environment.
const (
	roleReaper = "reaper"
	rootKey    = "GODWIT_LIBVIRTTEST_ROOT"
)

// world is what one test process has made.
var world struct {
	sync.Mutex
	root string // where all files are; "" before Main
	next int    // number of the next lab
	labs []*Lab // those that are up

	shared  map[Options]*place
	opening sync.Mutex // held while a lab starts
}

// Main runs the tests of a package and is its TestMain's only duty. It answers the
// status to exit with. Afterwards it looks for leaked goroutines and takes
// down every lab that is still up; a process that never comes back here is cleared
// up after by the reaper.
//
// Main is also what the copies of the program run that a lab starts: it then plays
// their part and runs no tests.
func Main(m interface{ Run() int }) int {
	switch Role() {
	case roleInit:
		return serve(os.Stdin, os.Stdout)
	case roleReaper:
		return reap(os.Getenv(rootKey))
	}
	if Missing() != "" {
		return m.Run() // New skips
	}
	wait, err := openWorld()
	if err != nil {
		fmt.Fprintln(os.Stderr, "libvirttest:", err)
		return 1
	}
	status := m.Run()
	bad := closeLabs()
	if err := goleak.Find(); err != nil && status == 0 {
		bad = append(bad, err)
	}
	if err := errors.Join(append(bad, wait())...); err != nil {
		fmt.Fprintln(os.Stderr, "libvirttest: clear up:", err)
		status = max(status, 1)
	}
	return status
}

// openWorld makes the root directory and starts the process that removes it.
func openWorld() (wait func() error, err error) {
	root, err := os.MkdirTemp("/tmp", "gw") // a socket's path is short
	if err != nil {
		return nil, err
	}
	cmd, err := Copy(roleReaper, rootKey+"="+root)
	if err != nil {
		return nil, errors.Join(err, os.Remove(root))
	}
	cmd.Stderr = os.Stderr // go test waits for the reaper, too
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(root))
	}
	world.Lock()
	world.root = root
	world.Unlock()
	return func() error { stdin.Close(); return cmd.Wait() }, nil
}

// reap waits until no process holds the other end of standard input any more, and then
// removes all files. The hosts end at the same moment, so that the first attempts
// may race with what they still write.
func reap(root string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	var err error
	for range 100 {
		if err = os.RemoveAll(root); err == nil {
			return 0
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "libvirttest: remove what the labs left:", err)
	return 1
}

// closeLabs takes down whatever is up.
func closeLabs() []error {
	world.Lock()
	labs := world.labs
	world.Unlock()
	var bad []error
	for _, l := range labs {
		bad = append(bad, l.close())
	}
	return bad
}

// Missing says why no lab can run here, all of it; it is empty when one can. [New]
// and [Shared] skip the test with it. It looks only once.
func Missing() string { return missing() }

var missing = sync.OnceValue(func() string {
	var why []string
	if os.Geteuid() != 0 {
		why = append(why, "it needs root, for namespaces; run the tests as root")
	}
	for _, tool := range []string{"libvirtd", "virsh", "qemu-system-x86_64", "ip", "bridge", "ss"} {
		if _, err := lookPath(tool); err != nil {
			why = append(why, fmt.Sprintf("there is no %s; install it", tool))
		}
	}
	for _, m := range ownDirs {
		if info, err := os.Stat(m.inside); err != nil || !info.IsDir() {
			why = append(why, fmt.Sprintf("there is no directory %s; install libvirt", m.inside))
		}
	}
	if len(why) == 0 {
		if err := tryNamespaces(); err != nil {
			why = append(why, err.Error())
		}
	}
	return strings.Join(why, "; ")
})

// tryNamespaces makes a host's namespaces and a switch with a link, which go with
// the process that made them.
func tryNamespaces() error {
	ip, err := lookPath("ip")
	if err != nil {
		return err
	}
	cmd := exec.Command(ip, "-batch", "-")
	cmd.Stdin = strings.NewReader(
		"link add br0 type bridge\nlink add p0 type veth peer name p1\nlink set p0 master br0\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: hostNamespaces}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("a network in namespaces of its own cannot be made: %w %s; "+
			"allow CAP_SYS_ADMIN and CAP_NET_ADMIN, and have veth and bridge in the kernel",
			err, strings.TrimSpace(string(out)))
	}
	return nil
}
