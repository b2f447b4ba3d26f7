package operator_test

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/kubevirt/internal/apiserver"
)

// programs builds those of a kit, or skips the test with the reason.
func programs(t *testing.T, kit apiserver.Kit) string {
	t.Helper()
	if os.Getenv("GODWIT_LONG") == "" {
		t.Skip("in the long tier (GODWIT_LONG=1): it builds what judges releases")
	}
	dir, err := kit.Build()
	if err != nil {
		t.Skipf("its judge cannot be built: %v", err)
	}
	return dir
}

// runs runs a program and returns what it says.
func runs(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	said, err := try(env, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, said)
	}
	return said
}

func try(env []string, program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), env...)
	said, err := c.CombinedOutput()
	return string(said), err
}

// Helm itself finds nothing wrong with the chart, and renders what kubectl renders of config/default.
func TestHelmRendersWhatKustomizeDoes(t *testing.T) {
	helm := filepath.Join(programs(t, apiserver.Release), "helm")
	server := apiserver.Start(t)
	home := t.TempDir()
	env := []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + server.Kubeconfig}
	runs(t, env, helm, "lint", "--strict", chart)

	got, want := map[string]any{}, map[string]any{}
	objects(t, "helm", []byte(runs(t, env, helm, "template", "godwit", chart, "--namespace=godwit-kubevirt", "--include-crds", "--kube-version=1.34.3")), got)
	objects(t, "kustomize", []byte(runs(t, env, server.Kubectl, "kustomize", "../../config/default")), want)
	delete(want, "Namespace godwit-kubevirt") // helm makes it
	for _, all := range []map[string]any{got, want} {
		crd := all["CustomResourceDefinition nodeevacuations.godwit-vm.github.io"].(map[string]any)
		delete(crd["metadata"].(map[string]any), "labels") // helm changes nothing about these
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart differs from config/default (-): %s", diff)
	}
}

// helm installs the chart into a real API server, changes a value, and takes away what it has installed; the custom
// resource and the evacuations of its users stay.
func TestHelmInstallsAndUninstalls(t *testing.T) {
	helm := filepath.Join(programs(t, apiserver.Release), "helm")
	server := apiserver.Start(t)
	home := t.TempDir()
	env := []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + server.Kubeconfig}
	const namespace = "--namespace=godwit-kubevirt"
	kubectl := func(args ...string) string { return runs(t, env, server.Kubectl, append(args, namespace)...) }
	runs(t, env, helm, "install", "godwit", chart, namespace, "--create-namespace")

	want := map[string]any{}
	objects(t, "kustomize", []byte(runs(t, env, server.Kubectl, "kustomize", "../../config/default")), want)
	for name := range want {
		kind, object, _ := strings.Cut(name, " ")
		if got := kubectl("get", kind, object, "--output=name"); got == "" {
			t.Errorf("%s is not there", name)
		}
	}
	replicas := func() string {
		return kubectl("get", "deployment", "godwit-kubevirt", "--output=jsonpath={.spec.replicas}")
	}
	if n := replicas(); n != "2" {
		t.Errorf("%s replicas, want 2", n)
	}
	runs(t, env, helm, "upgrade", "godwit", chart, namespace, "--set=replicas=3")
	if n := replicas(); n != "3" {
		t.Errorf("%s replicas, want 3", n)
	}
	evacuation := filepath.Join(home, "evacuation.yaml")
	text := "apiVersion: godwit-vm.github.io/v1alpha1\nkind: NodeEvacuation\nmetadata: {name: n1}\nspec: {nodeName: n1}\n"
	if err := os.WriteFile(evacuation, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("apply", "--filename="+evacuation)

	runs(t, env, helm, "uninstall", "godwit", namespace)
	for name := range want {
		kind, object, _ := strings.Cut(name, " ")
		_, err := try(env, server.Kubectl, "get", kind, object, namespace)
		if stays := kind == "CustomResourceDefinition" || kind == "Namespace"; stays != (err == nil) {
			t.Errorf("after helm uninstall, %s: %v", name, err)
		}
	}
	kubectl("get", "nodeevacuation", "n1")
}

// What make dist builds for clusters is judged by others: the manifest of the plugin by krew, the image by umoci.
func TestWhatIsReleased(t *testing.T) {
	krew, umoci := programs(t, apiserver.Krew), filepath.Join(programs(t, apiserver.Release), "umoci")
	dir := t.TempDir()
	runs(t, []string{"ARCHES=amd64", "SYSTEMS=linux", "SOURCE_DATE_EPOCH=1767225600"}, "../../dist.sh", dir, "0.1.0")
	t.Run("krew installs the plugin", func(t *testing.T) { krewInstalls(t, krew, dir) })
	t.Run("the image runs", func(t *testing.T) { imageRuns(t, umoci, filepath.Join(dir, "godwit-kubevirt-0.1.0-amd64.oci.tar")) })
}

