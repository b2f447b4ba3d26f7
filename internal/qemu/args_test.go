package qemu_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// rewriting reports whether the command lines are to be written anew: -rewrite is a flag of
// datadriven.
func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

// localDisk keeps local disks where a test never looks.
func localDisk(name string) string { return "/var/lib/godwit/" + name + ".img" }

// full is a VM of which everything is set.
func full() hypervisor.VM {
	return hypervisor.VM{ID: "default/web", Memory: 2 * hypervisor.GiB, CPUs: 2,
		Hardware: &hypervisor.Hardware{Machine: "pc-i440fx-7.2",
			CPUModel:  "Skylake-Server,pcid=off",
			Hugepages: 2 * hypervisor.MiB, Pins: [][]int{{0, 1}, {1}},
			Firmware: "/usr/share/firmware.bin", DebugPort: 0xe9,
			Disks: []hypervisor.Disk{
				{Name: "tools", Path: "/srv/tools.iso", Format: "raw", ReadOnly: true},
				{Name: "root", Path: "/srv/a,b={\"c\"} d/ü.qcow2", Format: "qcow2", Size: 1 << 30},
				{Name: "scratch", Size: 1 << 20},
				{Name: "a-name-that-is-too-long-for-the-name-of-a-node", Path: "/dev/vg/data"}},
			NICs: []hypervisor.NIC{{MAC: "52:54:00:12:34:56", Tap: "tap0"},
				{MAC: "52:54:00:12:34:57"}}}}
}

func TestCommandLines(t *testing.T) {
	plain := hypervisor.VM{ID: "default/plain", Memory: 64 * hypervisor.MiB, CPUs: 1}
	tests := []struct {
		name     string
		vm       hypervisor.VM
		settings qemu.Settings
	}{
		{"plain", plain, qemu.Settings{Dir: "/run/godwit/plain"}},
		{"target", plain, qemu.Settings{Dir: "/run/godwit/a,b", Accelerator: qemu.KVM,
			Incoming: true, Console: true, Extra: []string{"-d", "guest_errors"}}},
		{"full", full(), qemu.Settings{Dir: "/run/godwit/web", Accelerator: qemu.KVM,
			LocalDisk: localDisk, Console: true}},
		{"unconfined", plain, qemu.Settings{Dir: "/run/godwit/plain", Accelerator: qemu.KVM,
			CPU: "host,arch-capabilities=off", Unconfined: true, Buffered: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, err := qemu.Args(tt.vm, tt.settings)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for i, arg := range args {
				if strings.HasPrefix(arg, "-") || i > 0 && !strings.HasPrefix(args[i-1], "-") {
					fmt.Fprintf(&got, "%s\n", arg)
				} else {
					fmt.Fprintf(&got, "    %s\n", arg)
				}
			}
			golden := filepath.Join("testdata", tt.name+".args")
			if rewriting() {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// machineOptions returns the values that follow an option.
func machineOptions(args []string, option string) []string {
	var values []string
	for i, arg := range args[:len(args)-1] {
		if arg == option {
			values = append(values, args[i+1])
		}
	}
	return values
}

// parsed reads one of QEMU's option lists, as QEMU does: a comma ends a value,
// two are one.
func parsed(list string) map[string]string {
	values := map[string]string{}
	for i, part := range strings.Split(strings.ReplaceAll(list, ",,", "\x00"), ",") {
		key, value, found := strings.Cut(strings.ReplaceAll(part, "\x00", ","), "=")
		if !found && i == 0 {
			key, value = "", key
		}
		values[key] = value
	}
	return values
}

// hostilePath draws file names that try to add options.
func hostilePath() *rapid.Generator[string] {
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{",", ",,", "=", "\"", "\\", "}",
		",driver=null-co", " -hda x", "-S", "'", "%s", "ü", "${HOME}", "json:{}", "fat:"}))
	return rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "")
	})
}

// TestNoNameBecomesAnOption draws names and paths; what is not refused comes back
// out of the options as it went in, and the options are the same as ever.
func TestNoNameBecomesAnOption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := full()
		vm.ID = hypervisor.VMID(hostilePath().Draw(t, "name"))
		h := vm.Hardware
		h.Disks[1].Path = hostilePath().Draw(t, "disk")
		h.Firmware = hostilePath().Draw(t, "firmware")
		h.NICs[0].Tap = rapid.OneOf(rapid.StringN(1, 4, 9),
			rapid.SampledFrom([]string{"a,script=x", "a=b"})).Draw(t, "tap")
		local := hostilePath().Draw(t, "local")
		s := qemu.Settings{Dir: hostilePath().Draw(t, "dir"), Console: true,
			LocalDisk: func(string) string { return local }}
		args, err := qemu.Args(vm, s)
		if err != nil {
			t.Skip("it is refused: ", err)
		}
		var names []string
		for i := 0; i < len(args); i++ {
			names = append(names, args[i])
			if args[i] != "-nodefaults" && args[i] != "-no-user-config" && args[i] != "-S" {
				i++
			}
		}
		if slices.ContainsFunc(names, func(s string) bool { return !strings.HasPrefix(s, "-") }) {
			t.Fatalf("these are no options: %q", names)
		}
		console := parsed(machineOptions(args, "-chardev")[1])
		for what, pair := range map[string][2]string{
			"name":      {string(vm.ID), parsed(machineOptions(args, "-name")[0])["guest"]},
			"firmware":  {h.Firmware, machineOptions(args, "-bios")[0]},
			"pid file":  {s.PIDFile(), machineOptions(args, "-pidfile")[0]},
			"QMP":       {s.QMP(), parsed(machineOptions(args, "-chardev")[0])["path"]},
			"console":   {s.ConsoleSocket(), console["path"]},
			"log":       {s.ConsoleLog(), console["logfile"]},
			"tap":       {h.NICs[0].Tap, parsed(machineOptions(args, "-netdev")[0])["ifname"]},
			"no script": {"no", parsed(machineOptions(args, "-netdev")[0])["script"]},
			"disk":      {h.Disks[1].Path, filename(t, machineOptions(args, "-blockdev")[1])},
			"local":     {local, filename(t, machineOptions(args, "-blockdev")[2])},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s went in as %q and comes out as %q", what, pair[0], pair[1])
			}
		}
		if len(console) != 7 {
			t.Errorf("the console has other options: %q", console)
		}
	})
}

