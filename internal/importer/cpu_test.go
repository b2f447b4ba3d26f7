package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// capable is the capabilities of a host with 8 CPUs, 16 GiB and so many pages of 1 GiB.
func capable(cpu string, pages int) string {
	return "<capabilities><host><cpu><arch>x86_64</arch>" + cpu + "</cpu><topology><cells num='1'>" +
		"<cell id='0'><memory unit='KiB'>16777216</memory><pages unit='KiB' size='4'>1</pages>" +
		fmt.Sprintf("<pages unit='KiB' size='1048576'>%d</pages>", pages) + "<cpus num='8'>" +
		"<cpu id='0' siblings='0,4'/><cpu id='1' siblings='1,5'/><cpu id='2' siblings='2,6'/>" +
		"<cpu id='3' siblings='3,7'/><cpu id='4' siblings='0,4'/><cpu id='5' siblings='1,5'/>" +
		"<cpu id='6' siblings='2,6'/><cpu id='7' siblings='3,7'/></cpus></cell></cells></topology>" +
		"</host></capabilities>"
}

const (
	skylake = "<model>Skylake-Server</model><vendor>Intel</vendor><feature name='vmx'/>"
	richer  = "<model>Skylake-Server</model><vendor>Intel</vendor><feature name='vmx'/>" +
		"<feature name='avx512vnni'/>"
	epyc = "<model>EPYC</model><vendor>AMD</vendor><feature name='svm'/>"
)

// domainsRunning is the XML of a domain that runs.
func domainsRunning(inner string) string {
	return "<domain type='kvm' id='1'><name>v</name><uuid>0c2f1b4e-3a3e-4c57-9f10-5e8c1c0a7f01" +
		"</uuid><memory unit='GiB'>2</memory><vcpu>2</vcpu>" + inner + "</domain>"
}

// folderOf writes files, each with its host, and reads the fleet.
func folderOf(t *testing.T, files map[string]string) *inventory.Fleet {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := importer.ReadDomains(folder, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A domain goes where the host can show it its processor, and has the pages and CPUs that it
// asks for.
func TestADomainGoesWhereItsHostIsLikeItsOwn(t *testing.T) {
	usable := func(models ...string) string {
		text := "<domainCapabilities><cpu><mode name='custom' supported='yes'>"
		for _, m := range models {
			text += "<model usable='yes'>" + m + "</model>"
		}
		return text + "<model usable='no'>Cascadelake</model></mode></cpu></domainCapabilities>"
	}
	const pinned = "<cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='1'/></cputune>"
	const huge = "<memoryBacking><hugepages><page size='1' unit='G'/></hugepages></memoryBacking>"
	for _, tt := range []struct {
		name, domain, there, models string
		pages                       int
		refused                     string
	}{
		{"the same processor", "<cpu mode='host-passthrough'/>", skylake, "", 0, ""},
		{"the processor itself, and one with more", "<cpu mode='host-passthrough'/>", richer, "", 0,
			"cpu-exact"},
		{"the highest there is, and one with more", "<cpu mode='maximum'/>", richer, "", 0, "cpu-exact"},
		{"its host's model, and one with more", "<cpu mode='host-model'/>", richer, "", 0, ""},
		{"its host's model, and another vendor", "<cpu mode='host-model'/>", epyc, "", 0,
			"cpu-vendor cpu-older"},
		{"a plain processor, and another vendor", "", epyc, "", 0, "cpu-vendor"},
		{"a plain processor", "", richer, "", 0, ""},
		{"a model that is usable", "<cpu mode='custom'><model>Haswell</model></cpu>", skylake,
			usable("Haswell"), 0, ""},
		{"a model that is not", "<cpu mode='custom'><model>Cascadelake</model></cpu>", skylake,
			usable("Haswell"), 0, "cpu-model"},
		{"a model without a mode", "<cpu><model>Cascadelake</model></cpu>", skylake,
			usable("Haswell"), 0, "cpu-model"},
		{"a model of which nothing is known", "<cpu><model>Cascadelake</model></cpu>", skylake, "", 0,
			""},
		{"huge pages", huge, skylake, "", 4, ""},
		{"too few huge pages", huge, skylake, "", 1, "hugepages numa"},
		{"no huge pages", huge, skylake, "", 0, "hugepages numa"},
		{"CPUs of its own", pinned, skylake, "", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"n1/c.xml": capable(skylake, 4), "n1/v.xml": domainsRunning(tt.domain),
				"n2/c.xml": capable(tt.there, tt.pages)}
			if tt.models != "" {
				files["n1/d.xml"], files["n2/d.xml"] = tt.models, tt.models
			}
			f := folderOf(t, files)
			q, _ := inventory.Ask(f, f.VMs[0].ID)
			var refused []string
			for _, v := range q.Explain(&placement.Config{}).Hosts {
				for _, why := range v.Why {
					if v.Host == "n2" {
						refused = append(refused, why.Check)
					}
				}
			}
			if got := strings.Join(refused, " "); got != tt.refused {
				t.Errorf("n2 refuses for %q, want %q", got, tt.refused)
			}
		})
	}
}

