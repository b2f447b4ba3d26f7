//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// untouched wants a VM to run where it was, with no job under way.
func (w *trial) untouched(id vmid) {
	w.T.Helper()
	d := w.Domain(hosta, id)
	if d.State != hypervisor.Running || d.Job != "" {
		w.T.Errorf("the VM has become %+v", d)
	}
	if text := w.virsh(hostb, "list", "--all", "--name"); strings.Contains(text, domainOf(id)) {
		w.T.Errorf("the target's libvirtd has %q", text)
	}
}

// A misroute is a migration that is asked for wrongly.
type misroute struct {
	name    string
	address func(hypervisor.Address) hypervisor.Address // nil: what Receive answered
	options transferOptions
	kind    hypervisor.Kind
	words   []string
}

func fixed(text string) func(hypervisor.Address) hypervisor.Address {
	return func(hypervisor.Address) hypervisor.Address { return hypervisor.Address(text) }
}

// changed changes what an address says.
func changed(change func(*libvirt.TargetAddress)) func(hypervisor.Address) hypervisor.Address {
	return func(a hypervisor.Address) hypervisor.Address {
		to, err := libvirt.ParseAddress(a)
		if err != nil {
			return a
		}
		change(&to)
		return hypervisor.Address(to.String())
	}
}

func peer(uri string) func(hypervisor.Address) hypervisor.Address {
	return changed(func(to *libvirt.TargetAddress) { to.Peer = uri })
}

var misroutes = []misroute{
	{"to nowhere", fixed(""), transferOptions{}, hypervisor.Invalid, []string{"no address"}},
	{"to garbage", fixed("\x7f%%%:::"), transferOptions{}, hypervisor.Invalid,
		[]string{"no address"}},
	{"to an address of another backend", fixed("qmp+unix:///x?token=1"), transferOptions{},
		hypervisor.Invalid, []string{"qmp+unix", "no address"}},
	{"to an address that is too long", fixed("libvirt:?peer=" + strings.Repeat("x", 1<<20)),
		transferOptions{}, hypervisor.Invalid, []string{"65536"}},
	{"to an address without a token", changed(func(to *libvirt.TargetAddress) { to.Token = "" }),
		transferOptions{}, hypervisor.Invalid, []string{"no address"}},
	{"to an address for another job", changed(func(to *libvirt.TargetAddress) { to.Job = "x" }),
		transferOptions{}, hypervisor.Invalid, []string{"job x"}},
	{"to an address for another VM", changed(func(to *libvirt.TargetAddress) { to.VM.ID = "a/b" }),
		transferOptions{}, hypervisor.Invalid, []string{"a/b"}},
	{"to a target with less memory", changed(func(to *libvirt.TargetAddress) { to.VM.Memory -= mib }),
		transferOptions{}, hypervisor.Invalid, []string{"the target expects"}},
	{"to a libvirtd that refuses", peer("qemu+tcp://127.0.0.1:1/system"), transferOptions{},
		hypervisor.Transient, []string{"127.0.0.1:1", "refused"}},
	{"to a host that does not exist", peer("qemu+tcp://unknown.invalid/system"),
		transferOptions{}, hypervisor.Transient, []string{"unknown.invalid"}},
	{"to what is no libvirtd", peer("rm -rf /"), transferOptions{}, hypervisor.Invalid,
		[]string{"rm%20-rf", "no scheme"}},
	{"to another hypervisor", peer("xen:///system"), transferOptions{}, hypervisor.Unsupported,
		[]string{"Xen", "not QEMU"}},
	{"with negative limits", nil, transferOptions{Bandwidth: -1}, hypervisor.Invalid,
		[]string{"no sense"}},
	{"with a negative downtime", nil, transferOptions{Downtime: -1}, hypervisor.Invalid,
		[]string{"no sense"}},
	{"by a method that is none", nil, transferOptions{Compression: true, Method: "lzma"},
		hypervisor.Unsupported, []string{"lzma"}},
	{"held at the switch-over", nil, transferOptions{HoldSwitchOver: true},
		hypervisor.Unsupported, []string{"hold-switch-over"}},
}

// A migration that is asked for wrongly leaves the VM where it is, and nothing
// has begun.
func TestAMigrationThatCannotBeIsRefused(t *testing.T) {
	testutil.Sample(t, 5)
	w := newTrial(t, nil)
	stays := w.vm("suite/stays", calm)
	w.start(hosta, stays)
	itself := misroute{"to itself", peer(w.PeerURI(string(hosta))), transferOptions{},
		hypervisor.Conflict, []string{"name and uuid", "the same domain is there"}}
	for i, row := range append(misroutes, itself) {
		w.run(row.name, func() {
			j := jobID(fmt.Sprint("job-", i))
			a := w.receive(j, stays)
			if row.address != nil {
				a = row.address(a)
			}
			backendtest.Refused(w.T, w.migrate(j, stays.ID, a, row.options), row.kind, row.words...)
			w.untouched(stays.ID)
			if p := w.Progress(hosta, j); p.Status != hypervisor.JobNone {
				w.T.Errorf("the job is %v", p.Status)
			}
			w.Do(hostb, stays.ID, hypervisor.Discard{Job: j})
			w.barless()
		})
	}
	w.sound(hosta, stays.ID)
	w.begin("last", stays.ID, transferOptions{})
	w.arrives("last", stays.ID)
	w.ends(hostb, stays.ID)
}

