//go:build linux

package qemu

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/digitalocean/go-qemu/qmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Launcher is how one host runs QEMUs.
type Launcher struct {
	Path     string // of the program
	Features Features
	Timeout  time.Duration                            // how long a QEMU may take to answer
	TLS      *TLS                                     // how to encrypt; nil is not at all
	Passed   bool                                     // QEMU is given connections, and makes none
	Monitor  func(socket string) (qmp.Monitor, error) // nil is Dial's
	Args     []string                                 // added to those of every QEMU
	// Dir and Disks return the private directories of a VM: of its sockets and
	// logs, and of its local disks.
	Dir, Disks func(hypervisor.VMID) string
	// Host is whose QEMUs these are, and Locks the directory of the locks that they hold: see
	// [Launcher.Launch].
	Host  hypervisor.HostName
	Locks string
}

// TLS is how migration traffic is encrypted. Both hosts need it.
type TLS struct {
	// Dir has ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem and
	// client-key.pem, or, with PSK, keys.psk.
	// Source: QEMU 7.2 docs/system/tls.rst.
	Dir string
	// PSK uses pre-shared keys instead of certificates.
	PSK bool
	// Hostname is the name that certificates of targets carry. Default: the one
	// that the source connects to.
	Hostname string
}

// An Instance is a QEMU that runs, or ran, a VM.
type Instance struct {
	QEMU
	Client Client
	Proc   *Process
	Events *Subscription

	launcher *Launcher
	tls      *TLS                // as Encrypt has set it
	capable  map[Capability]bool // as Configure has set them
	life     context.Context     // ends when we let go
	end      context.CancelFunc
}

// Context ends when we let go of the process.
func (in *Instance) Context() context.Context { return in.life }

// Settings are how this host runs a VM.
func (l *Launcher) Settings(vm hypervisor.VMID) Settings {
	return Settings{
		Dir: l.Dir(vm), Accelerator: l.Features.Accelerator, CPU: l.Features.CPU, Console: true,
		LocalDisk: func(name string) string { return filepath.Join(l.Disks(vm), name) },
		Extra:     l.Args,
	}
}

// DiskPath returns where the image of a disk is on this host.
func (l *Launcher) DiskPath(vm hypervisor.VMID, d hypervisor.Disk) string {
	if d.Local() {
		return l.Settings(vm).LocalDisk(d.Name)
	}
	return d.Path
}

// Resolved returns a VM whose machine type has its full name: another version of
// QEMU takes an alias for another machine.
func (l *Launcher) Resolved(vm hypervisor.VM) hypervisor.VM {
	hw := hypervisor.Hardware{}
	if vm.Hardware != nil {
		hw = *vm.Hardware
	}
	if hw.Machine == "" {
		hw.Machine = "q35"
	}
	if full, known := l.Features.Machine(hw.Machine); known {
		hw.Machine = full
	}
	vm.Hardware = &hw
	return vm
}

// LogFile is where what a QEMU says is kept.
func LogFile(s Settings) string { return filepath.Join(s.Dir, "qemu.log") }

