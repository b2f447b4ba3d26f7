//go:build linux

package libvirttest

import (
	"os"
	"os/exec"
	"syscall"
)

// roleKey is the variable that tells a copy of this program what it is to be.
const roleKey = "GODWIT_LIBVIRTTEST_ROLE"

// roleInit is the role of a first process, which calls [serve].
const roleInit = "init"

// Role is what this process is to be; it is empty in a process of its own.
func Role() string { return os.Getenv(roleKey) }

// Copy is this program, to be run in another role, which it finds with [Role]. What
// ends us by our process group, an interrupt or a timeout, does not reach it.
func Copy(role string, env ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	// The race detector would have it wait a second before it ends.
	cmd.Env = append(append(environment(), roleKey+"="+role, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// environment is what the programs in a host get to see.
func environment() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin:" + os.Getenv("PATH"), "HOME=/",
		"LC_ALL=C"}
}

// lookPath finds a program, also where only root has it in the path.
func lookPath(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + tool); err == nil {
			return path, nil
		}
	}
	return "", err
}
