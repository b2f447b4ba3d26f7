//go:build linux && libvirt_dlopen

package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// A Host is the VMs of one libvirtd.
type Host struct {
	node     *node
	link     hypervisor.Bandwidth
	strict   bool
	software string
	able     hypervisor.Abilities
	end      context.CancelFunc
	consoles backend.Consoles
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// New connects to a libvirtd, finds what is there, and goes on with what is under
// way. The error is an *[hypervisor.Error]: Conflict when another process owns the
// directory, Unsupported when libvirt or QEMU is too old or not there, Transient when
// libvirtd does not answer, otherwise Invalid.
func New(ctx context.Context, config Config) (*Host, error) {
	h, err := open(ctx, config)
	if err == nil {
		return h, nil
	}
	return nil, backend.NotOpened(config.Name, err, backend.KindOf)
}

func open(ctx context.Context, config Config) (*Host, error) {
	c, err := config.complete()
	if err != nil {
		return nil, err
	}
	j, err := openJournal(c.Dir)
	if err != nil {
		return nil, err
	}
	n := c.node(j)
	h := &Host{node: n, link: c.Link, strict: c.Strict}
	n.Life, h.end = context.WithCancel(context.Background())
	n.Conn, err = conn.Open(ctx, conn.Config{URI: c.URI, Timeout: c.Timeout,
		KeepAliveInterval: c.KeepAlive, Events: n.HandleEvent, Connected: n.Reborn})
	if err == nil {
		err = h.survey(ctx, c)
	}
	if err == nil {
		err = n.Open()
	}
	if err == nil {
		err = n.FindBarred(ctx)
	}
	if err == nil {
		err = n.DisableAutostarts(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	n.Running.Add(1)
	go n.Sweep(n.Life)
	n.TriggerAll()
	return h, nil
}

// node returns what the domains of the host share.
func (c *Config) node(j *journal) *node {
	n := &node{Namespace: c.Namespace,
		Settings: domxml.Settings{Type: c.Accelerator, Namespace: c.Namespace, DiskDir: c.DiskDir},
		Peer:     c.Peer, DebugDir: c.DebugDir, Timeout: c.Timeout, Grace: c.Grace, TombstoneTTL: c.TombstoneTTL,
		Direct: c.Direct, TLS: c.TLS, Rewrite: c.Rewrite, Translate: c.Reach, Journal: j}
	n.Name, n.Memory, n.CPUs, n.Changed = c.Name, c.Memory, c.CPUs, c.Changed
	n.Kind, n.New, n.Jobs = backend.KindOf, n.place, j
	return n
}

// survey asks libvirt what the host is.
func (h *Host) survey(ctx context.Context, c Config) error {
	type found struct {
		kvm      bool
		unfit    string
		memory   hypervisor.Bytes
		cpus     int
		software string
		lib      uint32
		qemu     uint32
	}
	f, err := conn.Ask(ctx, h.node.Conn, func(c *conn.Connect) (found, error) {
		info, err := c.GetNodeInfo()
		if err != nil {
			return found{}, err
		}
		offer, errKVM := c.GetDomainCapabilities("", "x86_64", "", domxml.KVM, 0)
		lib, errLib := c.GetLibVersion()
		qemu, errQEMU := c.GetVersion()
		return found{errKVM == nil, domxml.Unfit(offer),
				hypervisor.Bytes(info.Memory) * hypervisor.KiB, int(info.Cpus),
				fmt.Sprintf("libvirt %s, QEMU %s", version(uint64(lib)), version(uint64(qemu))),
				lib, qemu},
			errors.Join(errLib, errQEMU)
	})
	if err != nil {
		return err
	}
	n := h.node
	n.Memory, n.CPUs = cmp.Or(n.Memory, f.memory), cmp.Or(n.CPUs, f.cpus)
	n.Libvirt, n.QEMU = f.lib, f.qemu
	kind := domxml.QEMU
	if f.kvm {
		kind = domxml.KVM
	}
	if c.Accelerator == domxml.KVM && !f.kvm {
		return backend.Errorf(hypervisor.Unsupported, "KVM does not work on %s: make it work, or "+
			"use qemu", c.Name)
	}
	n.Settings.Type, n.Settings.Unfit = cmp.Or(n.Settings.Type, kind), f.unfit
	h.software, h.able = f.software+", "+n.Settings.Type, n.able()
	return nil
}

// version is a version as libvirt counts it: a million for each major one.
func version(v uint64) string {
	return fmt.Sprintf("%d.%d.%d", v/1_000_000, v/1000%1000, v%1000)
}

// Close lets go of everything and returns when nothing of ours runs any more. The
// VMs, and migrations that libvirt leads, go on.
func (h *Host) Close() error {
	h.end()
	h.node.Close()
	err := h.node.Part()
	if h.node.Conn != nil { // migrations that are abandoned libvirt leads to their end
		if left := h.node.Conn.Close(); !errors.Is(left, hypervisor.Unknown) {
			err = errors.Join(err, left)
		}
	}
	return errors.Join(err, h.node.Journal.Close())
}

// Host answers capacity and abilities.
func (h *Host) Host(ctx context.Context) (hypervisor.Host, error) {
	n := h.node
	if err := n.CheckContext(ctx, "Host", ""); err != nil {
		return hypervisor.Host{}, err
	}
	return hypervisor.Host{Name: n.Name, Memory: n.Memory, CPUs: n.CPUs, Link: h.link,
		Abilities: h.able, Software: h.software}, nil
}

// Domains lists what the host knows, ordered by VM: all domains of its libvirtd,
// of any client, and VMs that are expected or have left something behind.
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := h.node.CheckContext(ctx, "Domains", ""); err != nil {
		return nil, err
	}
	list, err := h.node.Domains(ctx)
	return list, h.node.Explain("Domains", "", err)
}

// Domain answers one VM. It answers Transient when libvirtd does not answer.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	none := hypervisor.Domain{VM: hypervisor.VM{ID: vm}}
	if err := h.node.CheckContext(ctx, "Domain", vm); err != nil {
		return none, err
	}
	d, err := h.node.Spot(vm)
	if err != nil {
		return none, nil // no domain can have that name
	}
	answer, err := d.Answer(ctx)
	if err == nil && answer.State == hypervisor.Absent {
		err = d.Renamed(ctx)
	}
	return answer, h.node.Explain("Domain", vm, err)
}

// Receive opens a target. It answers Conflict for a VM that the host has already and
// for a job that it was told to discard, NoRoom when the VM does not fit, Invalid with
// an *[hypervisor.Refusal] when the host lacks something for it.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	in.Hold = in.Hold || h.strict
	var address hypervisor.Address
	err := h.change(ctx, "Receive", in.VM.ID, func(d *domain) (err error) {
		address, err = receive(ctx, d, in)
		return err
	})
	return address, err
}

