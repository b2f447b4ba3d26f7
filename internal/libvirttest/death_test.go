//go:build linux

package libvirttest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/libvirttest"
)

const victimKey = "GODWIT_LIBVIRTTEST_VICTIM"

// A victim says what it has made, and then waits for its death.
type victim struct {
	Root   string
	Spaces []string
}

// TestVictim is no test: it is what the copies of the program run that
// TestNothingOutlivesItsTest kills.
func TestVictim(t *testing.T) {
	how := os.Getenv(victimKey)
	if how == "" {
		t.Skip("only TestNothingOutlivesItsTest runs it, in a process of its own")
	}
	l := libvirttest.New(t, libvirttest.Options{})
	newDomain(t, l, "web", "qemu").start(t, l, hosta)
	v := victim{libvirttest.Root(), append(spaces(t, l, hosta), spaces(t, l, hostb)...)}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		t.Fatal(err)
	}
	if how == "panic" {
		panic("the test has a bug")
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

func TestNothingOutlivesItsTest(t *testing.T) {
	if why := libvirttest.Missing(); why != "" {
		t.Skip(why)
	}
	kill := func(s syscall.Signal) func(*os.Process) error {
		return func(p *os.Process) error { return p.Signal(s) }
	}
	deaths := []struct {
		name string
		kill func(*os.Process) error
	}{
		{"killed", kill(syscall.SIGKILL)},
		{"interrupted", kill(syscall.SIGINT)},
		{"panic", func(*os.Process) error { return nil }},
	}
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel() // each has a process of its own
			v := dies(t, d.name, d.kill)
			begin := time.Now()
			eventually(t, "what is left", func() string {
				if _, err := os.Lstat(v.Root); !os.IsNotExist(err) {
					return fmt.Sprintf("the directory %s: %v", v.Root, err)
				}
				return residents(v.Spaces)
			})
			t.Logf("all gone after %v", time.Since(begin).Round(time.Millisecond))
		})
	}
}

// dies runs a victim until it has died.
func dies(t *testing.T, how string, kill func(*os.Process) error) victim {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v=false")
	cmd.Env = append(os.Environ(), victimKey+"="+how, "TMPDIR="+t.TempDir()) // it removes nothing
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outRead.Close()
	cmd.Stdout = outWrite
	err = cmd.Start()
	outWrite.Close()
	if err != nil {
		t.Fatal(err)
	}
	var v victim
	said := bufio.NewReader(outRead)
	if err := json.NewDecoder(said).Decode(&v); err != nil || len(v.Spaces) != 10 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the victim says %+v: %v", v, err)
	}
	hold(t, v.Spaces)
	if err := kill(cmd.Process); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the victim did not die, but ended")
	}
	return v
}

// TestWithoutRootALabSaysSo runs a copy of this program as another user.
func TestWithoutRootALabSaysSo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestVictim$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{victimKey + "=no"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "it needs root") ||
		!strings.Contains(string(out), "SKIP") {
		t.Errorf("%v:\n%s", err, out)
	}
}
