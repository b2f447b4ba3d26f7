package testutil_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestAToolIsBuiltOnceForEachStateOfItsModule, found from a folder below the module that uses it.
func TestAToolIsBuiltOnceForEachStateOfItsModule(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	t.Setenv("GOCACHE", goCache(t)) // it is below the user's cache otherwise
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("GOFLAGS", "")
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("tools/go.mod", "module example.org/tools\n\ngo 1.26\n")
	write("tools/say/main.go", "package main\n\nfunc main() { println(\"one\") }\n")
	write("a/b/c", "")
	t.Chdir(filepath.Join(root, "a", "b"))
	tool := testutil.Tool{Module: "tools", Package: "./say"}
	says := func(want string) string {
		t.Helper()
		path, err := tool.Build()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != want+"\n" {
			t.Fatalf("%s says %q, %v; want %q", path, out, err, want)
		}
		return path
	}
	first := says("one")
	if !strings.HasPrefix(first, cache) {
		t.Errorf("it is %s, not in the cache", first)
	}
	t.Setenv("PATH", "") // what is built is not built again
	if again := says("one"); again != first {
		t.Errorf("then it is %s, want %s", again, first)
	}
	write("tools/say/main.go", "package main\n\nfunc main() { println(\"two\") }\n")
	if path, err := tool.Build(); err == nil {
		t.Errorf("a changed tool is %s, without a compiler", path)
	}
	tool.Module = "other"
	if _, err := tool.Build(); err == nil || !strings.Contains(err.Error(), "no module other above") {
		t.Errorf("a module that is missing: %v", err)
	}
}

// goCache returns the build cache of go.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
