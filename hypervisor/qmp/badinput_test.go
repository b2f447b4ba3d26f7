package qmp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// small is all the memory that a host of these tests gives to VMs: one of them.
const small = 16 * mib

func smallLab(t testing.TB) *lab {
	return newLab(t, accelerator(t), func(c *qmp.Config) { c.Memory, c.CPUs = small, 2 })
}

// works wants a host to have nothing but room for a VM that takes all of it.
func (l *lab) works(n name) {
	l.T.Helper()
	l.empty()
	vm := l.vm("suite/whole", calm)
	vm.Memory, vm.CPUs = small, 2
	l.start(n, vm)
	l.sound(n, vm.ID)
	l.ends(n, vm.ID)
}

// A misuse is a VM that a host refuses to run, and to receive.
type misuse struct {
	name  string
	make  func(l *lab, vm *hypervisor.VM, hw *hypervisor.Hardware)
	kind  hypervisor.Kind
	words []string
}

func disk(d hypervisor.Disk) func(*lab, *hypervisor.VM, *hypervisor.Hardware) {
	return func(_ *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) {
		hw.Disks = []hypervisor.Disk{d}
	}
}

func named(id string) func(*lab, *hypervisor.VM, *hypervisor.Hardware) {
	return func(_ *lab, vm *hypervisor.VM, _ *hypervisor.Hardware) { vm.ID = vmid(id) }
}

func file(l *lab, name string, contents []byte) string {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		l.T.Fatal(err)
	}
	return path
}

var misuses = []misuse{
	{"a shared disk that does not exist",
		func(l *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) {
			hw.Disks = []hypervisor.Disk{{Name: "data", Path: filepath.Join(l.dir, "none")}}
		}, hypervisor.Invalid, []string{"disk data", "/none", "does not exist"}},
	{"a disk whose image is no qcow2",
		func(l *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) {
			hw.Disks = []hypervisor.Disk{{Name: "data", Format: "qcow2",
				Path: file(l, "garbage", backendtest.Noise(7, mib))}}
		}, hypervisor.Invalid, []string{"QEMU did not start", "qcow2"}},
	{"a disk that is a directory",
		func(l *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) {
			hw.Disks = []hypervisor.Disk{{Name: "data", Path: l.dir}}
		}, hypervisor.Invalid, []string{"directory"}},
	{"a firmware that does not exist",
		func(l *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) {
			hw.Firmware = filepath.Join(l.dir, "no-rom")
		}, hypervisor.Invalid, []string{"QEMU did not start", "no-rom"}},
	{"memory that does not fit",
		func(_ *lab, vm *hypervisor.VM, _ *hypervisor.Hardware) { vm.Memory = small + mib },
		hypervisor.NoRoom, []string{"memory", "17MiB", "16MiB"}},
	{"more CPUs than there are",
		func(_ *lab, vm *hypervisor.VM, _ *hypervisor.Hardware) { vm.CPUs = 3 },
		hypervisor.NoRoom, []string{"CPUs", "needs 3 has 2"}},
	{"memory that no page divides",
		func(_ *lab, vm *hypervisor.VM, _ *hypervisor.Hardware) { vm.Memory = 10*mib + 1 },
		hypervisor.Invalid, []string{"memory", "multiple of 8KiB", "10485761 bytes"}},
	{"less than no memory",
		func(_ *lab, vm *hypervisor.VM, _ *hypervisor.Hardware) { vm.Memory = -mib },
		hypervisor.Invalid, []string{"-1MiB"}},
	{"no CPU", func(_ *lab, vm *hypervisor.VM, _ *hypervisor.Hardware) { vm.CPUs = 0 },
		hypervisor.Invalid, []string{"0 CPUs"}},
	{"a machine type of another version",
		func(_ *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) { hw.Machine = "pc-q35-99.0" },
		hypervisor.Unsupported, []string{"pc-q35-99.0", "QEMU"}},
	{"a machine type that is none",
		func(_ *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) { hw.Machine = "q35,accel=tcg" },
		hypervisor.Invalid, []string{"machine type", "q35,accel=tcg"}},
	{"a CPU model that is none",
		func(_ *lab, _ *hypervisor.VM, hw *hypervisor.Hardware) { hw.CPUModel = "abacus" },
		hypervisor.Invalid, []string{"QEMU did not start", "abacus"}},
	{"a name with NUL", named("suite/\x00"), hypervisor.Invalid, []string{"name", `\x00`}},
	{"a name with a line end", named("suite/a\nb"), hypervisor.Invalid, []string{"name", `\n`}},
	{"a name that is no UTF-8", named("suite/\xff"), hypervisor.Invalid, []string{"name", `\xff`}},
	{"a name that no host could write down", named(strings.Repeat("n", 40000)),
		hypervisor.Invalid, []string{"name", "nnn"}},
	{"no name", named(""), hypervisor.Invalid, nil},
	{"a disk without a name", disk(hypervisor.Disk{Size: mib}), hypervisor.Invalid,
		[]string{"disk", "name"}},
	{"a disk whose name leads elsewhere", disk(hypervisor.Disk{Name: "../../x", Size: mib}),
		hypervisor.Invalid, []string{"../../x", "lower-case letters"}},
	{"a disk whose name is an option", disk(hypervisor.Disk{Name: "a,if=none", Size: mib}),
		hypervisor.Invalid, []string{"a,if=none", "lower-case letters"}},
	{"a disk whose name ends a string", disk(hypervisor.Disk{Name: `a"}`, Size: mib}),
		hypervisor.Invalid, []string{"lower-case letters"}},
	{"a disk whose name is too long", disk(hypervisor.Disk{Name: strings.Repeat("a", 64),
		Size: mib}), hypervisor.Invalid, []string{"1 to 63"}},
	{"a disk with a relative path", disk(hypervisor.Disk{Name: "data", Path: "data.raw"}),
		hypervisor.Invalid, []string{"absolute path", "data.raw"}},
	{"a disk with a path of another protocol",
		disk(hypervisor.Disk{Name: "data", Path: "nbd:unix:/x"}), hypervisor.Invalid,
		[]string{"absolute path", "nbd:unix:/x"}},
	{"a disk with less than no size", disk(hypervisor.Disk{Name: "data", Size: -mib}),
		hypervisor.Invalid, []string{"size"}},
	{"a disk of another format", disk(hypervisor.Disk{Name: "data", Format: "vmdk", Size: mib}),
		hypervisor.Invalid, []string{"vmdk", "qcow2"}},
}

