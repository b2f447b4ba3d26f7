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
	folder, err := tool.folder()
	if err != nil {
		return "", err
	}
	key, err := stateOf(folder)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "godwit", filepath.Base(tool.Module)+"-"+key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path = filepath.Join(dir, filepath.Base(tool.Package))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	c := exec.Command("go", "build", "-o", path+".new", tool.Package)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s in %s: %w\n%s", tool.Package, folder, err, out)
	}
	return path, os.Rename(path+".new", path)
}

// folder finds the module above the working folder, which is that of the test.
func (tool Tool) folder() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		folder := filepath.Join(dir, tool.Module)
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("no module %s above this test", tool.Module))
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
	cache, err := os.UserCacheDir()
	if err == nil {
		path := filepath.Join(cache, "godwit", "debian", "usr", "bin", program)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed: the Debian package %s has it", program, debian)
	return ""
}
