package qmp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/machine"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/process"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// An instance is a QEMU that runs, or ran, a VM.
type instance struct {
	qapi.QEMU
	client monitor.Client
	proc   *process.Process
	events *monitor.Subscription
	gone   chan struct{} // closed when nobody watches it any more
}

// settings are how this host runs a VM.
func (h *Host) settings(vm hypervisor.VMID) machine.Settings {
	return machine.Settings{
		Dir: h.journal.Dir(vm), Accelerator: h.features.Accelerator, CPU: h.features.CPU,
		Console:   true,
		LocalDisk: func(name string) string { return filepath.Join(h.journal.Disks(vm), name) },
		Extra:     h.config.Args,
	}
}

// resolved returns a VM whose machine type has its full name: another version of
// QEMU takes an alias for another machine.
func (h *Host) resolved(vm hypervisor.VM) hypervisor.VM {
	hw := hypervisor.Hardware{}
	if vm.Hardware != nil {
		hw = *vm.Hardware
	}
	if hw.Machine == "" {
		hw.Machine = "q35"
	}
	if full, known := h.features.Machine(hw.Machine); known {
		hw.Machine = full
	}
	vm.Hardware = &hw
	return vm
}

func logFile(s machine.Settings) string { return filepath.Join(s.Dir, "qemu.log") }

// launch starts a QEMU whose guest stands. It answers Invalid with QEMU's own
// words when it does not take the VM.
func (h *Host) launch(ctx context.Context, vm hypervisor.VM, incoming bool) (*instance, error) {
	s := h.settings(vm.ID)
	s.Incoming = incoming
	vm = h.resolved(vm)
	args, err := machine.Args(vm, s)
	if err != nil {
		return nil, refuse(hypervisor.Invalid, "%w", err)
	}
	if err := clean(s); err != nil {
		return nil, refuse(hypervisor.Transient, "remove what an earlier QEMU left: %v", err)
	}
	proc, err := process.Start(process.Spec{Path: h.config.QEMU, Args: args, Dir: s.Dir,
		Log: logFile(s)})
	if err != nil {
		return nil, refuse(hypervisor.Transient, "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	in, err := h.connect(ctx, s, proc)
	if err == nil {
		return in, nil
	}
	if proc.Ended() {
		err = refuse(hypervisor.Invalid, "QEMU did not start: %s", lastWords(s))
	}
	_ = proc.Kill()
	<-proc.Done() // a child that was killed ends
	return nil, errors.Join(err, proc.Close(), clean(s))
}

// clean removes the sockets and the log of a QEMU that has ended.
func clean(s machine.Settings) error {
	var bad []error
	for _, path := range []string{s.QMP(), s.PIDFile(), s.ConsoleSocket(), s.DebugSocket(),
		logFile(s), migrationSocket(s), disksSocket(s)} {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// lastWords returns the end of what a QEMU said on its standard error.
func lastWords(s machine.Settings) string {
	const most = 2000
	f, err := os.Open(logFile(s))
	if err != nil {
		return "it said nothing"
	}
	defer f.Close()
	if i, err := f.Stat(); err == nil && i.Size() > most {
		_, _ = f.Seek(-most, 2) // otherwise more is read than is wanted
	}
	text := make([]byte, most)
	n, _ := f.Read(text)
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:n]), "?")), " ")
	if words == "" {
		return "it said nothing"
	}
	return words
}

// connect reaches the monitor of a process, as soon as it listens.
func (h *Host) connect(ctx context.Context, s machine.Settings, proc *process.Process,
) (*instance, error) {
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-proc.Done():
			cancel()
		case <-stop:
		}
	}()
	for {
		client, err := h.dialMonitor(ended, s.QMP())
		if err == nil {
			return &instance{QEMU: qapi.QEMU{Conn: client}, client: client, proc: proc,
				events: client.Subscribe(), gone: make(chan struct{})}, nil
		}
		select {
		case <-ended.Done():
			return nil, refuse(hypervisor.Transient, "its QEMU does not answer: %v", err)
		case <-time.After(2 * time.Millisecond): // QEMU makes the socket when it can serve it
		}
	}
}

func (h *Host) dialMonitor(ctx context.Context, socket string) (monitor.Client, error) {
	c := monitor.Config{Path: socket, Timeout: h.config.Timeout}
	if h.config.Monitor == nil {
		return monitor.Dial(ctx, c)
	}
	if _, err := os.Stat(socket); err != nil {
		return nil, err
	}
	m, err := h.config.Monitor(socket)
	if err != nil {
		return nil, err
	}
	if err := m.Connect(); err != nil {
		return nil, err
	}
	return monitor.Adapt(m, c)
}

