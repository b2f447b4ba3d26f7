package domxml_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// TestWhatKeepsForeignDomains: all that stands against moving domains that others
// have made.
func TestWhatKeepsForeignDomains(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"virt-install", "openstack", "ovirt", "kubevirt", "workstation"} {
		text, err := os.ReadFile("testdata/" + name + ".xml")
		if err != nil {
			t.Fatal(err)
		}
		found, err := domxml.Of(string(text), domxml.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, name)
		for _, b := range found {
			fmt.Fprintln(&all, " ", b)
		}
		fmt.Fprintln(&all)
	}
	const golden = "testdata/blockers.golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const (
	no     = "" // nothing stands against it
	never  = "forbidden"
	cond   = "conditional"
	advice = "advice"
)

func devices(inner string) string { return "<devices>" + inner + "</devices>" }

var ruleTests = []struct {
	about, inner string
	want         string // weight and path, if anything stands against it
}{
	{"nothing", "", no},
	{"unknown elements", "<future a='b'/>" + devices("<future/>"), no},
	{"elements of others", "<x:launchSecurity xmlns:x='u' type='sev'/>", no},
	{"encrypted memory", "<launchSecurity type='sev-snp'/>", never + " /domain/launchSecurity"},
	{"protected memory of s390", "<launchSecurity type='s390-pv'/>",
		never + " /domain/launchSecurity"},
	{"other security", "<launchSecurity type='x'/>", no},
	{"a sound card by virtio", devices("<sound model='virtio'/>"), never + " /domain/devices/sound"},
	{"an empty drive", devices("<disk type='file' device='cdrom'><driver type='vmdk'/>" +
		"<target dev='sda'/></disk>"), no},
	{"an invariant TSC", "<cpu><feature name='invtsc' policy='require'/></cpu>",
		never + " /domain/cpu/feature"},
	{"with a frequency", "<cpu><feature name='invtsc'/></cpu><clock>" +
		"<timer name='tsc' frequency='3000000000'/></clock>", no},
	{"with the frequency of another timer", "<cpu><feature name='invtsc'/></cpu><clock>" +
		"<timer name='rtc' frequency='1'/></clock>", never + " /domain/cpu/feature"},
	{"with no frequency", "<cpu><feature name='invtsc'/></cpu><clock>" +
		"<timer name='tsc' frequency='0'/></clock>", never + " /domain/cpu/feature"},
	{"an invariant TSC that is off", "<cpu><feature name='invtsc' policy='disable'/></cpu>", no},
	{"the host's CPU", "<cpu mode='host-passthrough'/>", advice + " /domain/cpu"},
	{"all of the host's CPU", "<cpu mode='host-passthrough' migratable='off'/>",
		cond + " /domain/cpu"},
	{"a CPU of a model", "<cpu mode='custom'><model>m</model></cpu>", no},
	{"Hyper-V of the host", "<features><hyperv mode='passthrough'/></features>",
		advice + " /domain/features/hyperv"},
	{"locked memory", "<memoryBacking><locked/></memoryBacking>",
		advice + " /domain/memoryBacking/locked"},
	{"a graphics card", devices("<hostdev mode='subsystem' type='pci'/>"),
		never + " /domain/devices/hostdev"},
	{"a part of one", devices("<hostdev mode='subsystem' type='mdev'/>"),
		never + " /domain/devices/hostdev"},
	{"a device of a container", devices("<hostdev mode='capabilities' type='misc'/>"),
		never + " /domain/devices/hostdev"},
	{"a team is for network cards", devices("<hostdev type='mdev'><teaming type='transient'/>" +
		"</hostdev>"), never + " /domain/devices/hostdev"},
	{"a SCSI device", devices("<hostdev mode='subsystem' type='scsi'/>"),
		never + " /domain/devices/hostdev"},
	{"what is not known yet", devices("<hostdev mode='subsystem' type='new'/>"),
		never + " /domain/devices/hostdev"},
	{"a USB device", devices("<hostdev mode='subsystem' type='usb'/>"),
		cond + " /domain/devices/hostdev"},
	{"a card of a team", devices("<hostdev type='pci'><teaming type='transient'/></hostdev>"),
		cond + " /domain/devices/hostdev"},
	{"a card that is passed through", devices("<interface type='hostdev'/>"),
		never + " /domain/devices/interface"},
	{"one of a team", devices("<interface type='hostdev'><teaming type='transient'/></interface>"),
		cond + " /domain/devices/interface"},
	{"vDPA", devices("<interface type='bridge'/><interface type='vdpa'/>"),
		never + " /domain/devices/interface[2]"},
	{"user networking", devices("<interface type='user'/>"),
		advice + " /domain/devices/interface"},
	{"virtiofs", devices("<filesystem><driver type='virtiofs'/></filesystem>"),
		never + " /domain/devices/filesystem"},
	{"virtiofs of another program", devices("<filesystem><driver type='virtiofs'/>" +
		"<source socket='/s'/></filesystem>"), cond + " /domain/devices/filesystem"},
	{"9p", devices("<filesystem type='mount'/>"), never + " /domain/devices/filesystem"},
	{"shared memory", devices("<shmem role='peer'/>"), never + " /domain/devices/shmem"},
	{"shared memory of the master", devices("<shmem role='master'/>"), no},
	{"persistent memory", devices("<memory model='nvdimm'/>"), cond + " /domain/devices/memory"},
	{"enclaves", devices("<memory model='sgx-epc'/>"), never + " /domain/devices/memory"},
	{"memory modules", devices("<memory model='dimm'/>"), no},
	{"the host's TPM", devices("<tpm><backend type='passthrough'/></tpm>"),
		never + " /domain/devices/tpm/backend"},
	{"a TPM", devices("<tpm><backend type='emulator'/></tpm>"),
		cond + " /domain/devices/tpm/backend"},
	{"accelerated graphics", devices("<video><model><acceleration accel3d='yes'/></model></video>"),
		never + " /domain/devices/video/model/acceleration"},
	{"plain graphics", devices("<video><model><acceleration accel3d='no'/></model></video>"), no},
	{"the host's keyboard", devices("<input type='passthrough'/>"),
		never + " /domain/devices/input"},
	{"a keyboard", devices("<input type='keyboard'/>"), no},
	{"the host's serial port", devices("<serial type='pty'/><serial type='dev'/>"),
		cond + " /domain/devices/serial[2]"},
	{"the host's parallel port", devices("<parallel type='dev'/>"),
		cond + " /domain/devices/parallel"},
	{"the host's NVMe", devices("<disk type='nvme'/>"), never + " /domain/devices/disk"},
	{"an emulated NVMe", devices("<disk type='network'><target bus='nvme'/></disk>"),
		never + " /domain/devices/disk"},
	{"a disk that forgets", devices("<disk type='network'><transient/></disk>"),
		never + " /domain/devices/disk"},
	{"a file", devices("<disk type='file'><source file='/a'/><target dev='vda'/></disk>"),
		cond + " /domain/devices/disk"},
	{"a block device", devices("<disk type='block'><source dev='/a'/></disk>"),
		cond + " /domain/devices/disk"},
	{"a disk on a network", devices("<disk type='network'><source name='/a'/></disk>"), no},
	{"a CD", devices("<disk type='file' device='cdrom'><source file='/a'/></disk>"),
		cond + " /domain/devices/disk"},
	{"an empty drive", devices("<disk type='file' device='cdrom'><source file=''/></disk>"), no},
	{"a secret", devices("<disk type='network'><auth><secret uuid='u'/></auth></disk>"),
		cond + " /domain/devices/disk/auth/secret"},
	{"a secret of the image", devices("<disk type='network'><source><encryption>" +
		"<secret usage='u'/></encryption></source></disk>"),
		cond + " /domain/devices/disk/source/encryption/secret"},
	{"a secret where it was", devices("<disk type='network'><encryption>" +
		"<secret/></encryption></disk>"),
		cond + " /domain/devices/disk/encryption/secret"},
	{"a secret of the source", devices("<disk type='network'><source><auth>" +
		"<secret/></auth></source></disk>"),
		cond + " /domain/devices/disk/source/auth/secret"},
}

