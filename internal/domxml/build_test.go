package domxml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

var settings = domxml.Settings{Type: domxml.QEMU, DiskDir: "/disks"}

func built(t testing.TB, vm hypervisor.VM, s domxml.Settings) string {
	t.Helper()
	text, err := domxml.Build(vm, s, domxml.Mark{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var ids = rapid.StringMatching(`(default/[a-z&<>'" é]|shop/[a-z_&<>"世])[a-z]{1,5}`)

// drawnVM is any VM that can be built.
func drawnVM(t *rapid.T) hypervisor.VM {
	vm := hypervisor.VM{
		ID:     hypervisor.VMID(ids.Draw(t, "id")),
		Memory: hypervisor.Bytes(rapid.IntRange(1, 1<<20).Draw(t, "memory")) * 2 * hypervisor.MiB,
		CPUs:   rapid.IntRange(1, 8).Draw(t, "CPUs"),
	}
	if rapid.Bool().Draw(t, "no hardware") {
		return vm
	}
	h := &hypervisor.Hardware{
		Machine: rapid.SampledFrom([]string{"", "q35", "pc", "pc-q35-7.2",
			"pc-i440fx-6.2"}).Draw(t, "machine"),
		CPUModel: rapid.SampledFrom([]string{"", "host", "host-passthrough", "host-model", "max",
			"qemu64", "Skylake-Server,+vmx,-mpx", "qemu64,svm=off,x2apic=on"}).Draw(t, "CPU"),
		Hugepages: rapid.SampledFrom([]hypervisor.Bytes{0, 2 * hypervisor.MiB}).Draw(t, "pages"),
		Firmware:  rapid.SampledFrom([]string{"", "/fw/a & b.bin"}).Draw(t, "firmware"),
		DebugPort: rapid.SampledFrom([]uint16{0, 1, 0xe9, 0xffff}).Draw(t, "port"),
		MaxMemory: hypervisor.Bytes(rapid.IntRange(0, 1<<14).Draw(t, "most memory")) * hypervisor.DIMMUnit,
		MaxCPUs:   rapid.IntRange(0, 16).Draw(t, "most CPUs"),
	}
	if rapid.Bool().Draw(t, "pinned") {
		for range vm.CPUs {
			h.Pins = append(h.Pins, rapid.SliceOfN(rapid.IntRange(0, 1023), 1, 9).Draw(t, "pins"))
		}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "disks") {
		d := hypervisor.Disk{Name: rapid.StringMatching(`[a-z0-9-]{1,60}`).Draw(t, "disk") +
			fmt.Sprint(i),
			Format: rapid.SampledFrom([]string{"", "raw", "qcow2"}).Draw(t, "format"),
			Size:   hypervisor.MiB, ReadOnly: rapid.Bool().Draw(t, "read only")}
		d.Path = rapid.SampledFrom([]string{"", "/shared/", "/dev/mapper/a'<b>-",
			"/dev/shm/"}).Draw(t, "path")
		if d.Path != "" {
			d.Path += d.Name
		}
		h.Disks = append(h.Disks, d)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "cards") {
		h.NICs = append(h.NICs, hypervisor.NIC{MAC: fmt.Sprintf("52:54:00:AB:cd:%02x", i),
			Tap: rapid.SampledFrom([]string{"", fmt.Sprint("tap", i)}).Draw(t, "tap")})
	}
	vm.Hardware = h
	return vm
}

// TestWhatIsBuiltIsRead: the XML and its mark together are the VM that was asked for,
// in every word.
func TestWhatIsBuiltIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := drawnVM(t)
		s := settings
		s.Type = rapid.SampledFrom([]string{"", domxml.KVM, domxml.QEMU}).Draw(t, "type")
		s.Unfit = rapid.SampledFrom([]string{"", domxml.ArchCapabilities}).Draw(t, "unfit")
		mark := domxml.Mark{VM: vm, Job: hypervisor.JobID(rapid.String().Draw(t, "job")),
			Boot: rapid.IntRange(-1, 9).Draw(t, "boot"), Cold: rapid.Bool().Draw(t, "cold"), Source: "n1"}
		mark.Job = hypervisor.JobID(strings.ToValidUTF8(string(mark.Job), ""))
		text, err := domxml.Build(vm, s, mark)
		if errors.Is(err, hypervisor.Invalid) && strings.Contains(err.Error(), "hash") {
			t.Skip("two disks have one place")
		}
		if err != nil {
			t.Fatal(err)
		}
		facts, err := domxml.Read(text, s)
		if err != nil || facts.MarkError != nil {
			t.Fatal(err, facts.MarkError)
		}
		if diff := cmp.Diff(mark, *facts.Mark); diff != "" {
			t.Errorf("mark (-want +got):\n%s\n%s", diff, text)
		}
		if diff := cmp.Diff(vm, domxml.Reconcile(vm, facts)); diff != "" {
			t.Errorf("VM (-want +got):\n%s\n%s", diff, text)
		}
		again, err := domxml.Build(vm, s, mark)
		if err != nil || again != text {
			t.Errorf("the same VM gives another XML (-first +second):\n%s", cmp.Diff(text, again))
		}
	})
}

