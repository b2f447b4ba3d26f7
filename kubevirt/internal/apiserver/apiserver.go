// Package apiserver starts a real Kubernetes API server for tests.
//
// Its programs, kube-apiserver, kubectl, kube-scheduler and etcd, the virt-controller of KubeVirt, and Helm and others are
// built from pinned Go modules: see ../../tools. The first build takes some minutes of CPU time and is kept in
// the user's cache; it belongs to the long tier of tests (GODWIT_LONG=1), where a stage of its own builds them
// without the limit that a test has.
package apiserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// A Kit is what is built from one module in ../../tools.
type Kit struct {
	module   string
	programs []program
	flags    string // of the linker
	// output is a file with what the last of the programs prints.
	output string
}

type program struct{ name, path string }

// version is that of Kubernetes in ../../tools/envtest/go.mod.
const version = "1.34.3"

// Kubernetes are the programs of a control plane. They are told their version: helm asks the API server for it.
var Kubernetes = Kit{module: "envtest", flags: "-X k8s.io/component-base/version.gitVersion=v" + version +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34", programs: []program{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"etcd", "go.etcd.io/etcd/server/v3"}}}

// KubeVirt is its controller, and its custom resources in [CRDs].
var KubeVirt = Kit{module: "kubevirt", output: CRDs, programs: []program{
	{"virt-controller", "kubevirt.io/kubevirt/cmd/virt-controller"}, {"crds", "./crds"}}}

// Release are the programs that judge what is released: Helm its chart, umoci the image.
var Release = Kit{module: "release", programs: []program{
	{"helm", "helm.sh/helm/v3/cmd/helm"}, {"umoci", "github.com/opencontainers/umoci/cmd/umoci"}}}

// Krew are those that judge the manifest of the plugin.
var Krew = Kit{module: "krew", programs: []program{
	{"krew", "sigs.k8s.io/krew/cmd/krew"}, {"validate-krew-manifest", "sigs.k8s.io/krew/cmd/validate-krew-manifest"}}}

// CRDs is the file with the custom resources of KubeVirt.
const CRDs = "crds.yaml"

// A Server is an API server that runs until the test ends.
type Server struct {
	*envtest.Environment

	// Admin may do everything.
	Admin *rest.Config
	// Programs is the folder of [Kubernetes].
	Programs string
	// AuditLog has a line of JSON for each request.
	AuditLog string
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
	dir, err := Kubernetes.Build()
	if err != nil {
		t.Skipf("no API server: %v", err)
	}
	s := &Server{Programs: dir, Kubectl: filepath.Join(dir, "kubectl"), Environment: &envtest.Environment{
		BinaryAssetsDirectory: dir, CRDDirectoryPaths: resources, ErrorIfCRDPathMissing: true,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: testutil.Limit(2 * time.Minute)},
		ControlPlaneStartTimeout: testutil.Limit(2 * time.Minute), ControlPlaneStopTimeout: testutil.Limit(time.Minute)}}
	s.audit(t)
	if s.Admin, err = s.Environment.Start(); err != nil {
		t.Fatal(err)
	}
	t.Log("kube-apiserver " + version) // what it runs on
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
func (k *Kit) Build() (string, error) {
	modules, err := testutil.ModuleAbove(filepath.Join("tools", k.module))
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(modules, "go.sum"))
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(append(sums, runtime.Version()+k.flags...))
	return testutil.Cached(k.module+"-"+hex.EncodeToString(key[:6]), func(dir string) error { return k.fill(dir, modules) })
}

// fill builds the programs that are missing in a folder, and lets the last print the output.
func (k *Kit) fill(dir, modules string) error {
	for _, p := range k.programs {
		err := testutil.Once(filepath.Join(dir, p.name), func(to string) error {
			return run(modules, nil, "go", "build", "-ldflags="+k.flags, "-o", to, p.path)
		})
		if err != nil {
			return err
		}
	}
	if k.output == "" {
		return nil
	}
	return testutil.Once(filepath.Join(dir, k.output), func(to string) error {
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		return errors.Join(run(dir, f, filepath.Join(dir, k.programs[len(k.programs)-1].name)), f.Close())
	})
}

// run runs a program in a folder. Its error has what it said.
func run(dir string, out io.Writer, name string, args ...string) error {
	var said bytes.Buffer
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, &said, &said
	if out != nil {
		c.Stdout = out
	}
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", c, dir, err, said.Bytes())
	}
	return nil
}

// audit makes the API server log which user requests what.
func (s *Server) audit(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.AuditLog = filepath.Join(dir, "audit.log")
	s.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", s.AuditLog)
}
