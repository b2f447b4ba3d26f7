package qemu_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// odd is a VM with everything that may be odd.
func odd(t *testing.T, dir, machineType string) hypervisor.VM {
	t.Helper()
	qcow := filepath.Join(dir, "q,cow \"2\"")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", qcow,
		"4M").CombinedOutput(); err != nil {
		t.Skipf("there is no qemu-img: %v %s", err, out)
	}
	return hypervisor.VM{ID: "default/a,b=c \"d\" é", Memory: 24*hypervisor.MiB + 8*hypervisor.KiB,
		CPUs: 3, Hardware: &hypervisor.Hardware{Machine: machineType, DebugPort: 0xe9,
			Disks: []hypervisor.Disk{
				{Name: "tools", ReadOnly: true,
					Path: image(t, dir+"/a b,c,,d=\"e\"/{x}, ünï \\ \u2028")},
				{Name: "root", Path: qcow, Format: "qcow2"},
				{Name: "a-name-that-is-too-long-for-the-name-of-a-node", Path: image(t, dir+"/-S")},
				{Name: "local"}},
			NICs: []hypervisor.NIC{{MAC: "52:54:00:12:34:56"}, {MAC: "52:54:00:12:34:57"}}}}
}

// images lists what QEMU has open, by the name of the device.
func images(m *machineUnderTest) map[string]string {
	m.t.Helper()
	var blocks []struct {
		Device   string `json:"qdev"`
		Inserted struct {
			Node  string `json:"node-name"`
			RO    bool
			Cache struct{ Direct bool }
			Image struct {
				Filename string
				Format   string
			}
		}
	}
	m.do("query-block", nil, &blocks)
	got := map[string]string{}
	for _, b := range blocks {
		i := b.Inserted
		got[b.Device] = fmt.Sprint(i.Node, " ", i.Image.Format, " ro=", i.RO, " ", i.Image.Filename)
	}
	return got
}

func TestQEMUBuildsWhatIsAskedFor(t *testing.T) {
	withAccelerators(t, func(t *testing.T, f qemu.Features, s qemu.Settings) {
		for _, machineType := range []string{"", "q35", "pc"} {
			t.Run("machine "+machineType, func(t *testing.T) {
				s := s
				s.Dir, s.Console = shortDir(t), true
				local := image(t, s.Dir+"/local, too")
				s.LocalDisk = func(string) string { return local }
				vm := odd(t, s.Dir, machineType)
				m := start(t, f.Path, vm, s)
				checkBlocks(m, vm, local)
				checkRest(m, vm, s)
				for _, socket := range []string{s.ConsoleSocket(), s.DebugSocket()} {
					conn, err := net.Dial("unix", socket)
					if err != nil {
						t.Fatal(err)
					}
					conn.Close()
				}
			})
		}
	})
}

func checkBlocks(m *machineUnderTest, vm hypervisor.VM, local string) {
	m.t.Helper()
	want := map[string]string{}
	for _, d := range vm.Hardware.Disks {
		format, path := d.Format, d.Path
		if format == "" {
			format = "raw"
		}
		if d.Local() {
			path = local
		}
		want[qemu.DeviceID(d.Name)] =
			fmt.Sprint(qemu.NodeName(d.Name), " ", format, " ro=", d.ReadOnly, " ", path)
	}
	if diff := cmp.Diff(want, images(m)); diff != "" {
		m.t.Errorf("disks (-want +got):\n%s", diff)
	}
}

func checkRest(m *machineUnderTest, vm hypervisor.VM, s qemu.Settings) {
	m.t.Helper()
	var name struct{ Name string }
	m.do("query-name", nil, &name)
	var uuid struct{ UUID string }
	m.do("query-uuid", nil, &uuid)
	var memory struct {
		Base hypervisor.Bytes `json:"base-memory"`
	}
	m.do("query-memory-size-summary", nil, &memory)
	var cpus []struct{}
	m.do("query-cpus-fast", nil, &cpus)
	var status struct{ Status string }
	m.do("query-status", nil, &status)
	var kvm struct{ Enabled bool }
	m.do("query-kvm", nil, &kvm)
	got := fmt.Sprint(name.Name, " ", uuid.UUID, " ", memory.Base, " ", len(cpus), " ",
		status.Status, " ", kvm.Enabled)
	want := fmt.Sprint(vm.ID, " ", qemu.UUID(vm.ID), " ", vm.Memory, " ", vm.CPUs,
		" prelaunch ", s.Accelerator == qemu.KVM)
	if got != want {
		m.t.Errorf("it is %q, want %q", got, want)
	}
	for _, n := range vm.Hardware.NICs {
		if !strings.Contains(m.human("info network"), n.MAC) {
			m.t.Errorf("there is no card %s", n.MAC)
		}
	}
	if tree := m.human("info qtree"); !strings.Contains(tree, "isa-debugcon") ||
		!strings.Contains(tree, "isa-serial") {
		m.t.Error("a serial port or the debug port is missing")
	}
	if _, err := os.Stat(s.PIDFile()); err != nil {
		m.t.Error(err)
	}
}