func TestWhatIsNotLookedAtIsWarnedOf(t *testing.T) {
	for inner, want := range map[string]string{
		"": "", "<cpu><model>Haswell</model></cpu>": "which CPU models a host can show is not known",
		"<numatune><memory mode='strict' nodeset='1'/></numatune>": "bound to the NUMA nodes 1",
		"<cputune><vcpupin vcpu='0' cpuset='0-3'/><vcpupin vcpu='1' cpuset='0-3'/></cputune>": "its " +
			"CPUs are pinned",
	} {
		f := folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 0), "n1/v.xml": domainsRunning(inner)})
		text := ""
		for _, w := range f.Warnings {
			if !strings.Contains(w.Message, "libvirt has no limit on virtual CPUs") {
				text += w.Message
			}
		}
		if (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%s: warned %q, want %q", inner, text, want)
		}
	}
}

// What is in huge pages is no room for ordinary memory: all of it where no domain asks for huge pages.
func TestHugePagesAreNoRoomForOrdinaryMemory(t *testing.T) {
	all := folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 0), "n1/v.xml": domainsRunning("")}).Hosts[0].Memory
	f := folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 4), "n1/v.xml": domainsRunning("")})
	h := f.Hosts[0]
	if pool := all - h.Memory; pool != 4*hypervisor.GiB {
		t.Errorf("%v of %v is in huge pages, want 4GiB", pool, all)
	}
	f = folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 4),
		"n1/v.xml": domainsRunning("<memoryBacking><hugepages><page size='1' unit='G'/></hugepages></memoryBacking>")})
	if h := f.Hosts[0]; h.Memory != all {
		t.Errorf("where a domain asks for them: %v, want %v", h.Memory, all)
	}
	if text := fmt.Sprint(f.Warnings); !strings.Contains(text, "4GiB of its memory is in huge pages, which some domains ask for") {
		t.Errorf("it warns %s", text)
	}
}

// Names are unique per host only: two domains of one name on two hosts are two VMs.
func TestTheUUIDTellsDomainsApart(t *testing.T) {
	other := strings.Replace(domainsRunning(""), "7f01", "7F02", 1)
	f := folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 0), "n1/v.xml": domainsRunning(""),
		"n2/c.xml": capable(skylake, 0), "n2/v.xml": other})
	var got []string
	for _, v := range f.VMs {
		got = append(got, fmt.Sprintf("%s on %s", v.ID, v.Host))
	}
	want := "[default/v_0c2f1b4e-3a3e-4c57-9f10-5e8c1c0a7f01 on n1 " +
		"default/v_0c2f1b4e-3a3e-4c57-9f10-5e8c1c0a7f02 on n2]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// A container, and a guest of a hypervisor that libvirt only looks at, does not move live.
func TestOnlyVirtualMachinesMoveLive(t *testing.T) {
	for kind, moves := range map[string]bool{"kvm": true, "qemu": true, "xen": true, "lxc": false,
		"openvz": false, "bhyve": false, "vmware": false, "hyperv": false} {
		f := folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 0),
			"n1/v.xml": strings.Replace(domainsRunning(""), "type='kvm'", "type='"+kind+"'", 1)})
		v := f.VMs[0]
		if v.Migratable != moves || !moves && !strings.Contains(v.NotMigratableReason, kind) {
			t.Errorf("%s: migratable %v (%s), want %v", kind, v.Migratable, v.NotMigratableReason, moves)
		}
		if v.Host != "n1" || v.Memory != 2*hypervisor.GiB {
			t.Errorf("%s: %+v", kind, v)
		}
	}
}

func TestAFolderOfDefinitionsIsSaidToBeNoEmptyHost(t *testing.T) {
	f := folderOf(t, map[string]string{"n1/c.xml": capable(skylake, 0),
		"n1/v.xml": strings.Replace(domainsRunning(""), " id='1'", "", 1)})
	if text := fmt.Sprint(f.Warnings); !strings.Contains(text, "host n1: none of its 1 domains runs") {
		t.Errorf("warned %s", text)
	}
}
