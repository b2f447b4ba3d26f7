package qemu_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

func settings() qemu.Settings {
	return qemu.Settings{Dir: "/run/godwit/web", LocalDisk: localDisk}
}

type (
	vm   = hypervisor.VM
	conf = qemu.Settings
)

// A refusal is a change to a VM or to its host's settings that makes it wrong.
type refusal struct {
	name   string
	change func(*vm, *conf)
	want   []string // what was looked at
}

func disk(change func(*hypervisor.Disk)) func(*vm, *conf) {
	return func(v *vm, _ *conf) { change(&v.Hardware.Disks[1]) }
}

func nic(change func(*hypervisor.NIC)) func(*vm, *conf) {
	return func(v *vm, _ *conf) { change(&v.Hardware.NICs[0]) }
}

func sizes() []refusal {
	return []refusal{
		{"nothing of a VM that is right", func(*vm, *conf) {}, nil},
		{"no name", func(v *vm, _ *conf) { v.ID = "" }, []string{"name"}},
		{"a name with a line end", func(v *vm, _ *conf) { v.ID = "a\nb" }, []string{"name"}},
		{"no CPU", func(v *vm, _ *conf) { v.CPUs, v.Hardware.Pins = 0, nil }, []string{"CPUs"}},
		{"256 CPUs", func(v *vm, _ *conf) {
			v.CPUs, v.Hardware.Pins = 256, nil
		}, []string{"CPUs"}},
		{"negative memory", func(v *vm, _ *conf) {
			v.Memory = -hypervisor.GiB
		}, []string{"memory"}},
		{"less than a MiB", func(v *vm, _ *conf) {
			v.Memory, v.Hardware.Hugepages = hypervisor.MiB-8*hypervisor.KiB, 0
		}, []string{"memory"}},
		{"memory that QEMU would round up", func(v *vm, _ *conf) {
			v.Memory, v.Hardware.Hugepages = hypervisor.MiB+hypervisor.PageSize, 0
		}, []string{"memory"}},
		{"half a huge page", func(v *vm, _ *conf) {
			v.Memory += hypervisor.MiB
		}, []string{"memory"}},
		{"pages of 3 MiB", func(v *vm, _ *conf) { v.Hardware.Hugepages = 3 << 20 },
			[]string{"hugepages"}},
		{"pages of less than nothing", func(v *vm, _ *conf) { v.Hardware.Hugepages = -1 << 63 },
			[]string{"hugepages"}},
		{"a machine without PCI", func(v *vm, _ *conf) { v.Hardware.Machine = "isapc" },
			[]string{"machine type"}},
		{"a machine type with an option", func(v *vm, _ *conf) {
			v.Hardware.Machine = "pc-q35-7.2,x=y"
		},
			[]string{"machine type"}},
		{"a CPU model that is an option", func(v *vm, _ *conf) { v.Hardware.CPUModel = "-hda" },
			[]string{"CPU model"}},
		{"a CPU model with a space", func(v *vm, _ *conf) { v.Hardware.CPUModel = "a b" },
			[]string{"CPU model"}},
	}
}

func hosts() []refusal {
	return []refusal{
		{"fewer pins than CPUs", func(v *vm, _ *conf) { v.Hardware.Pins = [][]int{{0}} },
			[]string{"pins"}},
		{"a CPU pinned to none", func(v *vm, _ *conf) { v.Hardware.Pins = [][]int{{0}, {}} },
			[]string{"pins of CPU 1"}},
		{"pins to CPUs that no host has", func(v *vm, _ *conf) {
			v.Hardware.Pins = [][]int{{-1}, {1024}}
		},
			[]string{"pins of CPU 0", "pins of CPU 1"}},
		{"firmware without its folder", func(v *vm, _ *conf) { v.Hardware.Firmware = "bios" },
			[]string{"firmware"}},
		{"firmware in no text", func(v *vm, _ *conf) { v.Hardware.Firmware = "/\xff" },
			[]string{"firmware"}},
		{"an unknown accelerator", func(_ *vm, s *conf) { s.Accelerator = "xen,x=y" },
			[]string{"accelerator"}},
		{"no run folder", func(_ *vm, s *conf) { s.Dir = "" }, []string{"run folder"}},
		{"a run folder too deep for sockets",
			func(_ *vm, s *conf) { s.Dir = "/" + strings.Repeat("d", 94) },
			[]string{"path of a socket in the run folder"}},
		{"an extra argument that no program can get",
			func(_ *vm, s *conf) { s.Extra = []string{"\x00"} }, []string{"extra argument"}},
		{"a local disk without a place", func(_ *vm, s *conf) { s.LocalDisk = nil },
			[]string{`disk "scratch": image`}},
		{"a local disk in a relative place",
			func(_ *vm, s *conf) { s.LocalDisk = func(string) string { return "x" } },
			[]string{`disk "scratch": image`}},
	}
}