func filename(t *rapid.T, text string) string {
	var node struct{ File struct{ Filename string } }
	if err := json.Unmarshal([]byte(text), &node); err != nil {
		t.Fatal(err)
	}
	return node.File.Filename
}

// TestADiskComesToTheSamePlace: whatever is plugged in after a disk or unplugged
// with permission, the disk stays where it was.
func TestADiskComesToTheSamePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 40, rapid.ID).
			Draw(t, "names")
		h := &hypervisor.Hardware{}
		for _, name := range names {
			h.Disks = append(h.Disks, hypervisor.Disk{Name: name, Path: "/" + name, ReadOnly: true})
		}
		where := map[string]string{}
		for i, name := range names {
			where[name] = at(h, i)
		}
		gone := rapid.IntRange(0, len(names)-1).Draw(t, "gone")
		rest := &hypervisor.Hardware{Disks: slices.Delete(slices.Clone(h.Disks), gone, gone+1)}
		same := true
		for i, d := range rest.Disks {
			same = same && at(rest, i) == where[d.Name]
		}
		if allowed := qemu.CheckDetach(h, gone) == nil; allowed != same {
			t.Errorf("unplugging %q is allowed: %t, the others stay: %t", names[gone],
				allowed, same)
		}
		before := &hypervisor.Hardware{Disks: h.Disks[:gone]}
		for i := range before.Disks {
			if at(before, i) != where[names[i]] {
				t.Errorf("%q moves when others are plugged in", names[i])
			}
		}
		taken := map[string]string{}
		for name, place := range where {
			if other, ok := taken[place]; ok {
				t.Errorf("%q and %q are both at %s", name, other, place)
			}
			taken[place] = name
		}
	})
}

func at(h *hypervisor.Hardware, i int) string {
	d := qemu.DiskDevice(h, i)
	return fmt.Sprint(d["bus"], " ", d["scsi-id"], " ", d["lun"])
}

func TestNamesOfNodesAreValidAndDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9-]{1,63}`)
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		for _, of := range []func(string) string{qemu.NodeName, qemu.FileNodeName,
			qemu.DeviceID} {
			if n := len(of(a)); n > 31 {
				t.Errorf("%q has %d bytes; QEMU takes 31", of(a), n)
			}
			if (of(a) == of(b)) != (a == b) {
				t.Errorf("%q and %q become %q and %q", a, b, of(a), of(b))
			}
		}
	})
}

func TestAGuestKeepsItsUUID(t *testing.T) {
	got := qemu.UUID("default/web")
	if got != qemu.UUID("default/web") || got == qemu.UUID("default/web2") {
		t.Error("it does not follow from the name")
	}
	if len(got) != 36 || got[14] != '8' || !strings.ContainsRune("89ab", rune(got[19])) {
		t.Errorf("%s is no UUID of version 8", got)
	}
}

func TestAQEMUIsKnownByItsFolder(t *testing.T) {
	s := qemu.Settings{Dir: "/run/a,b"}
	args, err := qemu.Args(hypervisor.VM{ID: "a", Memory: hypervisor.MiB, CPUs: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Owns(args) {
		t.Error("it does not know its own")
	}
	other := qemu.Settings{Dir: "/run/a"}
	for _, argv := range [][]string{args, nil, {"-pidfile"}, {"/run/a/qemu.pid"}} {
		if other.Owns(argv) {
			t.Errorf("it takes %q for its own", argv)
		}
	}
}

func ExampleArgs() {
	_, err := qemu.Args(hypervisor.VM{ID: "web", Memory: 1 << 30, CPUs: 0},
		qemu.Settings{Dir: "/run/godwit/web"})
	fmt.Println(err)
	// Output:
	// VM "web" cannot be built: CPUs has to be 1 to 255, is 0
}

func ExampleDiskDevice() {
	h := &hypervisor.Hardware{Disks: []hypervisor.Disk{{Name: "root", Path: "/srv/root.img"}}}
	d := qemu.DiskDevice(h, 0)
	fmt.Println(d["driver"], d["id"], d["drive"], d["bus"], d["scsi-id"], d["lun"])
	// Output:
	// scsi-hd dev.root disk.root scsi.0 8 3
}