// TestWithoutAMarkEverythingButSizesIsRead: what the XML says on its own.
func TestWithoutAMarkEverythingButSizesIsRead(t *testing.T) {
	vm := hypervisor.VM{ID: "shop/web", Memory: hypervisor.GiB, CPUs: 2,
		Hardware: &hypervisor.Hardware{Machine: "pc-q35-7.2", CPUModel: "qemu64,+a,-b",
			Hugepages: 2 * hypervisor.MiB, Pins: [][]int{{0, 1, 2, 5}, {7}}, Firmware: "/f",
			DebugPort: 0xe9, Disks: []hypervisor.Disk{{Name: "root", Format: "qcow2"},
				{Name: "iso", Path: "/i", Format: "raw", ReadOnly: true}},
			NICs: []hypervisor.NIC{{MAC: "52:54:00:00:00:01", Tap: "tap0"},
				{MAC: "52:54:00:00:00:02"}}}}
	text := built(t, vm, settings)
	if !strings.Contains(text, `policy="disable" name="b"`) {
		t.Errorf("a feature that is taken away is not disabled:\n%s", text)
	}
	facts, err := domxml.Read(text, settings)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vm, facts.VM); diff != "" {
		t.Errorf("VM (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"root": "/disks/shop_web.root", "iso": "/i"},
		facts.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// tooMany are more disks than a VM has.
func tooMany() []hypervisor.Disk {
	var all []hypervisor.Disk
	for i := range 129 {
		all = append(all, hypervisor.Disk{Name: fmt.Sprint("d", i), Path: fmt.Sprint("/", i)})
	}
	return all
}

var reasonTests = []struct {
	about    string
	memory   hypervisor.Bytes
	cpus     int
	hardware hypervisor.Hardware
	settings domxml.Settings
	want     []string // the checks that refuse
}{
	{"nothing is wrong", hypervisor.MiB, 1, hypervisor.Hardware{}, domxml.Settings{}, nil},
	{"sizes", 0, 0, hypervisor.Hardware{Hugepages: 3}, domxml.Settings{},
		[]string{"CPUs", "memory", "hugepages"}},
	{"sizes that libvirt would round", hypervisor.MiB + 8*hypervisor.KiB, 256,
		hypervisor.Hardware{}, domxml.Settings{}, []string{"CPUs", "memory"}},
	{"negative sizes", -hypervisor.GiB, -1, hypervisor.Hardware{Hugepages: -1 << 63,
		Disks: []hypervisor.Disk{{Name: "a", Path: "/a", Size: -512}}}, domxml.Settings{},
		[]string{"CPUs", "memory", "hugepages", `disk "a": size`}},
	{"memory that its pages do not divide", 3 * hypervisor.MiB, 1,
		hypervisor.Hardware{Hugepages: 2 * hypervisor.MiB}, domxml.Settings{},
		[]string{"memory"}},
	{"a board that is none", hypervisor.MiB, 1, hypervisor.Hardware{Machine: "virt",
		CPUModel: "host,kvm", Firmware: "bios.bin"}, domxml.Settings{},
		[]string{"machine type", "CPU model", "firmware"}},
	{"words that say more", hypervisor.MiB, 1, hypervisor.Hardware{
		Machine: "pc-q35-<x/>", CPUModel: "a'b"}, domxml.Settings{},
		[]string{"machine type", "CPU model"}},
	{"pins", hypervisor.MiB, 2, hypervisor.Hardware{Pins: [][]int{{}, {-1, 1024}, {0}}},
		domxml.Settings{}, []string{"pins", "pins of CPU 0", "pins of CPU 1", "pins of CPU 1"}},
	{"settings", hypervisor.MiB, 1, hypervisor.Hardware{}, domxml.Settings{Type: "xen",
		Emulator: "qemu", DiskDir: "a", ConsoleLog: "b",
		DebugSocket: "/" + strings.Repeat("x", 107)},
		[]string{"type of domain", "emulator", "folder of disks", "console log",
			"socket of the debug port"}},
	{"a disk's name, format, size and place", hypervisor.MiB, 1,
		hypervisor.Hardware{Disks: []hypervisor.Disk{{Name: "A", Format: "vmdk", Size: 1}}},
		domxml.Settings{}, []string{`disk "A": name`, `disk "A": format`, `disk "A": size`,
			`disk "A": image`}},
	{"two disks that are one", hypervisor.MiB, 1, hypervisor.Hardware{Disks: []hypervisor.Disk{
		{Name: "a", Path: "/x"}, {Name: "a", Path: "/x"}}}, domxml.Settings{},
		[]string{`disk "a": name`, `disk "a": image`}},
	{"too many disks", hypervisor.MiB, 1, hypervisor.Hardware{Disks: tooMany()},
		domxml.Settings{}, []string{"disks"}},
	{"cards", hypervisor.MiB, 1, hypervisor.Hardware{NICs: []hypervisor.NIC{
		{MAC: "01:00:00:00:00:00", Tap: "a/b"}, {MAC: "52:54:00:00:00:01", Tap: "t"},
		{MAC: "52:54:00:00:00:01", Tap: "t"}}}, domxml.Settings{},
		[]string{"network card 0: MAC", "network card 0: tap", "network card 2: MAC",
			"network card 2: tap"}},
}

func TestEveryReasonIsSaid(t *testing.T) {
	for _, tt := range reasonTests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := domxml.Build(hypervisor.VM{ID: "shop/web", Memory: tt.memory, CPUs: tt.cpus,
				Hardware: &tt.hardware}, tt.settings, domxml.Mark{})
			var got []string
			if refused, ok := errors.AsType[*backend.Refused](err); ok {
				for _, r := range refused.Reasons {
					got = append(got, r.Check)
					if r.Need == "" || r.Have == "" || !strings.Contains(err.Error(), r.Check) {
						t.Errorf("%+v: not all of why, or not in %q", r, err)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" && tt.about != "too many disks" {
				t.Errorf("(-want +got):\n%s\n%v", diff, err)
			}
			if errors.Is(err, hypervisor.Invalid) != (tt.want != nil) {
				t.Errorf("error %v", err)
			}
			if tt.about == "too many disks" && got[0] != "disks" {
				t.Errorf("got %q", got)
			}
		})
	}
	for _, name := range []hypervisor.VMID{"default/..", "default/."} {
		vm := hypervisor.VM{ID: name, Memory: hypervisor.MiB, CPUs: 1}
		_, err := domxml.Build(vm, settings, domxml.Mark{})
		if !errors.Is(err, hypervisor.Invalid) {
			t.Errorf("%s is built, and its disks are in another folder: %v", name, err)
		}
	}
}

// TestTheXMLIsKept: the XML of a domain is a promise to those that run. A change of
// it must be seen.
func TestTheXMLIsKept(t *testing.T) {
	vm := hypervisor.VM{ID: "shop/web", Memory: hypervisor.GiB, CPUs: 1,
		Hardware: &hypervisor.Hardware{DebugPort: 0xe9,
			Disks: []hypervisor.Disk{{Name: "root"}, {Name: "data", Path: "/dev/sdq"}},
			NICs:  []hypervisor.NIC{{MAC: "52:54:00:00:00:01", Tap: "tap0"}}}}
	s := settings
	s.Type, s.DebugSocket, s.Emulator = domxml.KVM, "/run/d.sock", "/usr/bin/qemu"
	checkGolden(t, "built.golden", built(t, vm, s))
}
