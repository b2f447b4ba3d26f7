package backendtest

import (
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// WithDisks returns a VM with disks.
func WithDisks(vm hypervisor.VM, disks ...hypervisor.Disk) hypervisor.VM {
	hw := *vm.Hardware
	hw.Disks = disks
	vm.Hardware = &hw
	return vm
}

// Image runs qemu-img and returns what it says.
func Image(t testing.TB, args ...string) string {
	t.Helper()
	ctx := testutil.Context(t, testutil.DefaultLimit)
	out, err := exec.CommandContext(ctx, "qemu-img", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img %v: %v: %s", args, err, out)
	}
	return string(out)
}

// Noise is what is written on the disk with a number: never the same as another's.
func Noise(i int, size hypervisor.Bytes) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(i + 1)})
	_, _ = r.Read(b) // never fails
	return b
}
