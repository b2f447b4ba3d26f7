//go:build linux

package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// probing is set in a process that probes a program and does nothing else.
const probing = "GODWIT_TEST_PROBE"

func binary(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("there is no QEMU: ", err)
	}
	return path
}

// ask probes a program that is expected to answer.
func ask(t *testing.T, path string) qemu.Features {
	t.Helper()
	ctx := testutil.Context(t, testutil.DefaultLimit)
	f, err := qemu.Probe(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheInstalledQEMU(t *testing.T) {
	f := ask(t, binary(t))
	if err := f.Require(qemu.Oldest); err != nil {
		t.Skip(err)
	}
	if f.Arch != "x86_64" {
		t.Errorf("its guests are %q", f.Arch)
	}
	for _, name := range []string{"q35", "pc"} {
		full, known := f.Machine(name)
		if m := f.Machines[full]; !known || m.Alias != name || m.MaxCPUs < 64 {
			t.Errorf("%s is %s: %+v", name, full, m)
		}
		if again, known := f.Machine(full); !known || again != full {
			t.Errorf("%s is %s, %t", full, again, known)
		}
	}
	if full, known := f.Machine(""); known {
		t.Errorf("no name is the machine %s", full)
	}
	if !slices.Contains(f.MultifdMethods, "zlib") || slices.Contains(f.MultifdMethods, "none") {
		t.Errorf("channels are compressed with %v", f.MultifdMethods)
	}
	want := hypervisor.CanAutoConverge | hypervisor.CanUseChannels | hypervisor.CanCompress |
		hypervisor.CanXBZRLE | hypervisor.CanHoldSwitchOver | hypervisor.CanEncrypt |
		hypervisor.CanCopyStorage | hypervisor.CanMeasureDirtyRate | hypervisor.CanSnapshot |
		hypervisor.CanAttachDisk | hypervisor.CanMoveDisk
	if got := f.Abilities(); !got.Has(want) {
		t.Errorf("it lacks %v", (want &^ got).Names())
	}
	if f.Abilities()&(hypervisor.CanMoveCold|hypervisor.CanResize|hypervisor.CanTakeBack) != 0 {
		t.Error("it claims what only a backend does")
	}
	t.Logf("%s with the CPU %s %s", f.Software(), f.CPU, f.NoKVM)
}

// TestKVMIsSaidToWorkOnlyIfItDoes: where the device cannot be opened there is no KVM.
func TestKVMIsSaidToWorkOnlyIfItDoes(t *testing.T) {
	f := ask(t, binary(t))
	if !testutil.HasKVM() && f.Accelerator != "tcg" {
		t.Errorf("%s, but /dev/kvm cannot be opened", f.Accelerator)
	}
	if (f.Accelerator == "kvm") != (f.NoKVM == "") || (f.CPU == "qemu64") != (f.NoKVM != "") {
		t.Errorf("it has %s with the CPU %s, because %q", f.Accelerator, f.CPU, f.NoKVM)
	}
}

// TestAHostWithoutUserfaultfd starts QEMU as a user who may use neither KVM nor
// userfaultfd.
func TestAHostWithoutUserfaultfd(t *testing.T) {
	real := binary(t)
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("only root with setpriv can become another user")
	}
	if sysctl, _ := os.ReadFile("/proc/sys/vm/unprivileged_userfaultfd"); string(sysctl) != "0\n" {
		t.Skip("all users may use userfaultfd here")
	}
	path := script(t, "exec "+setpriv+" --reuid 65534 --regid 65534 --clear-groups "+real+` "$@"`)
	if uffd, err := os.Stat("/dev/userfaultfd"); err == nil && uffd.Mode().Perm()&0o002 != 0 {
		t.Skip("all users may open /dev/userfaultfd here")
	}
	f := ask(t, path)
	if f.Abilities()&(hypervisor.CanPostCopy|hypervisor.CanRecover) != 0 {
		t.Error("post-copy is said to work")
	}
	if kvm, err := os.Stat("/dev/kvm"); err == nil && kvm.Mode().Perm()&0o002 == 0 {
		if f.Accelerator != "tcg" || f.NoKVM == "" {
			t.Errorf("KVM is said to work: %q", f.NoKVM)
		}
	}
	if !f.Abilities().Has(hypervisor.CanAutoConverge) {
		t.Error("and what needs no privilege is said not to work")
	}
}

// script writes a program that claims to be QEMU.
func script(t *testing.T, body string) string {
	t.Helper()
	// Not in the test's own folder, which only its owner may enter.
	path := filepath.Join(t.TempDir(), "qemu")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// old answers like a QEMU 2.8.0 that knows no command but the handshake.
const old = `
echo '{"QMP":{"version":{"qemu":{"micro":0,"minor":8,"major":2},"package":""},"capabilities":[]}}'
while read -r line; do
	id=${line##*\"id\":\"}; id=${id%%\"*}
	echo '{"event":"NOTHING","timestamp":{"seconds":1,"microseconds":2}}'
	case $id in
	qmp_capabilities) echo '{"return":{},"id":"'$id'"}' ;;
	*) echo '{"error":{"class":"CommandNotFound","desc":"no"},"id":"'$id'"}' ;;
	esac
done`

func TestAnOldQEMU(t *testing.T) {
	f := ask(t, script(t, old))
	if want := (qemu.Version{Major: 2, Minor: 8}); f.Version != want {
		t.Errorf("its version is %v, want %v", f.Version, want)
	}
	if f.Abilities() != 0 || f.Accelerator != "tcg" {
		t.Errorf("with %s it can %v", f.Accelerator, f.Abilities().Names())
	}
	err := f.Require(qemu.Oldest)
	if !errors.Is(err, hypervisor.Unsupported) || errors.Is(err, hypervisor.Invalid) {
		t.Errorf("%v is not Unsupported", err)
	}
	for _, words := range []string{"QEMU 2.8.0 is too old", "6.2.0", f.Path} {
		if err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%q does not say %q", err, words)
		}
	}
}

func TestWhatIsNoQEMU(t *testing.T) {
	greet := `echo '{"QMP":{"version":{"qemu":{"micro":0,"minor":8,"major":2}}}}'`
	ready := greet + `; read -r line; echo '{"return":{},"id":"qmp_capabilities"}'; read -r line; `
	tests := []struct {
		name, body string
		says       string
	}{
		{"it prints junk", "echo hello; cat", "does not greet like a QEMU"},
		{"it prints other JSON", `echo '{"a":1}'; cat`, "QMP is missing"},
		{"it prints half of it", `printf '{"QMP":'`, "does not greet like a QEMU"},
		{"it is silent and ends", "exit 3", "exit status 3"},
		{"it says why it ends", "echo no such cpu >&2; exit 1", "no such cpu"},
		{"it says too much", "head -c 100000 /dev/zero >&2; echo last >&2; exit 1",
			"last"},
		{"it ends after the greeting", greet, "it has ended"},
		{"it refuses the handshake", greet + `; read -r line; ` +
			`echo '{"error":{"class":"X","desc":"busy"},"id":"qmp_capabilities"}'; cat`, "busy"},
		{"it ends in the middle of an answer", ready + `printf '{"return":'`, "query-kvm"},
		{"it answers nonsense", ready + `echo '{"return":[1],"id":"query-kvm"}'; cat`,
			"unreadable answer"},
		{"it answers words", ready + `echo '[]'; cat`, "query-kvm"},
		{"it never ends to print", greet + "; yes '{\"event\":1}'", "ask "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := testutil.Context(t, testutil.DefaultLimit)
			path := script(t, tt.body)
			f, err := qemu.Probe(ctx, path)
			if err == nil {
				t.Fatalf("it is taken for %+v", f)
			}
			for _, words := range []string{path, tt.says} {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
			if len(err.Error()) > 20_000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAProgramThatHangs(t *testing.T) {
	tests := []struct {
		name, body string
		leaves     bool // a process outside its group
	}{
		{"before it greets", "exec sleep 1000", false},
		{"with a child that holds on", `sleep 1000 & echo $! > "$0.pid"; wait`, false},
		{"with a child in a new session", `setsid sleep 1000 & echo $! > "$0.pid"; wait`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			path := script(t, tt.body)
			_, err := qemu.Probe(ctx, path)
			if pid, err := os.ReadFile(path + ".pid"); err == nil {
				stray := endStray(t, strings.TrimSpace(string(pid)))
				if stray && !tt.leaves {
					t.Error("a process of its group has outlived it")
				}
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "no answer in time") {
				t.Errorf("%q does not say what happened", err)
			}
		})
	}
}

// endStray kills what a test's own script started, and reports whether it still
// ran. A killed process that was not reaped has no program any more.
func endStray(t *testing.T, pid string) (ran bool) {
	t.Helper()
	program, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	if !strings.Contains(string(program), "sleep") {
		return false
	}
	if err := exec.Command("kill", "-9", pid).Run(); err != nil {
		t.Errorf("process %s: %v", pid, err)
	}
	return true
}

// A probe may be killed at any moment, and nothing is left of what was started.
func TestAProbeEndsWithItsCaller(t *testing.T) {
	dir := t.TempDir()
	pid, path := filepath.Join(dir, "pid"), filepath.Join(dir, "qemu")
	script := "#!/bin/sh\necho $$ > " + pid + ".new && mv " + pid + ".new " + pid +
		"\nexec sleep 1000\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), probing+"="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for began := time.Now(); len(text) == 0 && time.Since(began) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
		text, _ = os.ReadFile(pid) // until it is there
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("the program did not begin: %q", text)
	}
	defer syscall.Kill(n, syscall.SIGKILL)
	testutil.Eventually(t, "the program ends", func() error {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return nil
		}
		return fmt.Errorf("process %d is left: %s", n, state)
	})
}

func TestNoProgram(t *testing.T) {
	if _, err := qemu.Probe(t.Context(), "/nonexistent/qemu"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := qemu.Probe(ctx, "/bin/cat"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	ordered := []qemu.Version{{}, {2, 8, 0}, {6, 1, 9}, {6, 2, 0}, {6, 2, 1}, {7, 0, 0},
		{10, 0, 0}}
	for i, v := range ordered {
		for j, w := range ordered {
			sign := 0
			switch {
			case i < j:
				sign = -1
			case i > j:
				sign = 1
			}
			if got := v.Compare(w); got != sign {
				t.Errorf("%v against %v: %d, want %d", v, w, got, sign)
			}
			if refused := (qemu.Features{Version: v}).Require(w) != nil; refused != (sign < 0) {
				t.Errorf("%v where %v is needed: refused is %t", v, w, refused)
			}
		}
	}
}

func TestEveryAbilityHasItsNeeds(t *testing.T) {
	all := qemu.Features{MultifdMethods: []string{"zlib"},
		Capabilities: map[string]bool{"auto-converge": true, "postcopy-ram": true, "multifd": true,
			"xbzrle": true, "pause-before-switchover": true},
		Parameters: map[string]bool{"tls-creds": true},
		Commands:   map[string]bool{"blockdev-mirror": true}}
	want := []string{"auto-converge", "channels", "compress", "xbzrle", "encrypt"}
	if diff := cmp.Diff(want, all.Abilities().Names()); diff != "" {
		t.Errorf("without most commands (-want +got):\n%s", diff)
	}
	for v, ends := range map[qemu.Version]bool{{8, 2, 99}: false, {9, 0, 0}: true,
		{10, 1, 2}: true} {
		all.Version = v
		if all.Abilities().Has(hypervisor.CanLoseChannels) != ends {
			t.Errorf("QEMU %v can %v", v, all.Abilities().Names())
		}
	}
	all.Version, all.Accelerator = qemu.Version{10, 0, 13}, qemu.TCG
	if all.Abilities().Has(hypervisor.CanLoseChannels) {
		t.Error("with TCG a source may abort when its target dies")
	}
	if got := (qemu.Features{}).Abilities(); got != 0 {
		t.Errorf("without anything it can %v", got.Names())
	}
}

func ExampleFeatures_Require() {
	f := qemu.Features{Path: "/q", Version: qemu.Version{Major: 2, Minor: 8}}
	fmt.Println(f.Require(qemu.Oldest))
	// Output:
	// QEMU 2.8.0 is too old: 6.2.0 or newer is needed; install it, or name another one than /q
}
