//go:build linux

package qmp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A Host runs the VMs of one machine.
type Host struct {
	node     *node
	link     hypervisor.Bandwidth
	server   *server
	end      context.CancelFunc
	consoles backend.Consoles
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// New opens the directory of a host, finds what runs, and goes on with it. The
// error is an *[hypervisor.Error]: Conflict when another process owns the
// directory, Unsupported when QEMU is too old or KVM does not work, otherwise
// Invalid.
func New(ctx context.Context, config Config) (*Host, error) {
	h, err := open(ctx, config)
	if err == nil {
		return h, nil
	}
	return nil, backend.NotOpened(config.Name, err, qemu.Classify)
}

func open(ctx context.Context, config Config) (*Host, error) {
	c, err := config.complete()
	if err != nil {
		return nil, err
	}
	features, err := c.probe(ctx)
	if err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	j, err := openJournal(c.Dir)
	if err != nil {
		return nil, err
	}
	h := &Host{node: c.node(features, j), link: c.Link}
	h.node.Boot = strings.TrimSpace(string(boot))
	h.node.Life, h.end = context.WithCancel(context.Background())
	h.locate(c)
	if err = h.node.Adopt(ctx); err == nil {
		err = h.listen(c) // a request before that is not refused, but not heard
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// probe asks QEMU what it can do here.
func (c *Config) probe(ctx context.Context) (qemu.Features, error) {
	var f qemu.Features
	var err error
	if c.features != nil {
		f = *c.features
	} else if f, err = qemu.Probe(ctx, c.QEMU); err != nil {
		return f, err
	}
	if err := f.Require(qemu.Oldest); err != nil {
		return f, qemu.Refuse(hypervisor.Unsupported, "%w", err)
	}
	switch {
	case c.Accelerator == qemu.TCG:
		f.Accelerator, f.CPU = qemu.TCG, ""
	case c.Accelerator == qemu.KVM && f.Accelerator != qemu.KVM:
		return f, qemu.Refuse(hypervisor.Unsupported,
			"KVM does not work here: %s: make it work, or use tcg", f.NoKVM)
	}
	return f, nil
}

// node returns what the domains of the host share.
func (c *Config) node(f qemu.Features, j *journal) *node {
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	n := &node{Listen: c.Listen, Timeout: c.Timeout, TargetTimeout: c.TargetTimeout, Dial: dial,
		Advertise: c.Advertise, Journal: j,
		QEMU: &qemu.Launcher{Path: c.QEMU, Features: f, Timeout: c.Timeout, TLS: (*qemu.TLS)(c.TLS),
			Passed: c.Dial != nil, Monitor: c.Monitor, Args: c.Args, Dir: j.Dir, Disks: j.Disks,
			Host: c.Name, Locks: c.Locks},
	}
	n.Name, n.Memory, n.CPUs, n.Changed = c.Name, c.Memory, c.CPUs, c.Changed
	n.Kind, n.Jobs = qemu.Classify, j
	n.New = func(vm hypervisor.VMID) (*domain, error) {
		return &domain{DomainLock: backend.NewDomainLock(), Node: n, ID: vm}, nil
	}
	return n
}

// place returns where this host listens.
func (c *Config) place() (network, address string) {
	if c.Listen != "" {
		return "tcp", net.JoinHostPort(c.Listen, strconv.Itoa(c.Port))
	}
	return "unix", filepath.Join(c.Dir, "handover.sock")
}

// locate says where other hosts find this one.
func (h *Host) locate(c Config) {
	network, address := c.place()
	kind, where, _ := strings.Cut(c.Advertise(network+":"+address), ":")
	h.node.Here = url.URL{Scheme: "qmp+unix", Path: where}
	if kind == "tcp" {
		h.node.Here = url.URL{Scheme: "qmp", Host: where, Path: "/"}
	}
}

// listen hears sources.
func (h *Host) listen(c Config) error {
	network, address := c.place()
	if err := os.Remove(address); network == "unix" && err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return err // what a dead process left: the directory is ours alone
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("listen for sources: %w", err)
	}
	h.server = serve(l, h.token, h.hear)
	return nil
}

// Close lets go of everything and returns when nothing of ours runs any more. The
// VMs run on.
func (h *Host) Close() error {
	h.end()
	var err error
	if h.server != nil {
		err = h.server.Close()
	}
	h.node.Close()
	return errors.Join(err, h.node.Journal.Close())
}

// Host answers capacity and abilities.
func (h *Host) Host(ctx context.Context) (hypervisor.Host, error) {
	n := h.node
	if err := n.CheckContext(ctx, "Host", ""); err != nil {
		return hypervisor.Host{}, err
	}
	return hypervisor.Host{Name: n.Name, Memory: n.Memory, CPUs: n.CPUs, Link: h.link,
		Abilities: n.QEMU.Abilities(), Software: n.QEMU.Features.Software()}, nil
}

// looksAtOnce bounds how many QEMUs are asked at the same time.
const looksAtOnce = 64

// Domains lists what the host knows, ordered by VM. Of a QEMU that does not answer
// it tells what was seen last.
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := h.node.CheckContext(ctx, "Domains", ""); err != nil {
		return nil, err
	}
	known := h.node.All()
	list := make([]hypervisor.Domain, len(known))
	var looks errgroup.Group
	looks.SetLimit(looksAtOnce)
	for i, d := range known {
		looks.Go(func() error {
			list[i], _ = d.Answer(ctx) // in doubt it is what was seen last
			return nil
		})
	}
	_ = looks.Wait() // none fails
	list = slices.DeleteFunc(list, func(d hypervisor.Domain) bool {
		return d.State == hypervisor.Absent
	})
	slices.SortFunc(list, func(a, b hypervisor.Domain) int { return cmp.Compare(a.VM.ID, b.VM.ID) })
	return list, nil
}

// Domain answers one VM. It answers Transient when its QEMU does not answer, and Conflict when a
// QEMU of this host runs the VM and the directory says nothing of it.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	none := hypervisor.Domain{VM: hypervisor.VM{ID: vm}}
	if err := h.node.CheckContext(ctx, "Domain", vm); err != nil {
		return none, err
	}
	for {
		answer := none
		if d := h.node.Find(vm); d != nil {
			var err error
			if answer, err = d.Answer(ctx); err != nil || d.Record() != nil {
				return answer, h.node.Explain("Domain", vm, qemu.Observing(err))
			}
		}
		err := h.node.QEMU.Unknown(ctx, vm)
		if d := h.node.Find(vm); err == nil || d == nil || d.Record() == nil {
			return answer, h.node.Explain("Domain", vm, err)
		} // it has been started or received here meanwhile: that is its QEMU
	}
}

