package v1alpha1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The generated files are those that go generate writes.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	const (
		modfile  = "-modfile=../../tools/gen/go.mod"
		deepcopy = "zz_generated.deepcopy.go"
		resource = "godwit-vm.github.io_nodeevacuations.yaml"
	)
	if out, err := exec.Command("go", "tool", modfile, "controller-gen", "--version").
		CombinedOutput(); err != nil {
		t.Skipf("controller-gen cannot be built: %v\n%s", err, out)
	}
	dir := t.TempDir()
	c := exec.Command("go", "tool", modfile, "controller-gen", "object", "crd", "paths=.",
		"output:object:dir="+dir, "output:crd:dir="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	for _, path := range []string{deepcopy, filepath.Join("../../config/crd", resource)} {
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what controller-gen writes: run go generate ./api/...", path)
		}
	}
}
