package testutil

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// A Tool is a program that tests run, from a Go module whose dependencies the module under test
// does not have.
type Tool struct {
	// Module is the folder of the module, as seen from the root of the module under test or from a
	// folder between the root and the test.
	Module string
	// Package is the program's package, as go build takes it in the folder of the module.
	Package string
}

// Build returns the path of the program. It is built once for each state of its module and kept in
// the user's cache: the first call compiles, and downloads modules that are missing.
func (tool Tool) Build() (path string, err error) {
	folder, err := ModuleAbove(tool.Module)
	if err != nil {
		return "", err
	}
	key, err := stateOf(folder)
	if err != nil {
		return "", err
	}
	program := filepath.Base(tool.Package)
	dir, err := Cached(filepath.Base(tool.Module)+"-"+key, func(dir string) error {
		return Once(filepath.Join(dir, program), func(to string) error {
			c := exec.Command("go", "build", "-o", to, tool.Package)
			c.Dir = folder
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("build %s in %s: %w\n%s", tool.Package, folder, err, out)
			}
			return nil
		})
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, program), nil
}

// Cached returns a folder of the user's cache, once fill has made what is missing in it. Other
// processes that call it wait meanwhile.
func Cached(name string, fill func(dir string) error) (dir string, err error) {
	dir, err = cacheFolder(name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	return dir, fill(dir)
}

// Once makes a file, unless it is there: whole or not at all.
func Once(path string, make func(to string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := make(path + ".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// cacheFolder returns a folder of the user's cache. make setup and the scripts of tests use the same one.
func cacheFolder(parts ...string) (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(append([]string{cache, "godwit"}, parts...)...), err
}

// ModuleAbove finds the folder of a module above the working folder, which is that of the test.
func ModuleAbove(module string) (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		folder := filepath.Join(dir, module)
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("no module %s above this test", module))
}

// stateOf returns a short hash of what the programs of a module are built from.
func stateOf(folder string) (string, error) {
	var files []string
	for _, pattern := range []string{"go.mod", "go.sum", "*.go", "*/*.go"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// lock waits until no other process builds.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { f.Close() }, nil
}

// Installed returns the path of a program of a Debian package: that of the machine, or the one that
// make setup has unpacked into the cache of the user, which installs no service. Without it the test
// is skipped.
func Installed(t testing.TB, program, debian string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	if path, err := cacheFolder("debian", "usr", "bin", program); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed: the Debian package %s has it", program, debian)
	return ""
}
