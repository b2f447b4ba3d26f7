package domxml_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// odd is what an edit must not touch.
var odd = []string{"<!-- a comment, <b> & all -->", "<?instruction now?>", "<x a='1'  b=\"2\"/>",
	"<x:y xmlns:x='urn:x' x:z='&#10;&quot;\">'/>", "<e></e>", "<e   />", "\r\n\t", "&lt;&#65;",
	"<![CDATA[<not><xml>]]>", "<new kind='1'><deep>er\n</deep></new >",
	"<memory:x xmlns:memory='u'/>"}

// ends are where odd things go: before the end of an element.
var ends = regexp.MustCompile(`</(domain|devices|metadata|disk|cpu|os)>`)

// drawnDomain is a foreign domain with odd things in odd places.
func drawnDomain(t *rapid.T, texts map[string]string) string {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(texts))).Draw(t, "domain")
	text := texts[name]
	for range rapid.IntRange(0, 5).Draw(t, "oddities") {
		places := ends.FindAllStringIndex(text, -1)
		at := places[rapid.IntRange(0, len(places)-1).Draw(t, "place")][0]
		text = text[:at] + rapid.SampledFrom(odd).Draw(t, "odd") + text[at:]
	}
	return text
}

// TestNoChangeIsNoChange: an edit that has nothing to do returns the very same bytes.
func TestNoChangeIsNoChange(t *testing.T) {
	texts := foreign(t)
	rapid.Check(t, func(t *rapid.T) {
		text := drawnDomain(t, texts)
		got, err := domxml.Change(text, domxml.Changes{})
		if err != nil {
			t.Fatal(err)
		}
		if got != text {
			t.Errorf("(-want +got):\n%s", cmp.Diff(text, got))
		}
		f, err := domxml.Read(text, domxml.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		same, err := domxml.Change(text, domxml.Changes{Disks: f.Images})
		if err != nil || same != text {
			t.Errorf("images that are there already: %v\n%s", err, cmp.Diff(text, same))
		}
		if same, err = domxml.RemoveDisk(text, "no-such-disk"); err != nil || same != text {
			t.Errorf("a disk that is not there was removed: %v\n%s", err, cmp.Diff(text, same))
		}
	})
}

// TestOnlyTheImageChanges: the text of the path is replaced, and nothing else.
func TestOnlyTheImageChanges(t *testing.T) {
	texts := foreign(t)
	rapid.Check(t, func(t *rapid.T) {
		text := drawnDomain(t, texts)
		f, err := domxml.Read(text, domxml.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Images) == 0 {
			t.Skip("a domain without images")
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(f.Images))).Draw(t, "disk")
		old := f.Images[name]
		path := map[bool]string{true: "/dev/new", false: "/new"}[strings.HasPrefix(old, "/dev/")]
		got, err := domxml.Change(text, domxml.Changes{Disks: map[string]string{name: path}})
		if err != nil {
			t.Fatal(err)
		}
		// The changed tag itself is written anew; what is around it is not.
		tag := regexp.MustCompile(`<source[^<>]*` + regexp.QuoteMeta(old) + `[^<>]*>`)
		changed := regexp.MustCompile(`<source[^<>]*` + path + `[^<>]*>`)
		quotes := strings.NewReplacer(`"`, "'")
		want := quotes.Replace(tag.ReplaceAllString(text, "@"))
		if diff := cmp.Diff(want, quotes.Replace(changed.ReplaceAllString(got, "@"))); diff != "" {
			t.Errorf("%s to %s (-want +got):\n%s", old, path, diff)
		}
		after, err := domxml.Read(got, domxml.Settings{})
		if err != nil || after.Images[name] != path {
			t.Errorf("the image is %q, %v; want %q", after.Images[name], err, path)
		}
	})
}