func diskRefusals() []refusal {
	return []refusal{
		{"a disk with a capital", disk(func(d *hypervisor.Disk) { d.Name = "Root" }),
			[]string{`disk "Root": name`}},
		{"a disk with no name", disk(func(d *hypervisor.Disk) { d.Name = "" }),
			[]string{`disk "": name`}},
		{"a disk with a name beyond reason",
			disk(func(d *hypervisor.Disk) { d.Name = strings.Repeat("d", 64) }),
			[]string{`disk "` + strings.Repeat("d", 64) + `": name`}},
		{"two disks with one name", disk(func(d *hypervisor.Disk) { d.Name = "tools" }),
			[]string{`disk "tools": name`}},
		{"two disks with one image, one of which is written to",
			disk(func(d *hypervisor.Disk) { d.Path = "/srv/tools.iso" }),
			[]string{`disk "root": image`}},
		{"two disks that read one image", disk(func(d *hypervisor.Disk) {
			d.Path, d.ReadOnly = "/srv/tools.iso", true
		}), nil},
		{"a relative path", disk(func(d *hypervisor.Disk) { d.Path = "nbd:x" }),
			[]string{`disk "root": image`}},
		{"a path with what no character is", disk(func(d *hypervisor.Disk) {
			d.Path = "/\ufffe"
		}),
			[]string{`disk "root": image`}},
		{"an unknown format", disk(func(d *hypervisor.Disk) { d.Format = "vmdk" }),
			[]string{`disk "root": format`}},
		{"a negative size", disk(func(d *hypervisor.Disk) { d.Size = -512 }),
			[]string{`disk "root": size`}},
		{"half a sector", disk(func(d *hypervisor.Disk) { d.Size = 256 }),
			[]string{`disk "root": size`}},
	}
}

func cards() []refusal {
	return []refusal{
		{"an address of many cards", nic(func(n *hypervisor.NIC) {
			n.MAC = "01:00:5e:00:00:01"
		}),
			[]string{"network card 0: MAC"}},
		{"no address", nic(func(n *hypervisor.NIC) {
			n.MAC = ""
		}), []string{"network card 0: MAC"}},
		{"an address with an option", nic(func(n *hypervisor.NIC) {
			n.MAC = "52:54:00:12:34:5,x=y"
		}),
			[]string{"network card 0: MAC"}},
		{"one address twice", nic(func(n *hypervisor.NIC) { n.MAC = "52:54:00:12:34:57" }),
			[]string{"network card 1: MAC"}},
		{"a tap that is a path", nic(func(n *hypervisor.NIC) { n.Tap = "../a" }),
			[]string{"network card 0: tap"}},
		{"a tap that the kernel would number", nic(func(n *hypervisor.NIC) { n.Tap = "tap%d" }),
			[]string{"network card 0: tap"}},
		{"a tap with 16 bytes", nic(func(n *hypervisor.NIC) { n.Tap = "0123456789abcdef" }),
			[]string{"network card 0: tap"}},
		{"one tap twice", func(v *vm, _ *conf) { v.Hardware.NICs[1].Tap = "tap0" },
			[]string{"network card 1: tap"}},
		{"all at once", func(v *vm, _ *conf) {
			v.Memory, v.CPUs, v.Hardware.Disks[0].Format = 1, -1, "x"
		}, []string{"CPUs", "memory", "memory", "pins", `disk "tools": format`}},
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, tt := range slices.Concat(sizes(), hosts(), diskRefusals(), cards()) {
		t.Run(tt.name, func(t *testing.T) {
			v, s := full(), settings()
			tt.change(&v, &s)
			err := qemu.Check(v, s)
			refused, _ := errors.AsType[*backend.Refused](err)
			var got []string
			if refused != nil {
				for _, r := range refused.Reasons {
					got = append(got, r.Check)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if errors.Is(err, hypervisor.Invalid) != (len(tt.want) > 0) {
				t.Errorf("%v is Invalid: %t", err, errors.Is(err, hypervisor.Invalid))
			}
			if args, again := qemu.Args(v, s); (again == nil) != (err == nil) ||
				(args == nil) != (err != nil) {
				t.Errorf("Args answers %q, %v", args, again)
			}
		})
	}
}

func TestTooManyDevices(t *testing.T) {
	v, s := full(), settings()
	for i := range 129 {
		v.Hardware.Disks = append(v.Hardware.Disks,
			hypervisor.Disk{Name: fmt.Sprintf("d%d", i), Path: fmt.Sprintf("/%d", i)})
		v.Hardware.NICs = append(v.Hardware.NICs,
			hypervisor.NIC{MAC: fmt.Sprintf("52:54:01:00:00:%02x", i)})
	}
	refused, _ := errors.AsType[*backend.Refused](qemu.Check(v, s))
	if refused == nil || len(refused.Reasons) != 2 {
		t.Errorf("%v, want the disks and the cards", refused)
	}
}

// FuzzCheck: no description of a VM makes the package panic.
func FuzzCheck(f *testing.F) {
	f.Add(int64(1<<30), 2, "q35", "/srv/a,b")
	f.Add(int64(-1), -1, "-", "\xff\x00")
	f.Fuzz(func(t *testing.T, memory int64, cpus int, word, path string) {
		vm := hypervisor.VM{ID: hypervisor.VMID(word), Memory: hypervisor.Bytes(memory), CPUs: cpus,
			Hardware: &hypervisor.Hardware{Machine: word, CPUModel: path, Firmware: path,
				Hugepages: hypervisor.Bytes(memory), Pins: [][]int{{cpus}},
				Disks: []hypervisor.Disk{{Name: word, Path: path, Format: word,
					Size: hypervisor.Bytes(memory)}, {Name: path}},
				NICs: []hypervisor.NIC{{MAC: word, Tap: path}}}}
		s := qemu.Settings{Dir: path, Accelerator: word, LocalDisk: localDisk,
			Extra: []string{path}}
		args, err := qemu.Args(vm, s)
		if err == nil && strings.Contains(strings.Join(args, ""), "\x00") {
			t.Errorf("no program can get %q", args)
		}
	})
}