// ended reports whether the process has ended.
func (in *instance) ended(context.Context) bool { return in.proc.Ended() }

// dies reports whether a QEMU that failed to answer has ended: its monitor breaks
// a moment before.
func (in *instance) dies(ctx context.Context) bool {
	if in.client.Err() == nil {
		return in.proc.Ended()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return in.proc.Wait(ctx) == nil
}

// kill ends the process and waits until it has ended.
func (in *instance) kill(ctx context.Context) error {
	if err := in.proc.Kill(); err != nil && !errors.Is(err, process.ErrGone) {
		return refuse(hypervisor.Transient, "end its QEMU: %w", err)
	}
	if err := in.proc.Wait(ctx); err != nil {
		return refuse(hypervisor.Transient, "its QEMU was killed and has not ended yet: %w", err)
	}
	return nil
}

// letGo ends what we hold of a QEMU, and does nothing to it.
func (in *instance) letGo() {
	_ = in.client.Close() // QEMU does not mind
	_ = in.proc.Close()
}

// pin binds the threads of the virtual CPUs.
func (in *instance) pin(ctx context.Context, vm hypervisor.VM) error {
	if vm.Hardware == nil || len(vm.Hardware.Pins) == 0 {
		return nil
	}
	cpus, err := in.CPUs(ctx)
	if err != nil {
		return err
	}
	for _, c := range cpus {
		if c.Index >= len(vm.Hardware.Pins) {
			continue
		}
		if err := in.proc.Pin(c.Thread, vm.Hardware.Pins[c.Index]); err != nil {
			return refuse(hypervisor.Invalid, "pin CPU %d: %v", c.Index, err)
		}
	}
	return nil
}

// mirrors returns the copies of local disks that are being made, those that QEMU
// does not know any more included.
func (in *instance) mirrors(ctx context.Context, vm hypervisor.VM) ([]qapi.Job, error) {
	local := locals(vm)
	if len(local) == 0 {
		return nil, nil
	}
	known, err := in.QueryJobs(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]qapi.Job, 0, len(local))
	for _, d := range local {
		m := qapi.Job{ID: mirrorID(d.Name), Status: qapi.JobNull}
		for _, k := range known {
			if k.ID == m.ID {
				m = k
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// locals lists the disks that move with the VM.
func locals(vm hypervisor.VM) []hypervisor.Disk {
	if vm.Hardware == nil {
		return nil
	}
	var list []hypervisor.Disk
	for _, d := range vm.Hardware.Disks {
		if d.Local() {
			list = append(list, d)
		}
	}
	return list
}

func mirrorID(disk string) string { return "mirror." + machine.NodeName(disk) }

// migrationSocket and disksSocket are where an incoming QEMU listens for memory
// and for local disks, between hosts on one machine.
func migrationSocket(s machine.Settings) string { return filepath.Join(s.Dir, "migrate.sock") }
func disksSocket(s machine.Settings) string     { return filepath.Join(s.Dir, "disks.sock") }

// attach makes a QEMU the domain's, and begins to do what is due of it. The caller
// holds the turn.
func (d *domain) attach(in *instance) {
	d.mu.Lock()
	d.vm = in
	d.mu.Unlock()
	d.host.running.Go(func() { d.listen(in) })
	d.host.running.Go(func() { d.watch(in) })
}

// listen turns every event of a QEMU into a look at it.
func (d *domain) listen(in *instance) {
	ctx, cancel := context.WithCancel(d.host.life)
	defer cancel()
	stop := context.AfterFunc(ctx, in.events.Close)
	defer stop()
	for {
		_, err := in.events.Next(ctx)
		if _, gap := errors.AsType[*monitor.Gap](err); err != nil && !gap {
			return
		}
		d.changed()
	}
}

// watch does what is due, until the process has ended and is buried.
func (d *domain) watch(in *instance) {
	defer close(in.gone)
	for {
		wait := d.settle(d.host.life)
		if d.qemu() != in {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-d.kick:
		case <-in.proc.Done():
		case <-in.client.Done():
			d.reconnect(in)
		case <-timer.C:
		case <-d.host.life.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// reconnect reaches a QEMU again whose monitor was lost, if it lives.
func (d *domain) reconnect(in *instance) {
	if in.dies(d.host.life) {
		return
	}
	again, ok := in.client.(interface {
		ConnectContext(context.Context) error
	})
	if !ok || again.ConnectContext(d.host.life) != nil {
		select {
		case <-time.After(time.Second):
		case <-in.proc.Done():
		case <-d.host.life.Done():
		}
	}
}

// String names the process for people.
func (in *instance) String() string { return fmt.Sprintf("process %d", in.proc.Identity().PID) }
