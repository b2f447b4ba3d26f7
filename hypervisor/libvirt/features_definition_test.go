//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// The name of a domain that godwit would not have chosen, and the VM that it is.
const (
	oddName      = "_odd é"
	oddVM   vmid = oddName
)

// foreignXML describes a domain that another client has made, with the guest that the
// others have. Devices are more of them.
func (w *trial) foreignXML(name, devices string) string {
	return fmt.Sprintf(`<domain type='%s' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>%s</name>
  <title>not ours</title>
  <description>made by hand</description>
  <metadata><app:thing xmlns:app="http://example.org/app" size="1">kept</app:thing></metadata>
  <memory unit='MiB'>12</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type><loader type='rom'>%s</loader></os>
  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' index='0' model='none'/><memballoon model='none'/>
    <serial type='unix'><source mode='bind' path='/run/%s.debug'/>
      <target type='isa-debug' port='0'><model name='isa-debugcon'/></target>
      <address type='isa' iobase='0xe9'/></serial>%s
  </devices>
  <qemu:commandline><qemu:env name='GODWIT_FOREIGN' value='kept'/></qemu:commandline>
</domain>`, w.accel, name, w.vm("x/y", calm).Hardware.Firmware, name, devices)
}

// virshFile runs a command of virsh's that reads a file.
func (w *trial) virshFile(n name, command, xml string) {
	w.T.Helper()
	path := filepath.Join(w.dir, "domain.xml")
	if err := os.WriteFile(path, []byte(xml), 0o600); err != nil {
		w.T.Fatal(err)
	}
	w.virsh(n, command, path)
}

// move moves a VM, sound as it is, and releases its source.
func (w *trial) move(j jobID, vm hypervisor.VM, from, to name) {
	w.T.Helper()
	a, err := w.Host(to).Receive(w.T.Context(), hypervisor.Incoming{Job: j, VM: vm})
	if err == nil {
		err = w.Host(from).Migrate(w.T.Context(), hypervisor.Outgoing{Job: j, VM: vm.ID,
			Target: to, Address: a})
	}
	if err != nil {
		w.T.Fatal(err)
	}
	w.Eventually(string(j)+" has succeeded", func() bool {
		p := w.Progress(from, j)
		if p.Status == hypervisor.JobFailed {
			w.T.Fatalf("%s failed: %s", j, p.Error)
		}
		return p.Status == hypervisor.JobSucceeded
	})
	w.Do(from, vm.ID, moved(j, vm.ID, to))
}

