package backend_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// An image that qemu-img has made is not taken for raw, whatever its format, and a raw one is.
func TestAnImageWithoutADeclaredFormatIsRefused(t *testing.T) {
	program, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("qemu-img is not installed")
	}
	for _, format := range []string{"raw", "qcow2", "qed", "vmdk", "vhdx", "vpc", "vdi"} {
		path := filepath.Join(t.TempDir(), "disk")
		if out, err := exec.Command(program, "create", "-q", "-f", format, path, "8M").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		disk := hypervisor.Disk{Name: "root", Path: path}
		err := backend.Undeclared(disk, path)
		if refused := errors.Is(err, hypervisor.Invalid); refused != (format != "raw") {
			t.Errorf("%s: %v", format, err)
		}
		if format == "qcow2" && !strings.Contains(err.Error(), "format=qcow2, or format=raw if its guest wrote that header") {
			t.Errorf("what to do is not said: %v", err)
		}
		disk.Format = "raw"
		if err := backend.Undeclared(disk, path); err != nil {
			t.Errorf("%s, declared as raw: %v", format, err)
		}
	}
}

func TestFilesThatAreNoImages(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("QF"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{short, filepath.Join(dir, "none"), os.DevNull} {
		if err := backend.Undeclared(hypervisor.Disk{Name: "root", Path: path}, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, what := range map[string]string{dir: "is a directory", pipe: "is a pipe"} {
		err := backend.Undeclared(hypervisor.Disk{Name: "root", Path: path}, path)
		if !errors.Is(err, hypervisor.Invalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
