package fake

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// nameOf returns the name of a command or an adjustment.
func nameOf(v any) string { return strings.TrimPrefix(fmt.Sprintf("%T", v), "hypervisor.") }

// A command is to change the life of a VM.
type command struct {
	vm  hypervisor.VMID
	how hypervisor.Command
}

// command performs one command, and remembers what the answer to a Discard promises.
func (h *Host) command(c command) (none hypervisor.Address, err error) {
	err = h.do(c.vm, c.how)
	if d, ok := c.how.(hypervisor.Discard); ok && err == nil {
		h.jobs.Promise(&h.wire, c.vm, d.Job)
	}
	return "", err
}

// do performs one command.
func (h *Host) do(id hypervisor.VMID, c hypervisor.Command) error {
	if c, ok := c.(hypervisor.Start); ok {
		return h.startVM(id, c.VM)
	}
	if err := h.able(neededFor(c)); err != nil {
		return err
	}
	d := h.find(id)
	if d == nil {
		return h.absent(c)
	}
	switch c := c.(type) {
	case hypervisor.Resize:
		return d.resize(c.VM)
	case hypervisor.Snapshot:
		return d.snapshot(c.Disk, c.Name, false)
	case hypervisor.DeleteSnapshot:
		return d.snapshot(c.Disk, c.Name, false)
	case hypervisor.RevertSnapshot:
		return d.snapshot(c.Disk, c.Name, true)
	case hypervisor.AttachDisk:
		return d.attach(c.Disk)
	case hypervisor.DetachDisk:
		return d.detach(c.Name)
	case hypervisor.MoveDisk:
		return d.moveDisk(c)
	case hypervisor.SwitchDisk:
		return d.switchDisk(c.Disk)
	case hypervisor.EndDiskMove:
		return d.endDiskMove(c)
	case hypervisor.MeasureDirtyRate:
		return d.measure(c.For)
	case hypervisor.Forget:
		return d.undefine()
	case hypervisor.Stop:
		return d.stop(c.Grace)
	case hypervisor.Kill:
		return d.kill()
	case hypervisor.Reboot:
		return d.reboot()
	case hypervisor.Pause:
		return d.pause()
	case hypervisor.Unpause:
		return d.unpause()
	case hypervisor.Activate:
		return d.activate(c)
	case hypervisor.Discard:
		return d.discard(c)
	case hypervisor.Resume:
		return d.resume(c)
	case hypervisor.Abandon:
		return d.abandon(c)
	case hypervisor.Release:
		return d.release(c)
	}
	return refuse(hypervisor.Unsupported, "%s", nameOf(c))
}

// absent answers a command on a VM that the host does not know. What a Discard,
// a Forget or a Release asks for is then so already, unless the job has run here.
func (h *Host) absent(c hypervisor.Command) error {
	switch c := c.(type) {
	case hypervisor.Discard:
		if t := h.jobs[c.Job]; t != nil && t.To == &h.wire && t.Ran() {
			return refuse(hypervisor.Conflict, "the VM ran here and is gone")
		}
		return nil
	case hypervisor.Forget:
		return nil
	case hypervisor.Release:
		if c.Moved.Proof == hypervisor.NoProof {
			return refuse(hypervisor.Invalid, "no evidence that the VM has moved")
		}
		return nil
	case nil:
		return refuse(hypervisor.Invalid, "no command")
	}
	return refuse(hypervisor.NotFound, "no such VM")
}

func (d *domain) conflict() error { return refuse(hypervisor.Conflict, "it is %v", d.State) }

// startVM runs a VM from its disks. Whether it runs elsewhere a hypervisor cannot know.
func (h *Host) startVM(id hypervisor.VMID, vm hypervisor.VM) error {
	d, vm := h.find(id), vm.Started()
	switch {
	case vm.ID != id:
		return refuse(hypervisor.Invalid, "the VM's name is %q", vm.ID)
	case d != nil && (d.State == hypervisor.Starting || d.State == hypervisor.Running ||
		d.State == hypervisor.Rebooting):
		return nil
	case d != nil && occupies(d.State):
		return d.conflict()
	case d != nil && !d.startsWith(vm):
		return refuse(hypervisor.Conflict, "the move of disk %s to %s is %s, and that is not the image to start from",
			d.moving.Disk, d.moving.To, d.moving.Phase)
	}
	if err := h.admit(vm); err != nil {
		return err
	}
	if d == nil {
		d = h.network.define(h, vm, hypervisor.Starting)
	} else {
		d.keepDisk()
		d.VM, d.Unresolved = d.machine.as(vm), false
		d.Become(hypervisor.Starting)
	}
	d.defined = true
	d.after(h.network.model.BootTime, func() { d.Become(hypervisor.Running) })
	return nil
}

// after sets what ends the present state, unless another state comes first.
func (d *domain) after(wait time.Duration, then func()) {
	d.timer = d.host.network.world.In(wait, then)
}

// stop asks the guest to shut down. A second Stop may shorten the grace.
func (d *domain) stop(grace time.Duration) error {
	f := d.host.network
	switch d.State {
	case hypervisor.Shutoff, hypervisor.Crashed:
		return nil
	case hypervisor.Running, hypervisor.Starting, hypervisor.Rebooting:
		d.Become(hypervisor.Stopping)
		d.after(min(max(0, grace), f.model.ShutdownTime), d.shutOff)
	case hypervisor.Stopping:
		if at := laterOf(f.world.Now, max(0, grace)); at < d.timer.At {
			f.world.Agenda.Arm(d.timer, at)
		}
	default:
		return d.conflict()
	}
	return nil
}

// kill stops the VM now. Incoming domains are discarded and stopped sources
// released, never killed: they may be the last good copy.
func (d *domain) kill() error {
	switch {
	case d.State.Rests():
		return nil
	case d.State.Executes() || d.State == hypervisor.Paused:
		d.shutOff()
		return nil
	}
	return d.conflict()
}

// shutOff ends the guest, and with it the migration that it takes part in.
func (d *domain) shutOff() {
	d.Become(hypervisor.Shutoff)
	if d.transfer != nil {
		d.transfer.Lose(d, "the guest was shut down")
	}
}

func (d *domain) reboot() error {
	switch d.State {
	case hypervisor.Rebooting:
		return nil
	case hypervisor.Running:
		m := d.host.network.model
		d.Become(hypervisor.Rebooting)
		d.after(laterOf(m.ShutdownTime, m.BootTime), func() { d.Become(hypervisor.Running) })
		return nil
	}
	return d.conflict()
}

// pause stops the guest's CPUs. A guest that a migration had paused then stays so.
func (d *domain) pause() error {
	if d.State != hypervisor.Running && d.State != hypervisor.Paused {
		return d.conflict()
	}
	if d.State == hypervisor.Running {
		d.Become(hypervisor.Paused)
	}
	if t := d.sending(); t != nil {
		t.Paused()
	}
	return nil
}

func (d *domain) unpause() error {
	switch d.State {
	case hypervisor.Running:
	case hypervisor.Paused:
		d.Become(hypervisor.Running)
		if t := d.sending(); t != nil {
			t.Unpaused()
		}
	default:
		return d.conflict()
	}
	return nil
}