// Receive opens a target. It answers Conflict for a VM that the host runs or
// keeps and for a job that it was told to discard, NoRoom when the VM does not
// fit, Invalid when QEMU does not take it.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	var address hypervisor.Address
	err := h.node.Change(ctx, "Receive", in.VM.ID, func(d *domain) (err error) {
		address, err = receive(ctx, d, in)
		return err
	})
	return address, err
}

// Migrate begins to send a VM. It answers Transient when the target's host cannot
// be reached, and Conflict for a VM that cannot be sent now.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	return h.node.Change(ctx, "Migrate", out.VM, func(d *domain) error {
		return migrate(ctx, d, out)
	})
}

// Progress answers how the job goes. The source's downtime ends when the target
// holds the complete state, the target's when the guest runs there.
func (h *Host) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	if err := h.node.CheckContext(ctx, "Progress", ""); err != nil {
		return hypervisor.Progress{}, err
	}
	p, err := progressOf(ctx, h.node, job)
	return p, h.node.Explain("Progress", h.node.VMOf(job), err)
}

// Adjust changes a job that this host sends.
func (h *Host) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	return h.node.Adjust(ctx, job, a, func(d *domain) error {
		return adjust(ctx, d, job, a)
	})
}

// Do changes the life of one VM.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	return h.node.Change(ctx, qemu.Name(c), vm, func(d *domain) error {
		return command(ctx, d, c)
	})
}

// A MonitorClient sends commands to the monitor of one QEMU. See [Host.Monitor].
type MonitorClient interface {
	// Execute carries a command out and decodes what it returns into reply, a pointer, unless that is
	// nil. Arguments are encoded as JSON; nil is none. An error says whether QEMU refused the command
	// or whether its answer was lost.
	Execute(ctx context.Context, command string, arguments, reply any) error
	// Done returns a channel that is closed when the present connection ends; Err then says why.
	Done() <-chan struct{}
	Err() error
}

// Monitor returns the connection to the monitor of a VM, for what this package
// does not offer. The caller must not change what this package
// manages: run state, migration, disks. It answers NotFound for a VM without a
// process.
func (h *Host) Monitor(vm hypervisor.VMID) (MonitorClient, error) {
	if d := h.node.Find(vm); d != nil {
		if q := d.Process(); q != nil && !q.Ended() {
			return q.Client, nil
		}
	}
	return nil, h.node.Explain("Monitor", vm, qemu.Refuse(hypervisor.NotFound, "no QEMU runs it"))
}

// Files are the sockets and logs of a VM on its host. They are there as long as
// the VM has a process.
type Files struct {
	Console    string // socket of the serial console
	ConsoleLog string // what the guest wrote there
	Debug      string // socket of Hardware.DebugPort
	Log        string // what QEMU said
}

// Files returns where the sockets and logs of a VM are.
func (h *Host) Files(vm hypervisor.VMID) Files {
	s := h.node.QEMU.Settings(vm)
	return Files{Console: s.ConsoleSocket(), ConsoleLog: s.ConsoleLog(), Debug: s.DebugSocket(),
		Log: qemu.LogFile(s)}
}

// token returns what a source of the job must know; "" is nothing.
func (h *Host) token(job hypervisor.JobID) string {
	if j := h.node.Job(job); j != nil && j.Role == backend.Target {
		return j.Token
	}
	return ""
}

// hear answers a source.
func (h *Host) hear(m *message) handoverAnswer {
	ctx, cancel := context.WithTimeout(h.node.Life, h.node.Timeout)
	defer cancel()
	var answer handoverAnswer
	d, release, err := h.node.Lock(ctx, m.VM)
	if err == nil {
		answer, err = hear(ctx, d, m)
		release()
	}
	if err != nil {
		return handoverAnswer{Refused: qemu.Text(err), Kind: qemu.Classify(err)}
	}
	return answer
}
