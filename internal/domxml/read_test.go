package domxml_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// TestForeignDomainsAreRead: what is made of domains that others have made.
func TestForeignDomainsAreRead(t *testing.T) {
	var all strings.Builder
	texts := foreign(t)
	for _, name := range []string{"virt-install.xml", "openstack.xml", "ovirt.xml", "kubevirt.xml",
		"workstation.xml"} {
		f, err := domxml.Read(texts[name], domxml.Settings{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.Mark != nil || f.MarkError != nil {
			t.Errorf("%s has a mark: %v, %v", name, f.Mark, f.MarkError)
		}
		text, err := json.MarshalIndent(f, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n\n", name, text)
	}
	checkGolden(t, "foreign.golden", all.String())
}

// domain is a domain with just what is needed, and what is given.
func domain(inner string) string {
	return "<domain type='kvm'><name>a</name><memory>1024</memory>" + inner + "</domain>"
}

func TestWhatTheXMLSays(t *testing.T) {
	type facts = domxml.Facts
	tests := []struct {
		about string
		inner string
		got   func(facts) any
		want  any
	}{
		{"memory is in KiB", "", func(f facts) any { return f.VM.Memory }, hypervisor.MiB},
		{"a CPU is the default", "", func(f facts) any { return f.VM.CPUs }, 1},
		{"CPUs that are not plugged in do not count", "<vcpu current='2'>4</vcpu>",
			func(f facts) any { return f.VM.CPUs }, 2},
		{"room is what may be plugged in", "<maxMemory slots='4' unit='GiB'>1</maxMemory><vcpu current='2'>4</vcpu>" +
			"<devices><memory model='dimm'><target><size>1024</size></target></memory></devices>",
			func(f facts) any { return f.Room }, domxml.Room{MaxMemory: hypervisor.GiB, MaxCPUs: 4,
				DIMMs: []hypervisor.Bytes{hypervisor.MiB}}},
		{"modules that are no memory leave no room", "<maxMemory slots='4' unit='GiB'>1</maxMemory>" +
			"<devices><memory model='nvdimm'/></devices>", func(f facts) any { return f.Room }, domxml.Room{}},
		{"pages without a size are those of the host",
			"<memoryBacking><hugepages/></memoryBacking>",
			func(f facts) any { return f.VM.Hardware.Hugepages }, 2 * hypervisor.MiB},
		{"pages have units, too", "<memoryBacking><hugepages><page size='1' unit='G'/>" +
			"</hugepages></memoryBacking>", func(f facts) any { return f.VM.Hardware.Hugepages },
			hypervisor.GiB},
		{"pins are sets", "<vcpu>2</vcpu><cputune><vcpupin vcpu='1' cpuset='0-3,^2,7'/>" +
			"<vcpupin vcpu='0' cpuset='9'/></cputune>",
			func(f facts) any { return f.VM.Hardware.Pins }, [][]int{{9}, {0, 1, 3, 7}}},
		{"pins of some CPUs have no place", "<vcpu>2</vcpu><cputune>" +
			"<vcpupin vcpu='1' cpuset='0'/></cputune>",
			func(f facts) any { return f.VM.Hardware.Pins }, [][]int(nil)},
		{"firmware in flash has no place", "<os><loader type='pflash'>/f</loader></os>",
			func(f facts) any { return f.VM.Hardware.Firmware }, ""},
		{"a model without a mode", "<cpu><model>m</model><feature name='f'/></cpu>",
			func(f facts) any { return f.VM.Hardware.CPUModel }, "m,+f"},
		{"features that a host may lack have no place", "<cpu mode='host-model'>" +
			"<feature policy='optional' name='f'/><feature policy='forbid' name='g'/></cpu>",
			func(f facts) any { return f.VM.Hardware.CPUModel }, "host-model,-g"},
		{"a debug port without a place is QEMU's", "<devices><serial type='null'>" +
			"<target type='isa-debug'/></serial></devices>",
			func(f facts) any { return f.VM.Hardware.DebugPort }, uint16(0xe9)},
		{"a debug port out of range is none", "<devices><serial><target type='isa-debug'/>" +
			"<address iobase='0x10000'/></serial></devices>",
			func(f facts) any { return f.VM.Hardware.DebugPort }, uint16(0)},
		{"a device that libvirt makes is no tap", "<devices><interface type='ethernet'>" +
			"<mac address='m'/><target dev='vnet3'/></interface></devices>",
			func(f facts) any { return f.VM.Hardware.NICs }, []hypervisor.NIC{{MAC: "m"}}},
		{"disks are named once", "<devices>" +
			"<disk type='file'><source file='/1'/><serial>x</serial>" +
			"<target dev='vda'/></disk><disk type='file'><source file='/2'/><serial>x</serial>" +
			"<target dev='vdb'/></disk><disk type='file'><source file='/3'/><alias name='ua-y'/>" +
			"<serial>x</serial></disk><disk type='file'><source file='/4'/><alias name='y'/>" +
			"<target dev='vdd'/></disk></devices>", func(f facts) any { return f.Images },
			map[string]string{"x": "/1", "vdb": "/2", "y": "/3", "vdd": "/4"}},
		{"elements of others are not libvirt's", "<x:vcpu xmlns:x='u'>9</x:vcpu>" +
			"<vcpu xmlns='u'>8</vcpu>", func(f facts) any { return f.VM.CPUs }, 1},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			f, err := domxml.Read(domain(tt.inner), domxml.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.got(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for unit, want := range map[string]hypervisor.Bytes{"": 2048, "b": 2, "bytes": 2, "k": 2048,
		"KiB": 2048, "KB": 2000, "MiB": 2 << 20, "mb": 2e6, "G": 2 << 30, "TiB": 2 << 40,
		"PB": 2e15, "E": 2 << 60, "x": -1, "kilobytes": -1, "É": -1} {
		f, err := domxml.Read("<domain><name>a</name><memory unit='"+unit+"'>2</memory></domain>",
			domxml.Settings{})
		if (err != nil) != (want < 0) || err == nil && f.VM.Memory != want {
			t.Errorf("2 %s are %v, %v; want %v", unit, f.VM.Memory, err, want)
		}
	}
}

// TestWhatIsNoDomainIsInvalid: hostile and broken XML has an error, soon.
func TestWhatIsNoDomainIsInvalid(t *testing.T) {
	bomb := "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>"
	tests := map[string]string{
		"nothing":          "",
		"not XML":          "domain",
		"half of it":       "<domain><name>a",
		"crossed elements": "<domain><name>a</domain></name>",
		"another document": "<network><name>a</name></network>",
		"two documents":    domain("") + domain(""),
		"another's domain": "<x:domain xmlns:x='u'><name>a</name><memory>1</memory>" +
			"</x:domain>",
		"no name":         "<domain><memory>1</memory></domain>",
		"no memory":       "<domain><name>a</name></domain>",
		"negative memory": "<domain><name>a</name><memory>-1</memory></domain>",
		"endless memory": "<domain><name>a</name><memory>" + strings.Repeat("9", 20) +
			"</memory></domain>",
		"memory beyond 8 EiB": "<domain><name>a</name><memory unit='E'>8</memory></domain>",
		"no CPUs":             domain("<vcpu>0</vcpu>"),
		"negative CPUs":       domain("<vcpu>-4</vcpu>"),
		"endless CPUs":        domain("<vcpu>65536</vcpu>"),
		"CPUs in words":       domain("<vcpu>two</vcpu>"),
		"pages of no size": domain("<memoryBacking><hugepages><page size='x'/></hugepages>" +
			"</memoryBacking>"),
		"pins to no CPU": domain("<cputune><vcpupin vcpu='0' cpuset=''/></cputune>"),
		"pins to endless CPUs": domain("<cputune><vcpupin vcpu='0' cpuset='0-4294967295'/>" +
			"</cputune>"),
		"pins that take long": domain("<cputune><vcpupin vcpu='0' cpuset='" +
			strings.Repeat("0-16383,", 9999) + "1'/></cputune>"),
		"an XML bomb":           bomb + domain("<title>&b;</title>"),
		"an unknown entity":     domain("<title>&b;</title>"),
		"another encoding":      "<?xml version='1.0' encoding='UTF-16'?>" + domain(""),
		"no text":               domain("<title>\xff</title>"),
		"elements without end":  domain(strings.Repeat("<a>", 1<<20)),
		"elements too deep":     domain(strings.Repeat("<a>", 300) + strings.Repeat("</a>", 300)),
		"more than libvirt has": domain("<title>" + strings.Repeat("a", 4<<20) + "</title>"),
	}
	for about, text := range tests {
		t.Run(about, func(t *testing.T) {
			if f, err := domxml.Read(text, domxml.Settings{}); !errors.Is(err, hypervisor.Invalid) {
				t.Errorf("read %+v, %v; want Invalid", f.VM, err)
			}
		})
	}
}

func TestABadMarkIsNotTheDomains(t *testing.T) {
	vm := hypervisor.VM{ID: "shop/web", Memory: hypervisor.MiB, CPUs: 1}
	text := strings.Replace(built(t, vm, settings), `"Memory":`, `"Memory":"much",`, 1)
	f, err := domxml.Read(text, settings)
	if err != nil || f.Mark != nil || !errors.Is(f.MarkError, hypervisor.Invalid) {
		t.Errorf("read %v, mark %v, %v", err, f.Mark, f.MarkError)
	}
	if f.VM.ID != "shop/web" || f.VM.Memory != hypervisor.MiB {
		t.Errorf("VM %+v", f.VM)
	}
}

// TestMarksGoThroughLibvirt: it puts the namespace on the element when it stores it,
// and answers it without.
func TestMarksGoThroughLibvirt(t *testing.T) {
	mark := domxml.Mark{VM: hypervisor.VM{ID: "shop/<é𝄞>&'\"]]>", Memory: 1, CPUs: 1},
		Job: "j\n\uffff", Cold: true, Source: "n1"}
	text, err := mark.XML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r > 126 || r < ' ' }) {
		t.Errorf("%q is not plain text", text)
	}
	got, err := domxml.ParseMark(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mark, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "<vm/>", "<vm>{}{}</vm>", "<mark>{}</mark>", "<vm>[]</vm>"} {
		if m, err := domxml.ParseMark(bad); !errors.Is(err, hypervisor.Invalid) {
			t.Errorf("%q is the mark %+v, %v", bad, m, err)
		}
	}
}

// asked is a VM with as many defaults as can be.
func asked() hypervisor.VM {
	return hypervisor.VM{ID: "default/a", Memory: hypervisor.GiB, CPUs: 2,
		Hardware: &hypervisor.Hardware{Pins: [][]int{{1, 0}, {2}}, Disks: []hypervisor.Disk{
			{Name: "b", Path: "/b", Size: 512}, {Name: "a", Path: "/a", Format: "raw"}},
			NICs: []hypervisor.NIC{{MAC: "52:54:00:AA:00:01"}, {MAC: "52:54:00:aa:00:02"}}}}
}

// spelled is what libvirt makes of it.
func spelled() domxml.Facts {
	vm := asked()
	vm.Hardware.Machine, vm.Hardware.CPUModel = "pc-q35-7.2", "host-passthrough"
	vm.Hardware.Pins = [][]int{{0, 1}, {2}}
	vm.Hardware.Disks = []hypervisor.Disk{{Name: "a", Path: "/a", Format: "raw"},
		{Name: "b", Path: "/b", Format: "raw"}}
	vm.Hardware.NICs = []hypervisor.NIC{{MAC: "52:54:00:aa:00:02"}, {MAC: "52:54:00:aa:00:01"}}
	return domxml.Facts{VM: vm, Type: domxml.KVM}
}

var reconcileTests = []struct {
	about  string
	ask    func(*hypervisor.VM) // what else was asked for
	change func(*domxml.Facts)  // what was done to the XML
	want   func(*hypervisor.VM) // what is different from what was asked for
}{
	{"nothing was changed", nil, nil, nil},
	{"another size", nil, func(f *domxml.Facts) { f.VM.Memory, f.VM.CPUs = 1, 3 },
		func(v *hypervisor.VM) { v.Memory, v.CPUs = 1, 3 }},
	{"an alias is the newest of its kind",
		func(v *hypervisor.VM) { v.Hardware.Machine = "q35" }, nil, nil},
	{"another kind of machine", nil,
		func(f *domxml.Facts) { f.VM.Hardware.Machine = "pc-i440fx-7.2" },
		func(v *hypervisor.VM) { v.Hardware.Machine = "pc-i440fx-7.2" }},
	{"another version of a machine",
		func(v *hypervisor.VM) { v.Hardware.Machine = "pc-q35-6.2" }, nil,
		func(v *hypervisor.VM) { v.Hardware.Machine = "pc-q35-7.2" }},
	{"a name of the host's CPU",
		func(v *hypervisor.VM) { v.Hardware.CPUModel = "host" }, nil, nil},
	{"another CPU", nil, func(f *domxml.Facts) { f.VM.Hardware.CPUModel = "qemu64" },
		func(v *hypervisor.VM) { v.Hardware.CPUModel = "qemu64" }},
	{"the default depends on the type", nil, func(f *domxml.Facts) {
		f.Type, f.VM.Hardware.CPUModel = domxml.QEMU, "qemu64"
	}, nil},
	{"another feature", func(v *hypervisor.VM) { v.Hardware.CPUModel = "m,+a" },
		func(f *domxml.Facts) { f.VM.Hardware.CPUModel = "m,-a" },
		func(v *hypervisor.VM) { v.Hardware.CPUModel = "m,-a" }},
	{"features in another order", func(v *hypervisor.VM) { v.Hardware.CPUModel = "m,+b,-a" },
		func(f *domxml.Facts) { f.VM.Hardware.CPUModel = "m,-a,+b" }, nil},
	{"a running domain has its own features",
		func(v *hypervisor.VM) { v.Hardware.CPUModel = "m,+b" },
		func(f *domxml.Facts) { f.VM.Hardware.CPUModel, f.Resolved = "m,-b,+c", true }, nil},
	{"a running domain spells the host's model out",
		func(v *hypervisor.VM) { v.Hardware.CPUModel = "host-model" },
		func(f *domxml.Facts) { f.VM.Hardware.CPUModel, f.Resolved = "m,+c", true }, nil},
	{"a running domain has another model", func(v *hypervisor.VM) { v.Hardware.CPUModel = "n" },
		func(f *domxml.Facts) { f.VM.Hardware.CPUModel, f.Resolved = "m", true },
		func(v *hypervisor.VM) { v.Hardware.CPUModel = "m" }},
	{"other pins", nil, func(f *domxml.Facts) { f.VM.Hardware.Pins[0] = []int{0} },
		func(v *hypervisor.VM) { v.Hardware.Pins = [][]int{{0}, {2}} }},
	{"a disk is gone and another is new", nil, func(f *domxml.Facts) {
		f.VM.Hardware.Disks[0].Name = "c"
	}, func(v *hypervisor.VM) {
		v.Hardware.Disks[1] = hypervisor.Disk{Name: "c", Path: "/a", Format: "raw"}
	}},
	{"a disk is elsewhere, of another format", nil, func(f *domxml.Facts) {
		f.VM.Hardware.Disks[1].Path, f.VM.Hardware.Disks[1].Format = "/z", "qcow2"
	}, func(v *hypervisor.VM) {
		v.Hardware.Disks[0].Path, v.Hardware.Disks[0].Format = "/z", "qcow2"
	}},
	{"a card is plugged in", nil, func(f *domxml.Facts) { f.VM.Hardware.NICs[1].Tap = "t" },
		func(v *hypervisor.VM) { v.Hardware.NICs[0].Tap = "t" }},
	{"room that was asked for, and what was plugged in", func(v *hypervisor.VM) {
		v.Hardware.MaxMemory, v.Hardware.MaxCPUs = 4*hypervisor.GiB, 8
	}, func(f *domxml.Facts) {
		f.Room = domxml.Room{MaxMemory: 4 * hypervisor.GiB, MaxCPUs: 8, DIMMs: []hypervisor.Bytes{hypervisor.DIMMUnit}}
		f.VM.Memory += hypervisor.DIMMUnit
	}, func(v *hypervisor.VM) {
		v.Memory += hypervisor.DIMMUnit
		v.Hardware.DIMMs = []hypervisor.Bytes{hypervisor.DIMMUnit}
	}},
	{"room that was not asked for", nil, func(f *domxml.Facts) {
		f.Room = domxml.Room{MaxMemory: 4 * hypervisor.GiB, MaxCPUs: 8, DIMMs: []hypervisor.Bytes{hypervisor.DIMMUnit}}
	}, nil},
	{"room that was not made", func(v *hypervisor.VM) {
		v.Hardware.MaxMemory, v.Hardware.MaxCPUs = 4*hypervisor.GiB, 8
	}, nil, func(v *hypervisor.VM) { v.Hardware.MaxMemory, v.Hardware.MaxCPUs = 0, 0 }},
	{"no more room than it has", func(v *hypervisor.VM) {
		v.Hardware.MaxMemory, v.Hardware.MaxCPUs = hypervisor.GiB, 2
	}, nil, nil},
	{"the rest", nil, func(f *domxml.Facts) {
		f.VM.Hardware.Firmware, f.VM.Hardware.DebugPort, f.VM.Hardware.Hugepages = "/f", 1, 2
	}, func(v *hypervisor.VM) {
		v.Hardware.Firmware, v.Hardware.DebugPort, v.Hardware.Hugepages = "/f", 1, 2
	}},
}

func TestReconcile(t *testing.T) {
	for _, tt := range reconcileTests {
		t.Run(tt.about, func(t *testing.T) {
			vm, facts, want := asked(), spelled(), asked()
			if tt.ask != nil {
				tt.ask(&vm)
				tt.ask(&want)
			}
			if tt.change != nil {
				tt.change(&facts)
			}
			if tt.want != nil {
				tt.want(&want)
			}
			before := slices.Clone(facts.VM.Hardware.Disks)
			if diff := cmp.Diff(want, domxml.Reconcile(vm, facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, facts.VM.Hardware.Disks); diff != "" {
				t.Errorf("what was found has changed (-before +after):\n%s", diff)
			}
		})
	}
	if vm := domxml.Reconcile(hypervisor.VM{}, domxml.Facts{}); !vm.Equal(hypervisor.VM{}) {
		t.Errorf("nothing is %+v", vm)
	}
}
