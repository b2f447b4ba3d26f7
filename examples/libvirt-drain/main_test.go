//go:build linux && libvirt_dlopen

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestMain(m *testing.M) { os.Exit(libvirttest.Main(m)) }

const hosta, hostb = libvirttest.HostA, libvirttest.HostB

// load is what the guests do: they check their own memory.
func load() guest.Params {
	return guest.Params{Fill: 16 << 20, WorkingSet: 1 << 20, Rate: 4 << 20, Random: true}.
		On(testutil.Accelerator(), testutil.QEMU())
}

// arguments drain hosta onto hostb.
func arguments(lab *libvirttest.Lab, dir string, more ...string) []string {
	return append([]string{"--from", hosta + "=" + lab.URI(hosta), "--to",
		hostb + "=" + lab.URI(hostb), "--peer", "qemu+tcp://%s/system", "--dir", dir,
		"--cpus", "64", "--within", "1m"}, more...)
}

// begin starts VMs on hosta, listens to them, and returns their names in libvirt.
func begin(t *testing.T, lab *libvirttest.Lab, dir string, n int) (names []string) {
	t.Helper()
	ctx := testutil.Context(t, testutil.DefaultLimit)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := libvirt.New(ctx, libvirt.Config{Name: hosta, URI: lab.URI(hosta),
		Dir: filepath.Join(dir, hosta), CPUs: 64, DebugDir: "/run"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	rom := lab.Guest(t, load())
	for i := range n {
		names = append(names, fmt.Sprintf("web-%d", i))
		vm := hypervisor.VM{ID: hypervisor.VMID("default/" + names[i]), CPUs: 1,
			Memory:   hypervisor.Bytes(libvirttest.Memory(load())) * hypervisor.MiB,
			Hardware: &hypervisor.Hardware{Machine: "pc", Firmware: rom, DebugPort: 0xe9}}
		pulse := lab.ListenAt(t, h.DebugSocket(vm.ID))
		if err := h.Do(ctx, vm.ID, hypervisor.Start{VM: vm}); err != nil {
			t.Fatal(err)
		}
		if err := pulse.Wait(ctx, func(r guest.HeartbeatLog) bool { return r.Ready }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := pulse.Log().Check(); err != nil {
				t.Errorf("%s: %v", vm.ID, err)
			}
		})
	}
	return names
}

// domains are the names of the domains of a host, sorted: virsh lists those that run in the order in which they came.
func domains(t *testing.T, lab *libvirttest.Lab, host string) string {
	t.Helper()
	out, err := lab.Virsh(t.Context(), host, "list", "--all", "--name")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(out)
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestDrain empties a host on which three guests run, two at a time.
func TestDrain(t *testing.T) {
	lab, dir := libvirttest.Shared(t, libvirttest.Options{}), filepath.Join(t.TempDir(), "d")
	names := begin(t, lab, dir, 3)
	var out bytes.Buffer
	began := time.Now()
	err := run(t.Context(), arguments(lab, dir, "--parallel", "2", "--bandwidth", "16MiB/s"), &out)
	t.Logf("%v:\n%s", time.Since(began).Round(time.Millisecond), &out)
	if err != nil {
		t.Fatal(err)
	}
	if left, there := domains(t, lab, hosta), domains(t, lab, hostb); left != "" ||
		there != strings.Join(names, " ") {
		t.Errorf("on %s is %q, on %s %q", hosta, left, hostb, there)
	}
	for _, name := range names {
		if err := lab.Verify(t, hostb, name, load()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), name+"  Running → Succeeded hosta→hostb") {
			t.Errorf("nothing is said of the end of %s", name)
		}
	}
	// A transfer may begin and end between two looks: TestHowAMigrationGoes has its percents.
	if !regexp.MustCompile(`left: .*default/web-\d (Running|HandedOver) (\d+% |[A-Z])`).Match(out.Bytes()) {
		t.Error("nothing is said of how it goes")
	}
}

func TestHowAMigrationGoes(t *testing.T) {
	for want, p := range map[string]hypervisor.Progress{
		"":            {Status: hypervisor.JobNone},
		" Setup":      {Status: hypervisor.JobSetup},
		" Active":     {Status: hypervisor.JobActive},
		" 75% 1MiB/s": {Status: hypervisor.JobActive, Total: 400, Remaining: 100, Bandwidth: 1 << 20},
		" 0% 0B/s":    {Status: hypervisor.JobActive, Total: 400, Remaining: 500}, // it grew
		" Succeeded":  {Status: hypervisor.JobSucceeded, Total: 400},
	} {
		if got := how(p); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}

// TestDrainsFollowEachOther: hosts remember jobs, and a VM that has come back leaves
// again.
func TestDrainsFollowEachOther(t *testing.T) {
	testutil.Sample(t, 3)
	lab, dir := libvirttest.Shared(t, libvirttest.Options{}), filepath.Join(t.TempDir(), "d")
	names := begin(t, lab, dir, 1)
	there := arguments(lab, dir)
	back := append([]string{"--from", there[3], "--to", there[1]}, there[4:]...)
	for i, args := range [][]string{there, back, there} {
		time.Sleep(time.Second) // the names of jobs have seconds
		var out bytes.Buffer
		if err := run(t.Context(), args, &out); err != nil {
			t.Fatalf("drain %d: %v\n%s", i+1, err, &out)
		}
	}
	if err := lab.Verify(t, hostb, names[0], load()); err != nil {
		t.Error(err)
	}
}

// TestDrainOfWhatEnds: a VM that is stopped while it waits for its turn is not waited
// for, and neither moved nor started again.
func TestDrainOfWhatEnds(t *testing.T) {
	testutil.Sample(t, 3)
	lab, dir := libvirttest.Shared(t, libvirttest.Options{}), filepath.Join(t.TempDir(), "d")
	names := begin(t, lab, dir, 2)
	out := &stopper{stop: func() {
		if _, err := lab.Virsh(t.Context(), hosta, "destroy", names[1]); err != nil {
			t.Error(err)
		}
	}}
	args := arguments(lab, dir, "--parallel", "1", "--bandwidth", "8MiB/s")
	if err := run(t.Context(), args, out); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if there := domains(t, lab, hostb); there != names[0] {
		t.Errorf("on %s is %q\n%s", hostb, there, out)
	}
}

// stopper calls stop once, when the first VM is on its way.
type stopper struct {
	bytes.Buffer
	stop func()
	done bool
}

func (s *stopper) Write(p []byte) (int, error) {
	if !s.done && bytes.Contains(p, []byte("web-0  ")) && bytes.Contains(p, []byte("→ Running")) {
		s.done = true
		s.stop()
	}
	return s.Buffer.Write(p)
}

func TestDrainRefusesWhatItCannotDo(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a flag that is none":  {[]string{"--form", "x"}, "not defined: -form"},
		"no speed":             {[]string{"--bandwidth", "fast"}, `--bandwidth: "fast"`},
		"no host":              {[]string{"--dir", dir}, "say NAME=URI"},
		"a URI without a host": {[]string{"--from", "qemu:///system"}, `"qemu:///system": whose`},
		"no target":            {[]string{"--from", "a=qemu:///system"}, `"": whose`},
		"no host that is up": {[]string{"--from", "a=" + nowhere(dir), "--to",
			"b=" + nowhere(dir), "--dir", dir + "/d", "--within", "10s"}, "New on a: transient"},
	} {
		err := run(t.Context(), tt.args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func nowhere(dir string) string { return "qemu+unix:///system?socket=" + dir + "/none" }

func TestNamesOfHosts(t *testing.T) {
	for text, want := range map[string][2]string{
		"a=qemu:///system":                     {"a", "qemu:///system"},
		"qemu+ssh://root@b/system":             {"b", "qemu+ssh://root@b/system"},
		"qemu+unix:///system?socket=/x":        {"", "qemu+unix:///system?socket=/x"},
		"c=qemu+unix:///system?socket=/x":      {"c", "qemu+unix:///system?socket=/x"},
		"qemu+tls://d:16514/system?pkipath=/x": {"d", "qemu+tls://d:16514/system?pkipath=/x"},
		"":                                     {"", ""},
	} {
		if name, uri := split(text); string(name) != want[0] || uri != want[1] {
			t.Errorf("%q: got %q, %q", text, name, uri)
		}
	}
}