// TestPinsAndNodesChangeNothingElse: without their elements, the text is the same.
func TestPinsAndNodesChangeNothingElse(t *testing.T) {
	texts := foreign(t)
	theirs := regexp.MustCompile(`\s*<(vcpupin[^>]*/|/?numatune|/?cputune/?|` +
		`memory mode[^>]*/|memnode[^>]*/)>(</cputune>)?`)
	rapid.Check(t, func(t *rapid.T) {
		text := drawnDomain(t, texts)
		before, err := domxml.Read(text, domxml.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		c := domxml.Changes{Nodes: []int{1, 0}}
		if rapid.Bool().Draw(t, "unpin") {
			c.Pins, c.Nodes = [][]int{}, []int{}
		} else {
			for i := range before.VM.CPUs {
				c.Pins = append(c.Pins, []int{i + 100})
			}
		}
		got, err := domxml.Change(text, c)
		if err != nil {
			t.Fatal(err)
		}
		rest := theirs.ReplaceAllString(got, "")
		if diff := cmp.Diff(theirs.ReplaceAllString(text, ""), rest); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		after, err := domxml.Read(got, domxml.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		want := c.Pins
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, after.VM.Hardware.Pins); diff != "" {
			t.Errorf("pins (-want +got):\n%s", diff)
		}
		if bound := strings.Contains(got, "nodeset='0-1'"); bound != (len(c.Nodes) > 0) {
			t.Errorf("bound to nodes: %t\n%s", bound, got)
		}
		if again, err := domxml.Change(got, c); err != nil || again != got {
			t.Errorf("repeated, it changes (%v):\n%s", err, cmp.Diff(got, again))
		}
	})
}

func TestChanges(t *testing.T) {
	disk := "<devices><disk type='file' device='disk'><source file='/old' startupPolicy='x'/>" +
		"<target dev='vda'/></disk></devices>"
	tests := []struct {
		about, inner string
		change       domxml.Changes
		want         string // "" if it fails
		kind         hypervisor.Kind
	}{
		{"a file becomes a device", disk,
			domxml.Changes{Disks: map[string]string{"vda": "/dev/new"}},
			strings.NewReplacer("type='file'", "type='block'", "file='/old'", "dev='/dev/new'").
				Replace(disk), 0},
		{"a link to a device stays one", "<devices><disk type='block'><source dev='/link'/>" +
			"<target dev='vda'/></disk></devices>",
			domxml.Changes{Disks: map[string]string{"vda": "/other"}},
			"<devices><disk type='block'><source dev='/other'/>" +
				"<target dev='vda'/></disk></devices>",
			0},
		{"blanks in attributes stay what they are",
			strings.Replace(disk, "'x'", "'&#10;&#9;&#13;'", 1),
			domxml.Changes{Disks: map[string]string{"vda": "/new"}},
			strings.NewReplacer("'x'", "'&#xA;&#x9;&#xD;'", "/old", "/new").Replace(disk), 0},
		{"a path is escaped", disk, domxml.Changes{Disks: map[string]string{"vda": "/a'&<>\"é"}},
			strings.Replace(disk, "/old", "/a&apos;&amp;&lt;&gt;\"é", 1), 0},
		{"memory comes from where it is told", "", domxml.Changes{Nodes: []int{3, 1, 2, 7}},
			"<numatune><memory mode='strict' nodeset='1-3,7'/></numatune>", 0},
		{"numad has nothing to say any more", "<numatune><memory mode='preferred' " +
			"placement='auto'/></numatune>", domxml.Changes{Nodes: []int{0}},
			"<numatune><memory mode='preferred' nodeset='0'/></numatune>", 0},
		{"elements are indented like others", "\n  <vcpu>1</vcpu>\n",
			domxml.Changes{Pins: [][]int{{4}}}, "\n  <vcpu>1</vcpu>\n  <cputune>\n" +
				"    <vcpupin vcpu='0' cpuset='4'/>\n  </cputune>\n", 0},
		{"no such disk", disk, domxml.Changes{Disks: map[string]string{"x": "/a"}}, "",
			hypervisor.NotFound},
		{"a disk on a network",
			"<devices><disk type='network'><target dev='vda'/></disk></devices>",
			domxml.Changes{Disks: map[string]string{"vda": "/a"}}, "", hypervisor.Unsupported},
		{"a path that is none", disk, domxml.Changes{Disks: map[string]string{"vda": "a\x00"}}, "",
			hypervisor.Invalid},
		{"pins for other CPUs", "", domxml.Changes{Pins: [][]int{{1}, {2}}}, "",
			hypervisor.Invalid},
		{"pins to no CPU", "", domxml.Changes{Pins: [][]int{{}}}, "", hypervisor.Invalid},
		{"nodes that cannot be", "", domxml.Changes{Nodes: []int{-1}}, "", hypervisor.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			got, err := domxml.Change(domain(tt.inner), tt.change)
			if tt.want == "" {
				if !errors.Is(err, tt.kind) || got != "" {
					t.Errorf("got %q, %v; want %v", got, err, tt.kind)
				}
				return
			}
			if diff := cmp.Diff(domain(tt.want), got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestResize(t *testing.T) {
	three := hypervisor.VM{ID: "default/a", Memory: 3 * hypervisor.MiB, CPUs: 3}
	roomy, pinned := three, three
	roomy.Hardware = &hypervisor.Hardware{MaxMemory: 2 * hypervisor.DIMMUnit, MaxCPUs: 5}
	pinned.Hardware = &hypervisor.Hardware{Pins: [][]int{{1}, {2}, {3}}}
	tests := []struct {
		about, before string
		vm            hypervisor.VM
		want          string
		kind          hypervisor.Kind
	}{
		{"memory and CPUs", "<domain><name>a</name><memory unit='GiB'>1</memory><currentMemory>7" +
			"</currentMemory><!-- x --><vcpu placement='static' current='1'>2</vcpu>" +
			"<vcpus>..</vcpus></domain>",
			three, "<domain><name>a</name><memory unit='KiB'>3072</memory>" +
				"<currentMemory unit='KiB'>3072</currentMemory><!-- x -->" +
				"<vcpu placement='static'>3</vcpu></domain>", 0},
		{"the same size is no change", "<domain><name>a</name><memory unit='MiB'>3</memory>" +
			"<vcpu>3</vcpu><cpu><topology sockets='3'/></cpu></domain>", three,
			"<domain><name>a</name><memory unit='MiB'>3</memory><vcpu>3</vcpu><cpu>" +
				"<topology sockets='3'/></cpu></domain>", 0},
		{"pins that are gone", "<domain><name>a</name><memory unit='MiB'>3</memory><vcpu>3</vcpu>" +
			"<cputune><shares>1</shares><vcpupin vcpu='0' cpuset='1'/></cputune></domain>", three,
			"<domain><name>a</name><memory unit='MiB'>3</memory><vcpu>3</vcpu><cputune>" +
				"<shares>1</shares></cputune></domain>", 0},
		{"pins that are new", "<domain><name>a</name><memory unit='MiB'>3</memory><vcpu>1</vcpu>" +
			"<cputune><vcpupin vcpu='0' cpuset='1'/></cputune></domain>", pinned,
			"<domain><name>a</name><memory unit='MiB'>3</memory><vcpu>3</vcpu><cputune>" +
				"<vcpupin vcpu='0' cpuset='1'/><vcpupin vcpu='1' cpuset='2'/>" +
				"<vcpupin vcpu='2' cpuset='3'/></cputune></domain>", 0},
		{"CPUs in sockets", domain("<cpu><topology sockets='1'/></cpu>"), three, "",
			hypervisor.Conflict},
		{"memory in nodes", domain("<vcpu>3</vcpu><cpu><numa><cell/><cell/></numa></cpu>"), three, "",
			hypervisor.Conflict},
		{"memory in modules", domain("<vcpu>3</vcpu><devices><memory/></devices>"), three, "",
			hypervisor.Conflict},
		{"memory in modules of their author's", domain("<vcpu>3</vcpu><devices><memory model='dimm'>" +
			"<source><nodemask>1</nodemask></source><target><size>1024</size></target></memory></devices>"), three, "",
			hypervisor.Conflict},
		{"room that is new", "<domain><name>a</name><memory unit='MiB'>3</memory><vcpu>3</vcpu></domain>", roomy,
			"<domain><name>a</name><memory unit='KiB'>3072</memory><vcpu current='3'>5</vcpu>" +
				"<maxMemory unit='KiB' slots='16'>262144</maxMemory><cpu><numa>" +
				"<cell id='0' cpus='0-4' memory='3072' unit='KiB'/></numa></cpu></domain>", 0},
		{"the same room is no change", "<domain><name>a</name><memory unit='MiB'>3</memory><maxMemory>262144" +
			"</maxMemory><vcpu current='3'>5</vcpu></domain>", roomy, "<domain><name>a</name><memory unit='MiB'>3" +
			"</memory><maxMemory>262144</maxMemory><vcpu current='3'>5</vcpu></domain>", 0},
		{"modules become memory", "<domain><name>a</name><maxMemory slots='16' unit='KiB'>262144</maxMemory>" +
			"<memory>3072</memory><vcpu current='3'>5</vcpu><vcpus/><cpu><numa><cell id='0' cpus='0-4' memory='1' " +
			"unit='MiB'/></numa></cpu><devices><memory model='dimm'><target><size unit='MiB'>2</size>" +
			"<node>0</node></target></memory></devices></domain>", roomy,
			"<domain><name>a</name><maxMemory slots='16' unit='KiB'>262144</maxMemory>" +
				"<memory unit='KiB'>3072</memory><vcpu current='3'>5</vcpu><vcpus/><cpu><numa><cell id='0' cpus='0-4' " +
				"memory='3072' unit='KiB'/></numa></cpu><devices></devices></domain>", 0},
		{"room that was not asked for stays as far as it does", "<domain><name>a</name><maxMemory slots='2'>4096" +
			"</maxMemory><memory>2048</memory><vcpu current='2'>4</vcpu><cpu><numa><cell cpus='0-3' memory='2048'/>" +
			"</numa></cpu></domain>", three, "<domain><name>a</name><maxMemory slots='2' unit='KiB'>4096</maxMemory>" +
			"<memory unit='KiB'>3072</memory><vcpu current='3'>4</vcpu><cpu><numa><cell cpus='0-3' memory='3072' " +
			"unit='KiB'/></numa></cpu></domain>", 0},
		{"room that is too little", "<domain><name>a</name><maxMemory slots='2'>2048</maxMemory><memory>1024" +
			"</memory><vcpu current='1'>2</vcpu><cpu><numa><cell cpus='0-1' memory='1024'/></numa></cpu></domain>", three,
			"<domain><name>a</name><memory unit='KiB'>3072</memory><vcpu>3</vcpu><cpu><numa><cell cpus='0-2' " +
				"memory='3072' unit='KiB'/></numa></cpu></domain>", 0},
		{"no size", domain(""), hypervisor.VM{ID: "default/a"}, "", hypervisor.Invalid},
		{"no domain", "<a/>", three, "", hypervisor.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			got, err := domxml.Resize(tt.before, tt.vm)
			if tt.want == "" && !errors.Is(err, tt.kind) || tt.want != "" && err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestADiskComesWhereItIsBuilt: a disk that is added later is the one that a domain is
// built with, and removing it is as if it had not been there.
func TestADiskComesWhereItIsBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := drawnVM(t)
		if vm.Hardware == nil || len(vm.Hardware.Disks) == 0 {
			t.Skip("no disk")
		}
		text, err := domxml.Build(vm, settings, domxml.Mark{})
		if err != nil {
			t.Skip(err)
		}
		d := vm.Hardware.Disks[rapid.IntRange(0, len(vm.Hardware.Disks)-1).Draw(t, "disk")]
		device, err := domxml.Device(text, d.Name)
		if err != nil {
			t.Fatal(err)
		}
		without, err := domxml.RemoveDisk(text, d.Name)
		if err != nil || strings.Contains(without, device) ||
			len(without) >= len(text)-len(device) {
			t.Fatalf("removed: %v\n%s", err, without)
		}
		with, err := domxml.AddDisk(without, d, settings)
		if err != nil {
			t.Fatal(err)
		}
		place := regexp.MustCompile(`<(target|address|source) [^>]*>`)
		again, err := domxml.Device(with, d.Name)
		if diff := cmp.Diff(place.FindAllString(device, -1),
			place.FindAllString(strings.ReplaceAll(strings.ReplaceAll(again, "'", `"`), "/>", ">"),
				-1)); (err != nil || diff != "") && !strings.Contains(device, "&") {
			t.Errorf("%v (-built +added):\n%s\n%s", err, diff, again)
		}
		if twice, err := domxml.AddDisk(with, d, settings); err != nil || twice != with {
			t.Errorf("added twice: %v\n%s", err, cmp.Diff(with, twice))
		}
		gone, err := domxml.RemoveDisk(with, d.Name)
		if err != nil || gone != without {
			t.Errorf("removed again: %v\n%s", err, cmp.Diff(without, gone))
		}
	})
}

// twins returns two disks that belong to one place.
func twins(t *testing.T) []hypervisor.Disk {
	t.Helper()
	place := regexp.MustCompile(`target="\d+" unit="\d+"`)
	at := map[string]hypervisor.Disk{}
	for i := range 1000 {
		d := hypervisor.Disk{Name: fmt.Sprint("d", i), Path: fmt.Sprint("/", i)}
		text, err := domxml.DiskXML(domain("<devices><controller type='scsi' "+
			"model='virtio-scsi'/></devices>"), d, settings)
		if err != nil {
			t.Fatal(err)
		}
		key := place.FindString(text)
		if twin, found := at[key]; found && key != "" {
			return []hypervisor.Disk{twin, d}
		}
		at[key] = d
	}
	t.Fatal("of 1000 disks in 256 places, no two are in one")
	return nil
}

// TestTwinsHaveTwoPlaces: built together or one after the other, the second disk is
// in the same place, which is not that of the first.
func TestTwinsHaveTwoPlaces(t *testing.T) {
	disks := twins(t)
	vm := hypervisor.VM{ID: "shop/web", Memory: hypervisor.MiB, CPUs: 1,
		Hardware: &hypervisor.Hardware{Disks: disks}}
	together := built(t, vm, settings)
	vm.Hardware = &hypervisor.Hardware{Disks: disks[:1]}
	alone := built(t, vm, settings)
	place := regexp.MustCompile(`dev="sd[a-z]+" bus="scsi"|target="\d+" unit="\d+"`)
	both := place.FindAllString(together, -1)
	added, err := domxml.DiskXML(alone, disks[1], settings)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(both[2:], place.FindAllString(added, -1)); diff != "" {
		t.Errorf("(-together +added):\n%s", diff)
	}
	if both[0] == both[2] || both[1] == both[3] {
		t.Errorf("two disks in one place: %q", both)
	}
	// A foreign disk may have only the name, or only the place.
	for _, kept := range []*regexp.Regexp{regexp.MustCompile(`<address type="drive"[^/]*/address>`),
		regexp.MustCompile(`dev="sd[a-z]+" `)} {
		added, err := domxml.DiskXML(kept.ReplaceAllString(alone, ""), disks[1], settings)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(both[2:], place.FindAllString(added, -1)); diff != "" {
			t.Errorf("without %v (-together +added):\n%s", kept, diff)
		}
	}
}

func TestDisksForForeignDomains(t *testing.T) {
	texts := foreign(t)
	d := hypervisor.Disk{Name: "new", Path: "/new"}
	for name, want := range map[string]string{
		"virt-install.xml": `<target dev="vdb" bus="virtio">`,
		"openstack.xml":    `<target dev="vdc" bus="virtio">`,
		"ovirt.xml":        `<address type="drive" controller="0" bus="0" target="17" unit="0">`,
		"kubevirt.xml":     `<address type="drive" controller="0" bus="0" target="17" unit="0">`,
	} {
		device, err := domxml.DiskXML(texts[name], d, domxml.Settings{})
		if err != nil || !strings.Contains(device, want) {
			t.Errorf("%s: %v, want %s in\n%s", name, err, want, device)
		}
		with, err := domxml.AddDisk(texts[name], d, domxml.Settings{})
		if err != nil {
			t.Error(err)
			continue
		}
		if gone, err := domxml.RemoveDisk(with, "new"); err != nil || gone != texts[name] {
			t.Errorf("%s: added and removed, %v:\n%s", name, err, cmp.Diff(texts[name], gone))
		}
	}
	for about, tt := range map[string]struct {
		disk hypervisor.Disk
		kind hypervisor.Kind
	}{
		"a name that is taken": {hypervisor.Disk{Name: "vda", Path: "/x"}, hypervisor.Conflict},
		"an image that is taken": {hypervisor.Disk{Name: "x",
			Path: "/var/lib/libvirt/images/debian12.qcow2"}, hypervisor.Conflict},
		"a name that is none":     {hypervisor.Disk{Name: "X", Path: "/x"}, hypervisor.Invalid},
		"no place for local ones": {hypervisor.Disk{Name: "x"}, hypervisor.Invalid},
	} {
		_, err := domxml.DiskXML(texts["virt-install.xml"], tt.disk, domxml.Settings{})
		_, err2 := domxml.AddDisk(texts["virt-install.xml"], tt.disk, domxml.Settings{})
		if !errors.Is(err, tt.kind) || !errors.Is(err2, tt.kind) {
			t.Errorf("%s: %v, %v; want %v", about, err, err2, tt.kind)
		}
	}
	if _, err := domxml.Device(texts["ovirt.xml"], "x"); !errors.Is(err, hypervisor.NotFound) {
		t.Errorf("a disk that is not there: %v", err)
	}
}

// TestSetMarkChangesTheMark: once set, a mark is replaced in its place.
func TestSetMarkChangesTheMark(t *testing.T) {
	texts := foreign(t)
	ours := regexp.MustCompile(`\s*<metadata>\s*<godwit:vm .*</godwit:vm>\s*</metadata>|` +
		`\s*<godwit:vm .*</godwit:vm>`)
	rapid.Check(t, func(t *rapid.T) {
		text := drawnDomain(t, texts)
		for n := range 2 {
			mark := domxml.Mark{VM: drawnVM(t), Job: hypervisor.JobID(fmt.Sprint("job-", n))}
			got, err := domxml.SetMark(text, mark)
			if err != nil {
				t.Fatal(err)
			}
			f, err := domxml.Read(got, domxml.Settings{})
			if err != nil || f.Mark == nil {
				t.Fatal(err, f.MarkError)
			}
			if diff := cmp.Diff(mark, *f.Mark); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := strings.Count(got, "<godwit:vm "); n != 1 {
				t.Errorf("%d marks", n)
			}
			if a, b := ours.ReplaceAllString(text, ""), ours.ReplaceAllString(got, ""); a != b {
				t.Errorf("not only the mark is new:\n%s", cmp.Diff(a, b))
			}
			text = got
		}
	})
}
