package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// limit is how long a build from nothing may take.
const limit = 40 * time.Minute

// source copies the files of the module, as they are, to a directory.
func source(t *testing.T, dir string) {
	t.Helper()
	list := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names, err := list.Output()
	if err != nil {
		t.Skipf("the source is no checkout of git: %v", err)
	}
	pack := exec.Command("tar", "-C", "../..", "--null", "-T", "-", "-c")
	pack.Stdin = bytes.NewReader(names)
	all, err := pack.Output()
	if err != nil {
		t.Fatal(err)
	}
	unpack := exec.Command("tar", "-C", dir, "-x")
	unpack.Stdin = bytes.NewReader(all)
	if said, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// sharedDist is the folder of what was built for one system and one architecture; empty: nothing was yet.
var sharedDist string

// one is what the environment of dist.sh says for linux and amd64 alone.
var one = []string{"ARCHES=amd64", "SYSTEMS=linux"}

// distOnce builds for linux and amd64, once for all tests.
func distOnce(t *testing.T) string {
	t.Helper()
	if sharedDist != "" {
		return sharedDist
	}
	dir, err := os.MkdirTemp("", "godwit-dist-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // apt reads packages as a user of its own
		t.Fatal(err)
	}
	distInto(t, dir, one...)
	sharedDist = dir
	return sharedDist
}

// dist builds from a copy of the source, and returns the folder of what was built.
func dist(t *testing.T, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	distInto(t, out, env...)
	return out
}

// distInto builds from a copy of the source into a folder.
func distInto(t *testing.T, out string, env ...string) {
	t.Helper()
	dir := t.TempDir()
	source(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Limit(limit))
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(dir, "packaging/dist.sh"), out)
	c.Env = append(os.Environ(), "GODWIT_COMMIT=tested", "SOURCE_DATE_EPOCH=1767225600")
	c.Env = append(c.Env, env...)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
}

// sums reads SHA256SUMS, and checks it.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if is := sha256.Sum256(data); hex.EncodeToString(is[:]) != sum {
			t.Errorf("%s is not what SHA256SUMS says", name)
		}
		all[name] = sum
	}
	return all
}

// has skips a test on a machine without a program.
func has(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%v: make dist and its test need it", err)
		}
	}
}

// TestTheSameSourceGivesTheSameBytes builds in two folders, with two caches, at two moments, and
// with other settings of the user. It builds for linux and amd64; with GODWIT_LONG=all for all systems and
// architectures, which compiles the libraries of Kubernetes four times.
func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	testutil.SampleLong(t, 5)
	has(t, "git", "gcc", "install", "sha256sum")
	arches, systems, first := []string{"amd64"}, 1, distOnce
	set := one
	if os.Getenv(testutil.LongKey) == "all" {
		arches, systems = builtHere(t), 2
		set = []string{"ARCHES=" + strings.Join(arches, " ")}
		first = func(t *testing.T) string { return dist(t, set...) }
	}
	expected := sums(t, first(t))
	second := dist(t, append(set, "GOCACHE="+t.TempDir(), "TZ=Asia/Tokyo", "GOFLAGS=-v", "CGO_CFLAGS=-O0")...)
	again := sums(t, second)
	for name, sum := range expected {
		if again[name] != sum {
			t.Errorf("%s differs", name)
		}
	}
	// An arch has a binary, a package, a bill of materials, an image, and an archive for each system; all have a
	// Dockerfile and a manifest.
	if want := 2 + (4+systems)*len(arches); len(expected) != want || len(again) != want {
		t.Errorf("%d and %d files, want %d", len(expected), len(again), want)
	}
	for _, arch := range arches {
		checkBinary(t, filepath.Join(second, "godwit-linux-"+arch))
		checkBill(t, second, arch)
	}
}

// builtHere are the architectures for which this machine has a C compiler.
func builtHere(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("aarch64-linux-gnu-gcc"); err != nil {
		t.Log("no aarch64-linux-gnu-gcc: arm64 is not built")
		return []string{"amd64"}
	}
	return []string{"amd64", "arm64"}
}

// checkBinary has file(1) judge a binary.
func checkBinary(t *testing.T, path string) {
	t.Helper()
	if _, err := exec.LookPath("file"); err != nil {
		return
	}
	said, err := exec.Command("file", path).Output()
	if err != nil || !strings.Contains(string(said), "statically linked") {
		t.Errorf("%v: %s", err, said)
	}
}

// checkBill checks that a bill of materials names what the program is built from.
func checkBill(t *testing.T, dir, arch string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "godwit-*-"+arch+".cdx.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, c := range bill.Components {
		names[c.Name] = c.Version
	}
	if bill.BOMFormat != "CycloneDX" || names["go.etcd.io/bbolt"] == "" || names["std"] == "" ||
		names["libvirt.org/go/libvirt"] == "" {
		t.Errorf("%s names %v", filepath.Base(found[0]), names)
	}
}

// built returns the package for amd64, and the firmware of a guest that dirties memory.
func built(t *testing.T) (deb, rom string) {
	t.Helper()
	testutil.Long(t)
	has(t, "git", "gcc", "install", "sha256sum", "dpkg", "unshare", "chroot", "qemu-system-x86_64")
	if os.Geteuid() != 0 {
		t.Skip("to make a root and to install a package takes root")
	}
	dir := os.Getenv("GODWIT_DIST") // a folder with what was built already
	if dir == "" {
		dir = distOnce(t)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*_amd64.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("%v, %v", packages, err)
	}
	image, err := guest.Params{Fill: 24 << 20, WorkingSet: 1 << 20, Rate: 2 << 20,
		Random: true}.Firmware()
	if err != nil {
		t.Fatal(err)
	}
	rom = filepath.Join(t.TempDir(), "guest.rom")
	if err := os.WriteFile(rom, image, 0o644); err != nil {
		t.Fatal(err)
	}
	return packages[0], rom
}

// apart runs a script in namespaces of its own, which end with everything in them.
func apart(t *testing.T, script string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Limit(limit))
	defer cancel()
	said, err := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--propagation",
		"private", "--pid", "--fork", "--kill-child=KILL", "/bin/bash", script}, args...)...).CombinedOutput()
	t.Logf("%s", said)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "== done\n") {
		t.Error("it has not come to its end")
	}
}

// TestAHostIsDrainedWithThePackage installs it, drains a host, upgrades it while a VM runs, and
// removes it.
func TestAHostIsDrainedWithThePackage(t *testing.T) {
	deb, rom := built(t)
	accelerator := "tcg"
	if testutil.HasKVM() {
		accelerator = "kvm"
	}
	apart(t, "testdata/dist/install.sh", deb, rom, accelerator)
}

// TestVMsOutliveTheirUnits has a real systemd start, stop, restart and watch the daemons.
func TestVMsOutliveTheirUnits(t *testing.T) {
	has(t, "systemd-nspawn")
	deb, rom := built(t)
	apart(t, "testdata/dist/systemd.sh", deb, rom)
}

// TestTheClusterOfTheReadme starts with the commands that it shows.
func TestTheClusterOfTheReadme(t *testing.T) {
	deb, _ := built(t)
	apart(t, "testdata/dist/readme.sh", deb, "../../README.md")
}

// TestTheCommandsOfTheDocumentation are run as they are shown, one page after the other.
func TestTheCommandsOfTheDocumentation(t *testing.T) {
	has(t, "systemd-nspawn")
	deb, _ := built(t)
	apart(t, "testdata/dist/docs.sh", filepath.Dir(deb), "../../docs")
}