// Launch starts a QEMU whose guest stands. It answers Invalid with QEMU's own
// words when it does not take the VM, and Conflict when another QEMU runs it on this machine:
// see [Launcher.alone].
func (l *Launcher) Launch(ctx context.Context, vm hypervisor.VM, incoming bool) (*Instance, error) {
	s := l.Settings(vm.ID)
	s.Incoming = incoming
	vm = l.Resolved(vm)
	args, err := Args(vm, s)
	if err != nil {
		return nil, Refuse(hypervisor.Invalid, "%w", err)
	}
	lock, err := l.alone(ctx, vm.ID, incoming)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // it is QEMU's by then
	if err := Clean(s); err != nil {
		return nil, Refuse(hypervisor.Transient, "remove what an earlier QEMU left: %v", err)
	}
	if err := privateLog(s.ConsoleLog()); err != nil {
		return nil, Refuse(hypervisor.Transient, "make the log of its console: %v", err)
	}
	proc, err := Start(Spec{Path: l.Path, Args: args, Dir: s.Dir,
		Log: LogFile(s), Env: l.environment(), Lock: lock})
	if err != nil {
		return nil, Refuse(hypervisor.Transient, "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, l.startLimit(vm))
	defer cancel()
	in, err := l.connect(ctx, s, proc)
	if err == nil {
		return in, nil
	}
	if proc.Ended() {
		err = l.stillborn(proc, s)
	}
	_ = proc.Kill()
	ended, stop := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer stop()
	_ = proc.Wait(ended) // what was killed ends, but not while the storage that it opens hangs
	return nil, errors.Join(err, proc.Close(), Clean(s))
}

// stillborn says why a QEMU has ended before it answered. One that was killed, as for want of memory or of
// huge pages, says nothing against its VM. One that crashed does so each time.
func (l *Launcher) stillborn(proc *Process, s Settings) error {
	_, signal, _ := proc.Exit()
	switch signal {
	case 0:
		return Refuse(hypervisor.Invalid, "QEMU did not start: %s", LastWords(s))
	case syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGILL, syscall.SIGFPE:
		return Refuse(hypervisor.Invalid, "QEMU did not start: it crashed (%v): %s", signal, LastWords(s))
	}
	return Refuse(hypervisor.Transient, "QEMU was ended by signal %d (%v) while it started: see the "+
		"kernel's log; its last words: %s", int(signal), signal, LastWords(s))
}

// starts is how long a QEMU without memory may take from its start until it answers.
const starts = 30 * time.Second

// startLimit is how long a QEMU may take from its start until it answers. One that begins is slower
// than one that runs: it loads libraries and firmware, with many others when a host has just
// booted, and it may touch all memory of its guest before it answers.
// Source: libvirt 9.0 src/qemu/qemu_process.c (qemuProcessWaitForMonitor, qemuConnectMonitor: 30
// seconds, and one more for each GiB of memory).
func (l *Launcher) startLimit(vm hypervisor.VM) time.Duration {
	return max(l.Timeout, starts) + time.Duration(vm.Memory/hypervisor.GiB)*time.Second
}

// privateLog makes a file that only we can read: QEMU would let all users.
func privateLog(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Clean removes the sockets and the log of a QEMU that has ended.
func Clean(s Settings) error {
	var bad []error
	for _, path := range []string{s.QMP(), s.PIDFile(), s.ConsoleSocket(), s.DebugSocket(),
		LogFile(s), MigrationSocket(s), disksSocket(s)} {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// LastWords returns the end of what a QEMU said on its standard error.
func LastWords(s Settings) string {
	const most = 2000
	f, err := os.Open(LogFile(s))
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
func (l *Launcher) connect(ctx context.Context, s Settings, proc *Process,
) (*Instance, error) {
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
		client, err := l.dialMonitor(ended, s.QMP())
		if err == nil {
			return l.instance(client, proc), nil
		}
		select {
		case <-ended.Done():
			return nil, Refuse(hypervisor.Transient, "its QEMU does not answer: %v", err)
		case <-time.After(2 * time.Millisecond): // QEMU makes the socket when it can serve it
		}
	}
}

func (l *Launcher) dialMonitor(ctx context.Context, socket string) (Client, error) {
	c := Config{Path: socket, Timeout: l.Timeout}
	if l.Monitor == nil {
		return Dial(ctx, c)
	}
	if _, err := os.Stat(socket); err != nil {
		return nil, err
	}
	m, err := l.Monitor(socket)
	if err != nil {
		return nil, err
	}
	if err := m.Connect(); err != nil {
		return nil, err
	}
	return Adapt(m, c)
}

// Yank closes the connections of a migration, as the loss of its link would. QEMU does that
// even while it does nothing else, but for one that was stopped itself: it is not waited for.
// Source: QEMU 7.2 qapi/yank.json.
func (in *Instance) Yank(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(briefly, in.launcher.Timeout))
	defer cancel()
	return in.Client.ExecuteOOB(ctx, "yank", map[string]any{
		"instances": []map[string]string{{"type": "migration"}}}, nil)
}

// Ended reports whether the process has ended.
func (in *Instance) Ended() bool { return in.Proc.Ended() }

// Dies reports whether a QEMU that failed to answer has ended: its monitor breaks
// a moment before.
func (in *Instance) Dies(ctx context.Context) bool {
	if in.Client.Err() == nil {
		return in.Proc.Ended()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return in.Proc.Wait(ctx) == nil
}

// Kill ends the process and waits until it has ended. It answers Transient for one that its kernel
// does not let end, while its storage hangs for example.
func (in *Instance) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, in.launcher.Timeout)
	defer cancel()
	if err := in.Proc.Kill(); err != nil && !errors.Is(err, ErrGone) {
		return Refuse(hypervisor.Transient, "end its QEMU: %w", err)
	}
	if err := in.Proc.Wait(ctx); err != nil {
		return Refuse(hypervisor.Transient,
			"its QEMU was killed and has not ended yet: %w", err)
	}
	return nil
}

// LetGo ends what we hold of a QEMU, and does nothing to it.
func (in *Instance) LetGo() {
	in.end()
	_ = in.Client.Close() // QEMU does not mind
	_ = in.Proc.Close()
}

// Pin binds the threads of the virtual CPUs.
func (in *Instance) Pin(ctx context.Context, vm hypervisor.VM) error {
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
		if err := in.Proc.Pin(c.Thread, vm.Hardware.Pins[c.Index]); err != nil {
			return Refuse(hypervisor.Invalid, "pin CPU %d: %v", c.Index, err)
		}
	}
	return nil
}

// Mirrors returns the copies of local disks that are being made, those that QEMU
// does not know any more included.
func (in *Instance) Mirrors(ctx context.Context, vm hypervisor.VM) ([]Job, error) {
	local := vm.LocalDisks()
	if len(local) == 0 {
		return nil, nil
	}
	known, err := in.QueryJobs(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Job, 0, len(local))
	for _, d := range local {
		m := Job{ID: mirrorID(d.Name), Status: JobNull}
		for _, k := range known {
			if k.ID == m.ID {
				m = k
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// mirrorID returns what the copy of a local disk is called in QEMU.
func mirrorID(disk string) string { return "mirror." + NodeName(disk) }

// MigrationSocket is where an incoming QEMU listens for memory, between hosts on
// one machine.
func MigrationSocket(s Settings) string { return filepath.Join(s.Dir, "migrate.sock") }

// disksSocket is where it listens for local disks.
func disksSocket(s Settings) string { return filepath.Join(s.Dir, "disks.sock") }

// briefly is how long a QEMU that is taken over may take to greet, or one that has hung to
// close a connection. One that hangs is reached later, by its worker.
const briefly = time.Second

// Adopt takes over a QEMU that an earlier process of ours has started. One that
// does not answer is not waited for.
func (l *Launcher) Adopt(ctx context.Context, vm hypervisor.VMID, proc *Process,
) (*Instance, error) {
	socket := l.Settings(vm).QMP()
	ctx, cancel := context.WithTimeout(ctx, min(briefly, l.Timeout))
	defer cancel()
	client, err := l.dialMonitor(ctx, socket)
	if err != nil { // it hangs, or just begins: its worker tries again
		client, err = Prepare(Config{Path: socket, Timeout: l.Timeout})
		if err != nil {
			return nil, err
		}
	}
	return l.instance(client, proc), nil
}

func (l *Launcher) instance(client Client, proc *Process) *Instance {
	in := &Instance{QEMU: QEMU{Conn: client}, Client: client, Proc: proc,
		Events: client.Subscribe(), launcher: l}
	in.life, in.end = context.WithCancel(context.Background())
	return in
}
