//go:build !linux || !libvirt_dlopen

package libvirt

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A Host is the VMs of one libvirtd; in this build there is none, and every call
// answers Unsupported.
type Host struct {
	name hypervisor.HostName
	conn *conn.Conn
}

var _ hypervisor.Hypervisor = (*Host)(nil)

// New checks the Config, which answers Invalid, and then answers Unsupported: an
// *[hypervisor.Error] that says how to get a build that can do more.
func New(ctx context.Context, config Config) (*Host, error) {
	c, err := config.complete()
	if err != nil {
		err = backend.Errorf(hypervisor.Invalid, "%w", err)
	} else {
		_, err = conn.Open(ctx, conn.Config{URI: c.URI, Timeout: c.Timeout,
			KeepAliveInterval: c.KeepAlive})
	}
	return nil, (&Host{name: config.Name}).explain("New", "", err)
}

// Host answers Unsupported.
func (h *Host) Host(ctx context.Context) (hypervisor.Host, error) {
	return hypervisor.Host{}, h.refuse(ctx, "Host", "")
}

// Domains answers Unsupported.
func (h *Host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	return nil, h.refuse(ctx, "Domains", "")
}

// Domain answers Unsupported.
func (h *Host) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	return hypervisor.Domain{VM: hypervisor.VM{ID: vm}}, h.refuse(ctx, "Domain", vm)
}

// DisableAutostart answers Unsupported.
func (h *Host) DisableAutostart(ctx context.Context, vm hypervisor.VMID) error {
	return h.refuse(ctx, "DisableAutostart", vm)
}

// Autostarted answers Unsupported.
func (h *Host) Autostarted(ctx context.Context) ([]string, error) {
	return nil, h.refuse(ctx, "Autostarted", "")
}

// Receive answers Unsupported.
func (h *Host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	return "", h.refuse(ctx, "Receive", in.VM.ID)
}

// Migrate answers Unsupported.
func (h *Host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	return h.refuse(ctx, "Migrate", out.VM)
}

// Progress answers Unsupported.
func (h *Host) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	return hypervisor.Progress{Job: job}, h.refuse(ctx, "Progress", "")
}

// Adjust answers Unsupported.
func (h *Host) Adjust(ctx context.Context, _ hypervisor.JobID, a hypervisor.Adjustment) error {
	return h.refuse(ctx, backend.OpName(a), "")
}

// Do answers Unsupported.
func (h *Host) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	return h.refuse(ctx, backend.OpName(c), vm)
}

// Close has nothing to close.
func (*Host) Close() error { return nil }

// DebugSocket returns nothing.
func (*Host) DebugSocket(hypervisor.VMID) string { return "" }

// refuse is what every call answers: what the missing connection says.
func (h *Host) refuse(ctx context.Context, op string, vm hypervisor.VMID) error {
	return h.explain(op, vm, h.conn.Look(ctx, nil))
}

// explain completes an error with the operation, the VM and the host.
func (h *Host) explain(op string, vm hypervisor.VMID, err error) error {
	return &hypervisor.Error{Op: op, Host: h.name, VM: vm, Kind: backend.KindOf(err),
		Err: backend.Bare(err)}
}
