package apiserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Scheduler runs the real scheduler until the test ends.
func (s *Server) Scheduler(t testing.TB) {
	t.Helper()
	s.Run(t, nil, filepath.Join(s.Programs, "kube-scheduler"), "--leader-elect=false", "--bind-address=127.0.0.1",
		"--secure-port="+port(t), "--cert-dir="+t.TempDir(), "--kube-api-qps=500", "--kube-api-burst=1000",
		"--authentication-kubeconfig="+s.Kubeconfig, "--authorization-kubeconfig="+s.Kubeconfig)
}

// VirtController runs the real virt-controller of KubeVirt until the test ends, and returns its process. The cluster
// has to have its custom resources, the namespace kubevirt and a KubeVirt in it. dir is that of [KubeVirt].
func (s *Server) VirtController(t testing.TB, dir string) int {
	t.Helper()
	api := s.ControlPlane.GetAPIServer()
	return s.Run(t, []string{"POD_NAMESPACE=kubevirt"}, filepath.Join(dir, "virt-controller"), "--listen=127.0.0.1",
		"--port="+port(t), "--launcher-image=virt-launcher", "--exporter-image=virt-exportserver",
		"--prom-cert-file="+filepath.Join(api.CertDir, "apiserver.crt"), "--prom-key-file="+filepath.Join(api.CertDir, "apiserver.key"))
}

// Run runs a program with the credentials of Admin until the test ends, and returns its process. What it said is
// logged when the test has failed.
func (s *Server) Run(t testing.TB, env []string, program string, flags ...string) int {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, append(flags, "--kubeconfig="+s.Kubeconfig)...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), env...), said, said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-ended:
			t.Errorf("%s ended by itself: %v", filepath.Base(program), err)
		default:
			_ = c.Process.Kill()
			<-ended
		}
		if text, err := os.ReadFile(said.Name()); err == nil && t.Failed() {
			t.Logf("%s: %s", filepath.Base(program), text[max(0, len(text)-3000):])
		}
		said.Close()
	})
	return c.Process.Pid
}

// port returns a port that is free.
func port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