func krewInstalls(t *testing.T, krew, dir string) {
	manifest, archive := filepath.Join(dir, "godwit.yaml"), filepath.Join(dir, "kubectl-godwit-0.1.0-linux-amd64.tar.gz")
	runs(t, nil, filepath.Join(krew, "validate-krew-manifest"), "-skip-install", "-manifest", manifest)
	install := func(root, manifest string) (string, error) {
		return try([]string{"KREW_ROOT=" + root, "KREW_NO_UPGRADE_CHECK=1", "KREW_OS=linux", "KREW_ARCH=amd64"}, filepath.Join(krew, "krew"), "install",
			"--manifest="+manifest, "--archive="+archive)
	}
	root := t.TempDir()
	if said, err := install(root, manifest); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	said := runs(t, nil, filepath.Join(root, "bin/kubectl-godwit"), "--help")
	if !strings.Contains(said, "Drain nodes of a cluster with KubeVirt") {
		t.Errorf("the plugin says\n%s", said)
	}
	for _, file := range []string{"LICENSE", "kubectl_complete-godwit"} {
		if _, err := os.Stat(filepath.Join(root, "store/godwit/v0.1.0", file)); err != nil {
			t.Error(err)
		}
	}
	other := filepath.Join(t.TempDir(), "godwit.yaml") // another checksum
	text := regexp.MustCompile(`sha256: [0-9a-f]{4}`).ReplaceAll(read(t, manifest), []byte("sha256: 0000"))
	if err := os.WriteFile(other, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := install(t.TempDir(), other); err == nil || !strings.Contains(said, "checksum") {
		t.Errorf("an archive with another checksum: %v\n%s", err, said)
	}
}

// imageRuns unpacks the image, and runs what is in it as the image says: in an empty root, as a user without rights.
func imageRuns(t *testing.T, umoci, image string) {
	if os.Geteuid() != 0 {
		t.Skip("to change the root takes root")
	}
	c := newCluster(t)
	layout, bundle := t.TempDir(), filepath.Join(t.TempDir(), "bundle")
	runs(t, nil, "tar", "-C", layout, "-xf", image)
	runs(t, nil, umoci, "unpack", "--image", layout+":0.1.0", bundle)
	var config struct {
		Process struct {
			User struct{ UID, GID uint32 }
			Args []string
		}
	}
	if err := json.Unmarshal(read(t, filepath.Join(bundle, "config.json")), &config); err != nil {
		t.Fatal(err)
	}
	p, root := config.Process, filepath.Join(bundle, "rootfs")
	if p.User.UID != 65532 || p.User.GID != 65532 || !slices.Equal(p.Args, []string{"/godwit-kubevirt"}) {
		t.Errorf("it runs %v as %+v", p.Args, p.User)
	}
	asDockerfile(t, p.Args, fmt.Sprintf("%d:%d", p.User.UID, p.User.GID))
	static(t, root, p.Args[0])

	// What Kubernetes would give it: credentials.
	if err := os.WriteFile(filepath.Join(root, "kubeconfig"), read(t, c.Kubeconfig), 0o444); err != nil {
		t.Fatal(err)
	}
	health := address(t)
	run := exec.Command(p.Args[0], "--kubeconfig=/kubeconfig", "--leader-election-namespace=godwit-kubevirt", "--metrics-bind-address=0",
		"--health-probe-bind-address="+health)
	run.Env, run.Dir = []string{}, "/"
	run.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: p.User.UID, Gid: p.User.GID}, Pdeathsig: syscall.SIGKILL}
	for _, dir := range []string{bundle, filepath.Dir(bundle), filepath.Dir(filepath.Dir(bundle)), filepath.Dir(filepath.Dir(filepath.Dir(bundle))), root} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	run.Stdout, run.Stderr = said, said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.Process.Kill() }()
	for _, path := range []string{"/healthz", "/readyz"} {
		testutil.Eventually(t, path, func() error {
			answer, err := http.Get("http://" + health + path)
			if err != nil {
				return err
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return errors.New(answer.Status)
			}
			return nil
		})
	}
	time.AfterFunc(testutil.Limit(time.Minute), func() { _ = run.Process.Kill() })
	if err := errors.Join(run.Process.Signal(syscall.SIGTERM), run.Wait()); err != nil {
		t.Errorf("it does not end well: %v\n%s", err, read(t, said.Name()))
	}
}

// static checks that the program is all that there is, and needs no other file.
func static(t *testing.T, root, program string) {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil || !slices.Equal(all, []string{program}) {
		t.Errorf("the image has %v, %v", all, err)
	}
	f, err := elf.Open(filepath.Join(root, program))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP || s.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: it has %v", s.Type)
		}
	}
}

// asDockerfile checks that the Dockerfile asks for the same.
func asDockerfile(t *testing.T, entrypoint []string, user string) {
	t.Helper()
	says := map[string]string{} // the last stage
	lines := bufio.NewScanner(strings.NewReader(string(read(t, "../../Dockerfile"))))
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		if word == "FROM" {
			clear(says)
		}
		says[word] = rest
	}
	want := map[string]string{"FROM": "scratch", "USER": user, "ENTRYPOINT": fmt.Sprintf("[%q]", entrypoint[0]),
		"COPY": "--from=build " + entrypoint[0] + " " + entrypoint[0]}
	if diff := cmp.Diff(want, says); diff != "" {
		t.Errorf("the Dockerfile says something else than the image: %s", diff)
	}
}

// address returns one of this machine that is free.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