// Migrate begins to send a VM. It answers Conflict with an *[hypervisor.Refusal] for a
// VM that cannot go there, before anything has moved, Conflict for one that cannot be
// sent now, and Transient when the target's libvirtd cannot be asked.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	return h.change(ctx, "Migrate", out.VM, func(d *domain) error {
		return migrate(ctx, d, out)
	})
}

// Progress answers how the job goes.
func (h *Host) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	if err := h.node.CheckContext(ctx, "Progress", ""); err != nil {
		return hypervisor.Progress{}, err
	}
	p, err := jobProgress(ctx, h.node, job)
	return p, h.node.Explain("Progress", h.node.VMOf(job), err)
}

// Adjust changes a job that this host sends.
func (h *Host) Adjust(ctx context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	err := h.node.Adjust(ctx, job, a, func(d *domain) error { return adjust(ctx, d, job, a) })
	if vm := h.node.VMOf(job); vm != "" {
		h.node.Changed(vm)
	}
	return err
}

// Do changes the life of one VM.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	return h.change(ctx, backend.OpName(c), vm, func(d *domain) error {
		return command(ctx, d, c)
	})
}

// change changes a VM under its domain's lock.
func (h *Host) change(ctx context.Context, op string, vm hypervisor.VMID,
	act func(*domain) error) error {
	defer h.node.Changed(vm)
	return h.node.Change(ctx, op, vm, act)
}

// DebugSocket returns the socket on the host on which the debug port of a VM is heard.
func (h *Host) DebugSocket(vm hypervisor.VMID) string {
	name, err := domxml.NameOf(h.node.Namespace, vm)
	if err != nil {
		return ""
	}
	return h.node.DebugSocket(name)
}