// barless removes the tombstones of what was discarded.
func (w *trial) barless() {
	w.T.Helper()
	for uuid := range strings.FieldsSeq(w.virsh(hostb, "list", "--all", "--uuid")) {
		w.virsh(hostb, "undefine", uuid)
	}
}

// Another client may have begun to move the VM.
func TestAVMThatVirshMovesIsNotMovedTwice(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm("suite/moves", calm)
	w.start(hosta, vm)
	a := w.receive("job", vm)
	ctx := testutil.Context(t, testutil.DefaultLimit)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Virsh(ctx, string(hosta), "migrate", "--live", "--p2p", "--bandwidth", "1",
			domainOf(vm.ID), w.PeerURI(string(hostb)))
		ended <- err
	}()
	w.Eventually("virsh moves it", func() bool {
		return strings.Contains(w.virsh(hosta, "domjobinfo", domainOf(vm.ID)), "Unbounded")
	})
	backendtest.Refused(t, w.migrate("job", vm.ID, a, transferOptions{}), hypervisor.Conflict)
	w.Refuses(hosta, vm.ID, hypervisor.Pause{}, hypervisor.Conflict, "moving")
	w.virsh(hosta, "domjobabort", domainOf(vm.ID))
	if err := <-ended; err == nil {
		t.Error("virsh has moved it")
	}
	w.sound(hosta, vm.ID)
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
	w.ends(hosta, vm.ID)
}

// A name that is taken at the target is a reason, before anything moves, whenever it
// was taken.
func TestANameThatIsTakenIsAReason(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm("suite/taken", calm)
	w.start(hosta, vm)
	a := w.receive("job", vm)
	xml := filepath.Join(t.TempDir(), "other.xml")
	must(t, os.WriteFile(xml, []byte(`<domain type='qemu'><name>`+domainOf(vm.ID)+`</name>
<memory unit='MiB'>1</memory><os><type arch='x86_64'>hvm</type></os></domain>`), 0o600))
	w.virsh(hostb, "define", xml)
	wantReasons(t, w.migrate("job", vm.ID, a, transferOptions{}), hypervisor.Conflict,
		"name and uuid")
	if d := w.Domain(hosta, vm.ID); d.State != hypervisor.Running || d.Job != "" {
		t.Errorf("the VM has become %+v", d)
	}
	_, err := w.Host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "next", VM: vm})
	backendtest.Refused(t, err, hypervisor.Conflict)
	if !strings.Contains(w.virsh(hostb, "list", "--all", "--name"), domainOf(vm.ID)) {
		t.Error("the other domain is gone")
	}
	w.virsh(hostb, "undefine", domainOf(vm.ID))
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
	w.ends(hosta, vm.ID)
}

// What the target lacks is said when it is asked to receive: all of it.
func TestADiskThatIsMissingAtTheTargetIsAReason(t *testing.T) {
	w := newTrial(t, nil)
	inside := w.ImagesDir() + "/data.raw"
	must(t, os.WriteFile(w.Outside(string(hosta), inside), make([]byte, mib), 0o600))
	vm := w.vm("suite/disk", calm)
	hw := *vm.Hardware
	hw.Disks = []hypervisor.Disk{{Name: "data", Path: inside, Size: mib}}
	vm.Hardware = &hw
	w.start(hosta, vm)
	_, err := w.Host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	wantReasons(t, err, hypervisor.Invalid, "disk data")
	vm.Hardware = &hypervisor.Hardware{Machine: "pc", Firmware: "/nonexistent/rom",
		Disks: []hypervisor.Disk{{Name: "a", Path: "/nonexistent/a"}, {Name: "b", Path: "/none/b"}}}
	_, err = w.Host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	wantReasons(t, err, hypervisor.Invalid, "disk a", "disk b", "firmware")
	w.untouched(vm.ID)
	w.ends(hosta, vm.ID)
}

// A host that is told another one's address as its own sends its VMs to that one: what
// is there already is a reason.
func TestHostsWhoseConfigsContradictRefuse(t *testing.T) {
	w := newTrial(t, nil)
	c := w.config(hostb)
	c.Name, c.Dir, c.Peer = "hostc", filepath.Join(t.TempDir(), "c"), w.PeerURI(string(hosta))
	c.URI = w.URI(string(hostb))
	liar, err := libvirt.New(t.Context(), c)
	must(t, err)
	defer func() { must(t, liar.Close()) }()
	vm := w.vm("suite/stays", calm)
	w.start(hosta, vm)
	a, err := liar.Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	must(t, err)
	wantReasons(t, w.migrate("job", vm.ID, a, transferOptions{}), hypervisor.Conflict,
		"name and uuid")
	w.untouched(vm.ID)
	must(t, liar.Do(t.Context(), vm.ID, hypervisor.Discard{Job: "job"}))
	w.sound(hosta, vm.ID)
	w.ends(hosta, vm.ID)
}

