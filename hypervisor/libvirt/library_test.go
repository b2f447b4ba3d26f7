//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// hiddenKey is set in the copy of this program that finds no libvirt.so.0.
const hiddenKey = "GODWIT_LIBVIRT_HIDDEN"

// hideLibvirt puts an empty device in the place of every libvirt.so.0.
const hideLibvirt = `for so in /lib/*/libvirt.so.0 /usr/lib/*/libvirt.so.0 /lib64/libvirt.so.0 \
	/usr/lib64/libvirt.so.0
do test ! -e "$so" || mount --bind /dev/null "$(readlink -f "$so")"; done`

// TestWithoutLibvirtsLibrary: a program that was built with libvirt starts where there
// is none, and New says what is missing. A copy of this program, whose mounts no other
// process sees, is such a program.
func TestWithoutLibvirtsLibrary(t *testing.T) {
	if os.Getenv(hiddenKey) != "" {
		answerWithoutLibrary(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("libvirt.so.0 can only be hidden by root")
	}
	own := []string{"--mount", "--propagation", "private", "sh", "-ec"}
	try := exec.CommandContext(t.Context(), "unshare", append(own, hideLibvirt)...)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("libvirt.so.0 cannot be hidden: %v: %s; allow CAP_SYS_ADMIN", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append(own, hideLibvirt+`; exec "$0" "$@"`,
		self, "-test.run=^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), hiddenKey+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v: %s", err, out)
	}
}

// answerWithoutLibrary asks for a host twice: the answer is the same, and at once.
func answerWithoutLibrary(t *testing.T) {
	for range 2 {
		c := libvirt.Config{Name: "n1", Dir: t.TempDir() + "/n1"}
		h, err := libvirt.New(t.Context(), c)
		want := "New on n1: unsupported: libvirt.so.0 cannot be loaded: "
		if h != nil || !errors.Is(err, hypervisor.Unsupported) ||
			!strings.HasPrefix(err.Error(), want) ||
			!strings.HasSuffix(err.Error(), ": apt-get install libvirt0") {
			t.Fatalf("got %v, %v", h, err)
		}
	}
}