// dominfo returns what libvirt says of a property of a domain.
func (w *trial) dominfo(n name, id vmid, key string) string {
	w.T.Helper()
	for line := range strings.Lines(w.virsh(n, "dominfo", domainOf(id))) {
		if k, v, _ := strings.Cut(line, ":"); k == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// keeps wants the XML of a domain to say all of this.
func (w *trial) keeps(n name, id vmid, what []string, flags ...string) {
	w.T.Helper()
	xml := w.virsh(n, append([]string{"dumpxml", domainOf(id)}, flags...)...)
	for _, text := range what {
		if !strings.Contains(xml, text) {
			w.T.Errorf("on %s its XML %v lacks %s:\n%s", n, flags, text, xml)
		}
	}
}

var foreignParts = []string{"<title>not ours</title>", "<description>made by hand</description>",
	"size=\"1\">kept</app:thing>", "<qemu:env name='GODWIT_FOREIGN' value='kept'/>"}

func TestAForeignDomainMovesThereAndBack(t *testing.T) {
	w := newTrial(t, nil)
	w.virshFile(hosta, "define", w.foreignXML(oddName, ""))
	uuid := w.virsh(hosta, "domuuid", oddName)
	all, err := w.Host(hosta).Domains(t.Context())
	if err != nil || len(all) != 1 || all[0].VM.ID != oddVM || all[0].State != hypervisor.Shutoff ||
		all[0].VM.Memory != 12*mib || all[0].VM.Hardware.DebugPort != 0xe9 {
		t.Fatalf("the host shows %+v: %v", all, err)
	}
	vm := all[0].VM
	w.start(hosta, vm)
	w.move("there", w.Domain(hosta, oddVM).VM, hosta, hostb)
	w.sound(hostb, oddVM)
	w.keeps(hostb, oddVM, foreignParts)
	w.keeps(hostb, oddVM, foreignParts, "--inactive")
	if got := w.virsh(hosta, "list", "--all", "--name"); got != "" {
		t.Errorf("the source still has %q", got)
	}
	w.move("back", w.Domain(hostb, oddVM).VM, hostb, hosta)
	w.sound(hosta, oddVM)
	if got := w.virsh(hosta, "domuuid", oddName); got != uuid {
		t.Errorf("its UUID is %s and was %s", got, uuid)
	}
	if p := w.dominfo(hosta, oddVM, "Persistent"); p != "yes" {
		t.Errorf("it came back persistent: %s", p)
	}
	w.Do(hosta, oddVM, hypervisor.Kill{})
	vm = w.Domain(hosta, oddVM).VM
	vm.Memory, vm.CPUs = 24*mib, 2
	w.Do(hosta, oddVM, hypervisor.Resize{VM: vm})
	w.keeps(hosta, oddVM, append(foreignParts, "<vcpu placement='static'>2</vcpu>",
		"<memory unit='KiB'>24576</memory>"))
	w.ends(hosta, oddVM)
}

// A start that libvirt refuses leaves a domain of another client as it was: nothing is kept of it.
func TestAForeignDomainWhoseStartIsRefusedStaysAsItWas(t *testing.T) {
	w := newTrial(t, nil)
	w.virshFile(hosta, "define", w.foreignXML(oddName,
		"<interface type='network'><source network='missing'/></interface>"))
	vm := w.Domain(hosta, oddVM).VM
	for range 2 {
		err := w.Host(hosta).Do(t.Context(), oddVM, hypervisor.Start{VM: vm})
		if err == nil || errors.Is(err, hypervisor.Unknown) {
			t.Fatalf("it was to start on a network that is missing: %v", err)
		}
		if d := w.Domain(hosta, oddVM); d.State != hypervisor.Shutoff || !d.VM.Equal(vm) {
			t.Errorf("it is %v %+v, and was %+v", d.State, d.VM, vm)
		}
	}
	w.keeps(hosta, oddVM, foreignParts)
	w.Do(hosta, oddVM, hypervisor.Forget{})
	backendtest.Bare(t, w.hosts)
}

// A transient domain stays one, and leaves nothing behind.
func TestATransientDomainStaysTransient(t *testing.T) {
	w := newTrial(t, nil)
	id := vmid("default/passing")
	if err := w.hear(hosta, id); err != nil {
		t.Fatal(err)
	}
	w.virshFile(hosta, "create", w.foreignXML("passing", ""))
	w.sound(hosta, id)
	w.begin("job", id, transferOptions{Bandwidth: slow})
	w.Until(hosta, "job", hypervisor.JobActive)
	w.cancelled("job", id)
	if p := w.dominfo(hosta, id, "Persistent"); p != "no" {
		t.Errorf("after a move that was cancelled it is persistent: %s", p)
	}
	w.begin("there", id, transferOptions{})
	w.Until(hosta, "there", hypervisor.JobSucceeded)
	w.sound(hostb, id)
	if p := w.dominfo(hostb, id, "Persistent"); p != "no" {
		t.Errorf("at the target it is persistent: %s", p)
	}
	if s := w.Domain(hosta, id).State; s != hypervisor.HandedOver {
		t.Errorf("the source is %v", s)
	}
	w.Do(hosta, id, moved("there", id, hostb))
	w.ends(hostb, id)
}

// autostarts returns what libvirt says of a domain's autostart: enable or disable.
func (w *trial) autostarts(n name, id vmid) string {
	w.T.Helper()
	return w.dominfo(n, id, "Autostart")
}

// libvirtd starts no VM of ours when its host boots: it may have been started elsewhere by then. A persistent
// domain is one at its target, and until Release at its source.
func TestAutostartIsSwitchedOffForGood(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, restless)
	off := func(when string, n name) {
		t.Helper()
		if a := w.autostarts(n, vm.ID); a != "disable" {
			t.Errorf("%s it would start with %s: %s", when, n, a)
		}
	}
	on := func() { w.virsh(hosta, "autostart", domainOf(vm.ID)) }
	w.start(hosta, vm)
	on()
	w.moving("cancelled", vm.ID, transferOptions{Bandwidth: slow})
	off("while it moves", hosta)
	w.cancelled("cancelled", vm.ID)
	off("after a move that was cancelled", hosta)
	on()
	if _, err := w.open(hosta); err != nil {
		t.Fatal(err)
	}
	off("when its host is opened", hosta)
	on()
	w.Do(hosta, vm.ID, hypervisor.Kill{}, hypervisor.Start{VM: vm})
	off("after a start", hosta)
	on()
	w.begin("job", vm.ID, transferOptions{})
	w.Until(hosta, "job", hypervisor.JobSucceeded)
	w.sound(hostb, vm.ID)
	if p := w.dominfo(hosta, vm.ID, "Persistent"); p != "yes" {
		t.Errorf("before Release it is at its source persistent %s", p)
	}
	off("before Release", hosta)
	w.Do(hosta, vm.ID, moved("job", vm.ID, hostb))
	off("after the move", hostb)
	if got := w.virsh(hosta, "list", "--all", "--name"); got != "" {
		t.Errorf("after Release the source still has %q", got)
	}
	w.ends(hostb, vm.ID)
}

// What libvirtd starts is known, and is switched off for a VM of which nothing is kept when that is asked,
// and for none besides.
func TestDisableAutostart(t *testing.T) {
	w := newTrial(t, nil)
	h := w.hosts[hosta]
	for _, name := range []string{oddName, "other"} {
		w.virshFile(hosta, "define", w.foreignXML(name, ""))
		w.virsh(hosta, "autostart", name)
	}
	w.virshFile(hosta, "create", w.foreignXML("passing", ""))
	for range 2 {
		for _, id := range []vmid{oddVM, "default/passing", "default/missing"} {
			if err := h.DisableAutostart(t.Context(), id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	names, err := h.Autostarted(t.Context())
	if err != nil || !slices.Equal(names, []string{"other"}) {
		t.Errorf("libvirtd starts %q: %v", names, err)
	}
	if _, err := w.open(hosta); err != nil {
		t.Fatal(err)
	}
	if a := w.autostarts(hosta, "default/other"); a != "enable" {
		t.Errorf("a domain of which nothing is kept does not start any more: %s", a)
	}
	w.virsh(hosta, "destroy", "passing")
	for _, name := range []string{oddName, "other"} {
		w.virsh(hosta, "undefine", name)
	}
}

// A saved state is the VM's memory: it is not thrown away, and Start goes on with it.
func TestAManagedSaveIsLeftAlone(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	w.virsh(hosta, "managedsave", domainOf(vm.ID))
	w.Becomes(hosta, vm.ID, hypervisor.Shutoff)
	wantReasons(t, w.send("job", vm.ID, transferOptions{}), hypervisor.Conflict, "saved state")
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
	if err := w.Host(hosta).Do(t.Context(), vm.ID, hypervisor.Forget{}); err == nil {
		t.Error("it was forgotten, with its memory")
	}
	before := w.pulse(vm.ID).Log().Beats
	if err := w.hosts[hosta].Do(t.Context(), vm.ID, hypervisor.Start{VM: vm}); err != nil {
		t.Fatal(err)
	}
	w.Eventually("it beats on", func() bool { return w.pulse(vm.ID).Log().Beats > before })
	w.sound(hosta, vm.ID)
	w.ends(hosta, vm.ID)
}

// A saved state is continued only while the VM was started nowhere else since: its disks are newer then. That
// a start was refused in between is no matter, and it moves with the VM which start was its last.
func TestAnOutdatedManagedSaveIsNotContinued(t *testing.T) {
	w := newTrial(t, nil)
	vm, boot := w.vm(traveller, calm), 4
	start := func(n name, boot int, want string) {
		t.Helper()
		w.Do(n, vm.ID, hypervisor.Start{VM: vm, Boot: boot})
		if how := w.virsh(n, "domstate", "--reason", domainOf(vm.ID)); how != "running ("+want+")" {
			t.Errorf("start %d on %s: it is %s, want %s", boot, n, how, want)
		}
		if saved := w.dominfo(n, vm.ID, "Managed save"); saved != "no" {
			t.Errorf("start %d on %s: a managed save is left: %s", boot, n, saved)
		}
	}
	save := func(n name) {
		t.Helper()
		w.virsh(n, "managedsave", domainOf(vm.ID))
		w.Becomes(n, vm.ID, hypervisor.Shutoff)
	}
	start(hosta, boot, "booted")
	save(hosta)
	start(hosta, boot+1, "restored")
	save(hosta)
	large := vm
	large.Memory = 64 * hypervisor.GiB
	backendtest.Refused(t, w.Host(hosta).Do(t.Context(), vm.ID, hypervisor.Start{VM: large, Boot: boot + 2}),
		hypervisor.NoRoom)
	if _, err := w.open(hosta); err != nil {
		t.Fatal(err)
	}
	start(hosta, boot+3, "restored")
	w.move("job", w.Domain(hosta, vm.ID).VM, hosta, hostb)
	save(hostb)
	start(hostb, boot+4, "restored")
	save(hostb)
	start(hostb, boot+6, "booted") // start 5 was elsewhere
	save(hostb)
	start(hostb, boot+7, "restored")
	save(hostb)
	if err := w.Host(hostb).Do(t.Context(), vm.ID, hypervisor.Forget{}); err == nil {
		t.Error("it was forgotten, with its memory")
	}
	w.Do(hostb, vm.ID, hypervisor.Forget{Outdated: true})
	backendtest.Bare(t, w.hosts)
	start(hostb, boot+9, "booted")
	w.ends(hostb, vm.ID)
}

// What the guest does not see may be another thing at the target.
func TestTheTargetMayDiffer(t *testing.T) {
	for _, cold := range []bool{false, true} {
		t.Run(fmt.Sprint("cold ", cold), func(t *testing.T) {
			w := newTrial(t, func(c *libvirt.Config) {
				c.Rewrite = func(target name, xml string) (string, error) {
					if target != hostb {
						return "", fmt.Errorf("the target is %s", target)
					}
					return domxml.Change(xml, domxml.Changes{Nodes: []int{0}})
				}
			})
			here, there := "/var/lib/libvirt/here.raw", "/var/lib/libvirt/there.raw"
			for n, path := range map[name]string{hosta: here, hostb: there} {
				outside := w.Outside(string(n), path)
				backendtest.Image(t, "create", "-f", "raw", outside, "1M")
				t.Cleanup(func() { os.Remove(outside) })
			}
			vm := backendtest.WithDisks(w.vm(traveller, calm),
				hypervisor.Disk{Name: "data", Path: here, Size: mib, ReadOnly: true})
			w.start(hosta, vm)
			if cold {
				w.Do(hosta, vm.ID, hypervisor.Kill{})
			}
			disk := vm.Hardware.Disks[0]
			disk.Path = there
			other := backendtest.WithDisks(vm, disk)
			other.Hardware.Pins = [][]int{{1}}
			address := w.receive("job", other)
			if err := w.migrate("job", vm.ID, address, transferOptions{}); err != nil {
				t.Fatal(err)
			}
			w.Until(hosta, "job", hypervisor.JobSucceeded)
			if !cold {
				w.sound(hostb, vm.ID)
				pins := w.virsh(hostb, "vcpupin", domainOf(vm.ID), "0")
				if !strings.HasSuffix(pins, " 1") {
					t.Errorf("its CPU is pinned to %q", pins)
				}
			}
			w.keeps(hostb, vm.ID, []string{"cpuset='1'", there, "nodeset='0'"})
			w.keeps(hostb, vm.ID, []string{"cpuset='1'", there, "nodeset='0'"}, "--inactive")
			if d := w.Domain(hostb, vm.ID); !d.VM.Equal(other) {
				t.Errorf("at the target it is %+v, want %+v", d.VM.Hardware, other.Hardware)
			}
			w.Do(hosta, vm.ID, moved("job", vm.ID, hostb))
			w.ends(hostb, vm.ID)
		})
	}
}

// A Rewrite that fails is told at once, and the VM stays as it was.
func TestARewriteThatFailsEndsTheJob(t *testing.T) {
	w := newTrial(t, func(c *libvirt.Config) {
		c.Rewrite = func(name, string) (string, error) { return "", fmt.Errorf("no such rule") }
	})
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	backendtest.Refused(t, w.send("job", vm.ID, transferOptions{}), hypervisor.Invalid,
		"no such rule")
	if p := w.Progress(hosta, "job"); p.Status != hypervisor.JobFailed || p.Error == "" {
		t.Errorf("the job is %v: %q", p.Status, p.Error)
	}
	w.stays("job", vm.ID)
	w.Do(hosta, vm.ID, hypervisor.Pause{}, hypervisor.Unpause{})
	w.ends(hosta, vm.ID)
}