// hostile are names that want to be something else than names.
var hostile = []string{"", "/", ".", "..", "../../etc", "a/../../b", "suite/..",
	"suite/\x00", "suite/a\nb", "suite/\xff", "suite/\ufffe", "suite/a\tb", " ", "suite/ ", "-name",
	"suite/--all", "a,b=c", `a"}`, "suite/<domain/>", "suite/&amp;", "suite/]]>", "suite/'x'",
	"suite/$(reboot)", "suite/;reboot", "suite/%s%n", "_", "_a", "a_", "suite/a_b", "default/a_b",
	"Ünïcode/虚拟机", "suite/a/b/c", strings.Repeat("n", 40000), "suite/" + strings.Repeat("l", 200),
	"suite/" + strings.Repeat("l", 300), "suite/" + strings.Repeat("é", 200)}

// Whatever a VM is called, it is refused or kept apart, and nothing panics.
func TestHostileNamesAreRefusedOrKeptApart(t *testing.T) {
	w := newTrial(t, nil)
	w.vm("suite/first", calm) // makes the guest's ROM
	before, err := os.ReadDir(w.dir)
	must(t, err)
	taken := 0
	for _, text := range hostile {
		if w.tryName(vmid(text)) {
			taken++
		}
	}
	t.Logf("%d of %d names are taken, the others refused", taken, len(hostile))
	if taken < 10 || taken > len(hostile)-10 {
		t.Errorf("%d of %d names are taken", taken, len(hostile))
	}
	if after, err := os.ReadDir(w.dir); err != nil || len(after) != len(before) {
		t.Errorf("besides its own directory a host has made %v: %v", after, err)
	}
	for _, n := range []name{hosta, hostb} {
		w.barless()
		if text := w.virsh(n, "list", "--all", "--name"); text != "" {
			t.Errorf("libvirt on %s still has %q", n, text)
		}
	}
}

// tryName does to a VM what can be done with a name, and reports whether it was taken.
func (w *trial) tryName(id vmid) (taken bool) {
	w.T.Helper()
	ctx, vm := w.T.Context(), w.vm(id, calm)
	h, other := w.hosts[hosta], w.hosts[hostb]
	errStart := h.Do(ctx, id, hypervisor.Start{VM: vm})
	address, errReceive := other.Receive(ctx, hypervisor.Incoming{Job: jobID("job " + id), VM: vm})
	d, err := h.Domain(ctx, id)
	if err != nil {
		w.T.Errorf("Domain of %.60q: %v", id, err)
	}
	taken = d.State != hypervisor.Absent
	if taken != (errStart == nil) || taken && d.VM.ID != id {
		w.T.Errorf("%.60q is %v, %.60q, and Start said %v", id, d.State, d.VM.ID, errStart)
	}
	for what, err := range map[string]error{"Start": errStart, "Receive": errReceive} {
		if err != nil && !errors.Is(err, hypervisor.Invalid) {
			w.T.Errorf("%s of %.60q: %v", what, id, err)
		}
	}
	if errReceive == nil {
		err := other.Do(ctx, id, hypervisor.Discard{Job: jobID("job " + id)})
		if err != nil {
			w.T.Errorf("Discard of %.60q at %.60q: %v", id, address, err)
		}
	}
	for _, c := range []hypervisor.Command{hypervisor.Kill{}, hypervisor.Forget{}} {
		if err := h.Do(ctx, id, c); taken && err != nil {
			w.T.Errorf("%T of %.60q: %v", c, id, err)
		}
	}
	for _, c := range []hypervisor.Command{nil, hypervisor.Activate{}, hypervisor.Resume{},
		hypervisor.Abandon{}, hypervisor.Release{}, hypervisor.Discard{}, hypervisor.Snapshot{},
		hypervisor.AttachDisk{}, hypervisor.DetachDisk{Name: string(id)}, hypervisor.Pause{},
		hypervisor.Unpause{}, hypervisor.Reboot{}, hypervisor.Stop{Grace: -1},
		hypervisor.MeasureDirtyRate{For: -1}, hypervisor.Resize{}} {
		err := h.Do(ctx, id, c)
		if !errors.Is(err, hypervisor.Invalid) && !errors.Is(err, hypervisor.NotFound) {
			w.T.Errorf("%T of %.60q that is not there: %v", c, id, err)
		}
	}
	if _, err := h.Progress(ctx, jobID(id)); err != nil {
		w.T.Errorf("Progress of %.60q: %v", id, err)
	}
	backendtest.Refused(w.T, h.Adjust(ctx, jobID(id), nil), hypervisor.NotFound)
	return taken
}