// Whatever is wrong with a VM, a host says so, keeps nothing of it, and works on.
func TestAVMThatCannotBeIsRefused(t *testing.T) {
	l := smallLab(t)
	for _, m := range misuses {
		t.Run(m.name, func(t *testing.T) {
			vm := l.vm("suite/misused", calm)
			hw := *vm.Hardware
			vm.Hardware = &hw
			m.make(l, &vm, &hw)
			backendtest.Refused(t, l.hosts["n1"].Do(t.Context(), vm.ID, hypervisor.Start{VM: vm}),
				m.kind,
				m.words...)
			_, err := l.hosts["n2"].Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
			backendtest.Refused(t, err, m.kind, m.words...)
			for _, n := range []name{"n1", "n2"} {
				if left := l.disks(n); len(left) > 0 {
					t.Errorf("images are left on %s: %v", n, left)
				}
			}
			l.empty()
		})
	}
	l.works("n1")
	l.works("n2")
}

// A VM that rests here, and cannot be started as something else, rests as it was.
func TestAStartThatFailsLeavesTheVMAsItWas(t *testing.T) {
	l := smallLab(t)
	vm := backendtest.WithDisks(l.vm("suite/rests", calm), hypervisor.Disk{Name: "data", Size: mib})
	contents := l.furnish("n1", vm)
	for _, m := range misuses[:4] { // QEMU itself refuses some of these
		wrong := vm
		hw := *vm.Hardware
		wrong.Hardware = &hw
		m.make(l, &wrong, &hw)
		l.Refuses("n1", vm.ID, hypervisor.Start{VM: wrong}, m.kind, m.words...)
		if d := l.Domain("n1", vm.ID); d.State != hypervisor.Shutoff || !d.VM.Equal(vm) {
			t.Errorf("after %s it is %+v", m.name, d)
		}
	}
	whole := l.vm("suite/whole", calm)
	whole.Memory, whole.CPUs = small, 2
	l.start("n1", whole) // nothing is reserved
	l.Do("n1", whole.ID, hypervisor.Kill{}, hypervisor.Forget{})
	l.same("n1", contents)
	l.start("n1", vm)
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

// Names that are odd and no harm: each VM is kept apart, inside the directory.
func TestOddNamesAreKeptApart(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	l.vm("suite/first", calm)                                  // makes the guest's ROM
	must(t, os.MkdirAll(filepath.Join(l.dir, "locks"), 0o700)) // the hosts of this lab keep theirs there
	before, err := os.ReadDir(l.dir)
	must(t, err)
	long := strings.Repeat("long/", 1000)
	ids := []vmid{"../../etc", "../../etc/", "..", "/", "-name", "a,b=c", `a"}`, "Ünïcode/虚拟机",
		"ünïcode/虚拟机", vmid(long), vmid(long + "er")}
	for i, id := range ids {
		vm := backendtest.WithDisks(l.vm(id, calm), hypervisor.Disk{Name: "data", Size: mib})
		l.start("n1", vm)
		if i%4 == 1 { // one of each kind
			l.begin(job(id), id, options{})
			l.Until("n1", job(id), hypervisor.JobSucceeded)
			l.sound("n2", id)
			l.release(job(id), id, "n1", "n2")
			l.Do("n2", id, hypervisor.Kill{}, hypervisor.Forget{})
			l.start("n1", vm)
		}
		l.Do("n1", id, hypervisor.Kill{})
	}
	if after, err := os.ReadDir(l.dir); err != nil || len(after) != len(before) {
		t.Errorf("besides its own directory the host has made %v: %v", after, err)
	}
	l.reopen("n1")
	all, err := l.hosts["n1"].Domains(t.Context())
	if err != nil || len(all) != len(ids) || len(l.disks("n1")) != len(ids) {
		t.Errorf("the host has %v with the disks %v: %v", all, l.disks("n1"), err)
	}
	for _, id := range ids {
		l.Becomes("n1", id, hypervisor.Shutoff)
		l.Do("n1", id, hypervisor.Forget{})
	}
	l.empty()
}

// A migration that is asked for wrongly leaves the VM where it is.
func TestAMigrationThatCannotBeIsRefused(t *testing.T) {
	l := smallLab(t)
	stays := l.vm("suite/stays", calm)
	l.start("n1", stays)
	var j job // of the row
	to := func(address string, o options) func(hypervisor.VM) error {
		return func(vm hypervisor.VM) error {
			real := string(l.receive(j, vm))
			path, _, _ := strings.Cut(strings.TrimPrefix(real, "qmp+unix://"), "?")
			address := hypervisor.Address(strings.NewReplacer("REAL", real, "PATH", path).
				Replace(address))
			return l.hosts["n1"].Migrate(l.T.Context(), hypervisor.Outgoing{Job: j, VM: vm.ID,
				Target: "n2", Address: address, Options: o})
		}
	}
	for _, row := range []struct {
		name  string
		do    func(hypervisor.VM) error
		kind  hypervisor.Kind
		words []string
	}{
		{"to garbage", to("\x7f%%%:::", options{}), hypervisor.Invalid, []string{"no address"}},
		{"to an address of another backend", to("libvirt+ssh://host/?token=1", options{}),
			hypervisor.Invalid, []string{"libvirt+ssh", "no address"}},
		{"to an address without a token", to("qmp+unix://PATH", options{}), hypervisor.Invalid,
			[]string{"no address"}},
		{"to an address with another token", to("qmp+unix://PATH?token=00ff", options{}),
			hypervisor.Transient, []string{"nothing listens for this job"}},
		{"to a socket that does not exist", to("qmp+unix://PATH.not?token=00ff", options{}),
			hypervisor.Transient, []string{"reach the target's host"}},
		{"to a port that is closed", to("qmp://127.0.0.1:1/?token=00ff", options{}),
			hypervisor.Transient, []string{"reach the target's host", "127.0.0.1:1"}},
		{"with negative limits", to("REAL", options{Bandwidth: -1}), hypervisor.Invalid,
			[]string{"negative"}},
		{"by a method that is none", to("REAL", options{Compression: true, Method: "lzma"}),
			hypervisor.Invalid, []string{"lzma", "zstd"}},
		{"of a VM that is not here", func(vm hypervisor.VM) error {
			return l.hosts["n1"].Migrate(l.T.Context(), hypervisor.Outgoing{Job: j,
				VM: "suite/other", Address: l.receive(j, vm)})
		}, hypervisor.NotFound, []string{"suite/other"}},
		{"as a job without a name", func(vm hypervisor.VM) error {
			return l.hosts["n1"].Migrate(l.T.Context(), hypervisor.Outgoing{VM: vm.ID,
				Address: l.receive(j, vm)})
		}, hypervisor.Invalid, []string{"no name"}},
		{"to a target that is another machine", func(vm hypervisor.VM) error {
			hw := *vm.Hardware
			hw.Machine = "q35"
			vm.Hardware = &hw
			return to("REAL", options{})(vm)
		}, hypervisor.Invalid, []string{"another description"}},
		{"to a target with less memory", func(vm hypervisor.VM) error {
			vm.Memory -= mib
			return to("REAL", options{})(vm)
		}, hypervisor.Invalid, []string{"another description"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			j = job(row.name)
			backendtest.Refused(t, row.do(stays), row.kind, row.words...)
			if d := l.Domain("n1", stays.ID); d.State != hypervisor.Running || d.Job != "" {
				t.Errorf("the VM has become %+v", d)
			}
			l.Do("n2", stays.ID, hypervisor.Discard{Job: j})
		})
	}
	l.sound("n1", stays.ID)
	l.ends("n1", stays.ID)
	l.works("n1")
	l.works("n2")
}

func TestASecondMigrationOfAVMIsRefused(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/stays", calm)
	l.start("n1", vm)
	address := l.receive("first", vm)
	first := hypervisor.Outgoing{Job: "first", VM: vm.ID, Target: "n2", Address: address,
		Options: options{HoldSwitchOver: true}}
	second := first
	second.Job = "second"
	for _, out := range []hypervisor.Outgoing{first, first} { // once and again
		if err := l.hosts["n1"].Migrate(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
	backendtest.Refused(t, l.hosts["n1"].Migrate(t.Context(), second), hypervisor.Conflict, "first")
	_, err := l.Host("n2").Receive(t.Context(), hypervisor.Incoming{Job: "second", VM: vm})
	backendtest.Refused(t, err, hypervisor.Conflict, "Receiving")
	_, err = l.Host("n1").Receive(t.Context(), hypervisor.Incoming{Job: "third", VM: vm})
	backendtest.Refused(t, err, hypervisor.Conflict)
	l.Adjust("first", hypervisor.SwitchOver{})
	l.arrives("first", vm.ID)
}

func TestCommandsThatMakeNoSense(t *testing.T) {
	l := smallLab(t)
	vm := l.vm("suite/stays", calm)
	l.start("n1", vm)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	h := l.hosts["n1"]
	backendtest.Refused(t, h.Do(t.Context(), vm.ID, nil), hypervisor.Invalid, "no command")
	backendtest.Refused(t, h.Do(canceled, vm.ID, hypervisor.Kill{}), hypervisor.Transient)
	backendtest.Refused(t, h.Adjust(t.Context(), "job", nil), hypervisor.NotFound, "job")
	backendtest.Refused(t, h.Do(t.Context(), vm.ID, hypervisor.Start{VM: l.vm("suite/other",
		calm)}),
		hypervisor.Invalid, "suite/other")
	backendtest.Refused(t, h.Do(t.Context(), "suite/other", hypervisor.Pause{}),
		hypervisor.NotFound,
		"suite/other")
	_, err := h.Monitor("suite/other")
	backendtest.Refused(t, err, hypervisor.NotFound, "suite/other")
	_, err = h.Receive(t.Context(), hypervisor.Incoming{VM: l.vm("suite/other", calm)})
	backendtest.Refused(t, err, hypervisor.Invalid, "must be named")
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
	l.works("n1")
}
