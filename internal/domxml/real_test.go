package domxml_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// quiet is a configuration of libvirt's QEMU driver that changes nothing outside
// its own folder.
const quiet = `user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
`

// embedded is a QEMU driver of libvirt without a daemon, in a folder of its own. It
// ends with each script.
type embedded struct {
	dir string
	uri string
}

func newEmbedded(t *testing.T) embedded {
	t.Helper()
	for _, program := range []string{"virsh", "qemu-system-x86_64"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("libvirt's embedded driver cannot be asked: no %s here", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("libvirt's embedded driver is not asked: QEMU as another user needs root")
	}
	if testing.Short() {
		t.Skip("libvirt's embedded driver is not asked in a short test")
	}
	// Sockets are below: their paths have little room.
	dir, err := os.MkdirTemp("", "dx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := embedded{dir, "qemu:///embed?root=" + dir + "/root"}
	e.write(t, "root/etc/qemu.conf", quiet)
	if out, err := e.run("nodeinfo"); err != nil {
		t.Skipf("libvirt's embedded driver does not work here: %v: %s", err, out)
	}
	return e
}

func (e embedded) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (e embedded) run(script string) (string, error) {
	out, err := exec.Command("virsh", "-q", "-c", e.uri, script).CombinedOutput()
	return string(out), err
}

// dumps returns what libvirt says of domains after a script: its dumpxml commands.
func (e embedded) dumps(t *testing.T, script string) []string {
	t.Helper()
	out, err := e.run(script)
	if err != nil {
		t.Fatalf("virsh %q: %v\n%s", script, err, out)
	}
	var all []string
	for rest := out; ; {
		_, after, found := strings.Cut(rest, "<domain ")
		if !found {
			return all
		}
		body, more, _ := strings.Cut(after, "</domain>")
		all = append(all, "<domain "+body+"</domain>\n")
		rest = more
	}
}

// machines are VMs of all kinds that can be defined anywhere.
func machines(dir string) []hypervisor.VM {
	image := func(name string) string { return dir + "/" + name + ".img" }
	return []hypervisor.VM{
		{ID: "default/plain", Memory: 64 * hypervisor.MiB, CPUs: 1},
		{ID: "shop/web_1", Memory: 96 * hypervisor.MiB, CPUs: 2, Hardware: &hypervisor.Hardware{
			Machine: "pc", CPUModel: "qemu64,-svm,+x2apic", Pins: [][]int{{1, 0}, {0}},
			DebugPort: 0xe9, Disks: []hypervisor.Disk{
				{Name: "zero", Path: image("zero"), Size: hypervisor.MiB, ReadOnly: true},
				{Name: "root", Size: hypervisor.MiB},
				{Name: "data-with-a-name-that-is-very-long", Path: image("data"),
					Size: 2 * hypervisor.MiB, Format: "raw"}},
			NICs: []hypervisor.NIC{{MAC: "52:54:00:AB:CD:EF", Tap: "gwtap0"},
				{MAC: "52:54:00:12:34:56"}}}},
		{ID: "shop/old & <odd>'s", Memory: 64 * hypervisor.MiB, CPUs: 1,
			Hardware: &hypervisor.Hardware{Machine: "pc-q35-7.2", CPUModel: "max",
				Firmware:  "/usr/share/seabios/bios.bin",
				Hugepages: 2 * hypervisor.MiB, DebugPort: 0x402}},
		{ID: "shop/roomy", Memory: 64 * hypervisor.MiB, CPUs: 1,
			Hardware: &hypervisor.Hardware{Machine: "pc", MaxMemory: hypervisor.GiB, MaxCPUs: 4}},
		{ID: "shop/model", Memory: 64 * hypervisor.MiB, CPUs: 1,
			Hardware: &hypervisor.Hardware{CPUModel: "host-model"}},
	}
}

// TestLibvirtTakesWhatIsBuilt: what libvirt makes of the XML is still the VM that was
// asked for, and the mark and the disks survive.
func TestLibvirtTakesWhatIsBuilt(t *testing.T) {
	e := newEmbedded(t)
	for _, kind := range []string{domxml.KVM, domxml.QEMU} {
		if kind == domxml.KVM && !testutil.HasKVM() {
			t.Log("no domain of the type kvm is defined: no KVM here")
			continue
		}
		s := domxml.Settings{Type: kind, DiskDir: e.dir + "/local",
			DebugSocket: e.dir + "/debug.sock", ConsoleLog: e.dir + "/console.log"}
		var script string
		var want []hypervisor.VM
		for _, vm := range machines(e.dir) {
			if vm.Hardware != nil && vm.Hardware.CPUModel == "host-model" && kind != domxml.KVM {
				continue // libvirt has no model of a host that QEMU imitates
			}
			text, err := domxml.Build(vm, s, domxml.Mark{Job: "job-1", Source: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			name, _ := domxml.NameOf("", vm.ID)
			file := e.write(t, domxml.UUIDOf(vm.ID)+kind+".xml", text)
			script += "define --validate " + file + "; dumpxml '" +
				strings.ReplaceAll(name, "'", `'"'"'`) + "';"
			want = append(want, vm)
		}
		dumps := e.dumps(t, script)
		if len(dumps) != len(want) {
			t.Fatalf("%s: %d of %d domains are defined", kind, len(dumps), len(want))
		}
		for i, dump := range dumps {
			checkRead(t, want[i], dump, s)
		}
	}
}

// checkRead reads back what libvirt made of vm.
func checkRead(t *testing.T, vm hypervisor.VM, dump string, s domxml.Settings) domxml.Facts {
	t.Helper()
	facts, err := domxml.Read(dump, s)
	if err != nil || facts.Mark == nil {
		t.Fatalf("%s: read %v, mark %v (%v) from\n%s", vm.ID, err, facts.Mark, facts.MarkError,
			dump)
	}
	if diff := cmp.Diff(domxml.Mark{VM: vm, Job: "job-1", Source: "n1"}, *facts.Mark); diff != "" {
		t.Errorf("%s: mark (-want +got):\n%s", vm.ID, diff)
	}
	if diff := cmp.Diff(vm, domxml.Reconcile(vm, facts)); diff != "" {
		t.Errorf("%s as %s (-want +got):\n%s\n%s", vm.ID, s.Type, diff, dump)
	}
	return facts
}

// TestQEMURunsWhatIsBuilt: QEMU starts the machine, and what libvirt says of the
// running domain is still the VM that was asked for.
func TestQEMURunsWhatIsBuilt(t *testing.T) {
	e := newEmbedded(t)
	s := domxml.Settings{Type: domxml.QEMU, DiskDir: e.dir + "/local", Buffered: true,
		DebugSocket: e.dir + "/debug.sock", ConsoleLog: e.dir + "/console.log"}
	vm := machines(e.dir)[1]
	h := *vm.Hardware
	h.NICs = h.NICs[1:] // a tap would have to exist
	h.Pins = nil
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Logf("no network card is started: %v", err)
		h.NICs = nil
	}
	vm.Hardware = &h
	vm.CPUs = 1
	for _, d := range h.Disks {
		path := d.Path
		if d.Local() {
			path = s.Image("shop_web_1", d.Name)
		}
		e.write(t, strings.TrimPrefix(path, e.dir), strings.Repeat("\x00", int(d.Size)))
	}
	late := hypervisor.Disk{Name: "late", Path: e.dir + "/late.img", Size: hypervisor.MiB}
	e.write(t, "late.img", strings.Repeat("\x00", int(late.Size)))
	text, err := domxml.Build(vm, s, domxml.Mark{Job: "job-1", Source: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	device, err := domxml.DiskXML(text, late, s)
	if err != nil {
		t.Fatal(err)
	}
	dumps := e.dumps(t, "define "+e.write(t, "domain.xml", text)+"; start shop_web_1;"+
		"dumpxml shop_web_1; attach-device shop_web_1 "+e.write(t, "late.xml", device)+
		" --live; dumpxml shop_web_1; destroy shop_web_1")
	if len(dumps) != 2 {
		t.Fatalf("%d descriptions of the running domain, want 2", len(dumps))
	}
	facts := checkRead(t, vm, dumps[0], s)
	if diff := cmp.Diff(s.Image("shop_web_1", "root"), facts.Images["root"]); diff != "" {
		t.Errorf("image of the local disk (-want +got):\n%s", diff)
	}
	facts, err = domxml.Read(dumps[1], s)
	if err != nil || facts.Images["late"] != late.Path {
		t.Errorf("after a disk was plugged in: %v, images %v", err, facts.Images)
	}
	if _, err := domxml.Device(dumps[1], "late"); err != nil {
		t.Error(err)
	}
}
