// Package apiserver starts a real Kubernetes API server for tests.
//
// Its programs, kube-apiserver, kubectl and etcd, are built from pinned Go modules: see
// ../../tools/envtest. The first build takes some minutes of CPU time and is kept in the user's
// cache; it belongs to the long tier of tests (GODWIT_LONG=1).
package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Programs are what Build builds, by the package that they come from.
var programs = []struct{ name, path string }{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"etcd", "go.etcd.io/etcd/server/v3"},
}

// A Server is an API server that runs until the test ends.
type Server struct {
	*envtest.Environment

	// Admin may do everything.
	Admin *rest.Config
	// Kubectl is the path of kubectl, Kubeconfig that of a file with the credentials of Admin.
	Kubectl, Kubeconfig string
}

// Start starts an API server with the custom resources in the given files and folders. The test is
// skipped, with the reason, where it does not belong to the tier or the programs cannot be built.
func Start(t testing.TB, resources ...string) *Server {
	t.Helper()
	if os.Getenv("GODWIT_LONG") == "" {
		t.Skip("in the long tier (GODWIT_LONG=1): it needs a real API server")
	}
	dir, err := Build()
	if err != nil {
		t.Skipf("no API server: %v", err)
	}
	s := &Server{Kubectl: filepath.Join(dir, "kubectl"), Environment: &envtest.Environment{
		BinaryAssetsDirectory: dir, CRDDirectoryPaths: resources, ErrorIfCRDPathMissing: true}}
	if s.Admin, err = s.Environment.Start(); err != nil {
		t.Fatal(err)
	}
	t.Log("kube-apiserver 1.34.3") // what it runs on: see tools/envtest/go.mod
	s.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(s.Kubeconfig, s.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Build builds the programs, unless the cache has them, and returns their folder.
func Build() (string, error) {
	modules, err := folder()
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(modules, "go.sum"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(append(sums, runtime.Version()...))
	dir := filepath.Join(cache, "godwit", "envtest-"+hex.EncodeToString(key[:6]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	for _, p := range programs {
		to := filepath.Join(dir, p.name)
		if _, err := os.Stat(to); err == nil {
			continue
		}
		c := exec.Command("go", "build", "-o", to+".new", p.path)
		c.Dir = modules
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s in %s: %w\n%s", p.path, modules, err, out)
		}
		if err := os.Rename(to+".new", to); err != nil {
			return "", err
		}
	}
	return dir, nil
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

// folder returns the folder of the module that pins the programs.
func folder() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		modules := filepath.Join(dir, "tools", "envtest")
		if _, err := os.Stat(filepath.Join(modules, "go.mod")); err == nil {
			return modules, nil
		}
	}
	return "", errors.Join(err, errors.New("no folder tools/envtest above this test"))
}