func TestRules(t *testing.T) {
	for _, tt := range ruleTests {
		t.Run(tt.about, func(t *testing.T) {
			found, err := domxml.Of(domain(tt.inner), domxml.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range found {
				got = append(got, b.Weight.String()+" "+b.Path)
				if b.Check == "" || b.Need == "" || b.Have == "" {
					t.Errorf("%+v does not say all of why", b)
				}
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			err = domxml.Refuse(found)
			if refused := strings.HasPrefix(tt.want, never); (err != nil) != refused ||
				refused && !errors.Is(err, hypervisor.Unsupported) {
				t.Errorf("refused: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), found[0].Path) {
				t.Errorf("%v does not say where", err)
			}
		})
	}
}

// TestCaches: a cache matters for what is written, and for what two hosts see.
func TestCaches(t *testing.T) {
	for inner, want := range map[string]bool{
		"<driver cache='writeback'/>":                  true,
		"<driver cache='unsafe'/>":                     true,
		"<driver cache='none'/>":                       false,
		"<driver cache='directsync'/>":                 false,
		"<driver/>":                                    false,
		"<driver cache='writeback'/><readonly/>":       false,
		"<x:readonly xmlns:x='u'/><driver cache='w'/>": true,
	} {
		found, err := domxml.Of(domain("<devices><disk type='block'>"+inner+
			"<source dev='/a'/></disk></devices>"), domxml.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(found) == 2 && found[1].Weight == domxml.Advice; got != want {
			t.Errorf("%s: %v, want advice: %t", inner, found, want)
		}
	}
}

// TestWhatGodwitBuildsMoves: and its local disks are copied.
func TestWhatGodwitBuildsMoves(t *testing.T) {
	vm := hypervisor.VM{ID: "shop/web", Memory: hypervisor.GiB, CPUs: 1,
		Hardware: &hypervisor.Hardware{CPUModel: "qemu64", DebugPort: 0xe9,
			Disks: []hypervisor.Disk{{Name: "root"}},
			NICs:  []hypervisor.NIC{{MAC: "52:54:00:00:00:01"}}}}
	s := domxml.Settings{Type: domxml.QEMU, DiskDir: "/disks"}
	text, err := domxml.Build(vm, s, domxml.Mark{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := domxml.Of(text, s)
	if err != nil || len(found) != 1 || found[0].Weight != domxml.Conditional ||
		!strings.Contains(found[0].Have, "/disks/shop_web.root") ||
		!strings.Contains(found[0].Need, "copied") {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := domxml.Of("<domain/>", s); !errors.Is(err, hypervisor.Invalid) {
		t.Errorf("no domain: %v", err)
	}
	if w := domxml.Weight(9).String(); w != "invalid" {
		t.Errorf("a weight that is none is %q", w)
	}
}

func FuzzOf(f *testing.F) {
	text, err := os.ReadFile("testdata/workstation.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		found, err := domxml.Of(text, domxml.Settings{DiskDir: "/d"})
		if err != nil && !errors.Is(err, hypervisor.Invalid) {
			t.Errorf("%v is not Invalid", err)
		}
		for _, b := range found {
			if !strings.HasPrefix(b.Path, "/domain/") {
				t.Errorf("%+v is nowhere", b)
			}
		}
	})
}