// TestAMachineMovesWithADiskThatWasPluggedInLater: a disk is plugged into the
// source, another unplugged, and the target is started with what is left.
func TestAMachineMovesWithADiskThatWasPluggedInLater(t *testing.T) {
	testutil.Sample(t, 3)
	withAccelerators(t, func(t *testing.T, f qemu.Features, s qemu.Settings) {
		for _, capability := range []string{"events", "postcopy-ram", "multifd"} {
			for _, machineType := range []string{"q35", "pc"} {
				t.Run(machineType+" with "+capability, func(t *testing.T) {
					if !f.Capabilities[capability] {
						t.Skip("this QEMU cannot do it here: ", capability)
					}
					moves(t, f, s, machineType, capability)
				})
			}
		}
	})
}

func moves(t *testing.T, f qemu.Features, s qemu.Settings, machineType, capability string) {
	t.Helper()
	dir := shortDir(t)
	disk := func(name string) hypervisor.Disk {
		return hypervisor.Disk{Name: name, Path: image(t, dir+"/"+name)}
	}
	first := []hypervisor.Disk{disk("root"), disk("middle"), disk("last")}
	vm := hypervisor.VM{ID: "a", Memory: 16 * hypervisor.MiB, CPUs: 2,
		Hardware: &hypervisor.Hardware{Machine: machineType, Disks: first, DebugPort: 0xe9,
			NICs: []hypervisor.NIC{{MAC: "52:54:00:12:34:56"}}}}
	from, to := s, s
	from.Dir, from.Console = shortDir(t), true // and the target has no console
	source := start(t, f.Path, vm, from)
	source.do("cont", nil, nil)
	source.unplug("middle")
	after := vm
	after.Hardware = &hypervisor.Hardware{Machine: machineType, DebugPort: 0xe9,
		NICs:  vm.Hardware.NICs,
		Disks: []hypervisor.Disk{first[0], first[2], disk("added")}}
	source.do("blockdev-add", qemu.DiskNode(after, 2, from), nil)
	source.do("device_add", qemu.DiskDevice(after.Hardware, 2), nil)

	to.Dir, to.Incoming = shortDir(t), true
	target := start(t, f.Path, after, to)
	if capability == "postcopy-ram" { // so slow that it cannot end before
		source.do("migrate-set-parameters", map[string]any{"max-bandwidth": 4096}, nil)
	}
	source.migrate(target, to.Dir, capability)
	if capability == "postcopy-ram" {
		source.await("query-migrate", "active")
		source.do("migrate-start-postcopy", nil, nil)
	}
	source.await("query-migrate", "completed")
	target.do("cont", nil, nil)
	target.await("query-status", "running")
	if diff := cmp.Diff(images(source), images(target)); diff != "" {
		t.Errorf("disks (-source +target):\n%s", diff)
	}
}

// TestAPluggedDiskIsWhatArgsBuild compares, property by property, a disk that was
// plugged in with the same disk in the command line.
func TestAPluggedDiskIsWhatArgsBuild(t *testing.T) {
	f, dir := installed(t), shortDir(t)
	vm := hypervisor.VM{ID: "a", Memory: 16 * hypervisor.MiB, CPUs: 1,
		Hardware: &hypervisor.Hardware{Disks: []hypervisor.Disk{
			{Name: "only", Path: image(t, dir+"/only"), ReadOnly: true}}}}
	empty := vm
	empty.Hardware = nil
	built := start(t, f.Path, vm, qemu.Settings{Dir: shortDir(t)})
	s := qemu.Settings{Dir: shortDir(t)}
	plugged := start(t, f.Path, empty, s)
	plugged.do("blockdev-add", qemu.DiskNode(vm, 0, s), nil)
	plugged.do("device_add", qemu.DiskDevice(vm.Hardware, 0), nil)
	if diff := cmp.Diff(built.human("info qtree"), plugged.human("info qtree")); diff != "" {
		t.Errorf("(-built +plugged):\n%s", diff)
	}
	var nodes [2]json.RawMessage
	for i, m := range []*machineUnderTest{built, plugged} {
		m.do("query-named-block-nodes", nil, &nodes[i])
	}
	if diff := cmp.Diff(string(nodes[0]), string(nodes[1])); diff != "" {
		t.Errorf("nodes (-built +plugged):\n%s", diff)
	}
}

func TestHugepages(t *testing.T) {
	free, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(free))); n < 8 {
		t.Skipf("this host has no 8 free huge pages of 2 MiB: %s%v", free, err)
	}
	f := installed(t)
	vm := hypervisor.VM{ID: "a", Memory: 16 * hypervisor.MiB, CPUs: 1,
		Hardware: &hypervisor.Hardware{Hugepages: 2 * hypervisor.MiB}}
	m := start(t, f.Path, vm, qemu.Settings{Dir: shortDir(t)})
	var backends []struct {
		Size  hypervisor.Bytes
		Share bool
	}
	m.do("query-memdev", nil, &backends)
	if len(backends) != 1 || backends[0].Size != vm.Memory {
		t.Errorf("its memory is %+v", backends)
	}
}

// TestTheEndOfAGuestIsNotTheEndOfQEMU: neither a shutdown nor a reset ends QEMU,
// but being told to does.
func TestTheEndOfAGuestIsNotTheEndOfQEMU(t *testing.T) {
	f := installed(t)
	vm := hypervisor.VM{ID: "a", Memory: 16 * hypervisor.MiB, CPUs: 1}
	m := start(t, f.Path, vm, qemu.Settings{Dir: shortDir(t)})
	m.do("cont", nil, nil)
	m.do("system_reset", nil, nil)
	m.await("query-status", "running")
	m.do("quit", nil, nil)
	<-m.ended
}
