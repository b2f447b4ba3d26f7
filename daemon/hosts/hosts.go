// Package hosts opens what runs the VMs of a host, for its agent.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// The backends.
const (
	QMP     = "qmp"
	Libvirt = "libvirt"
)

// A Config says what runs the VMs of a host. A zero field takes the backend's default.
type Config struct {
	Name    hypervisor.HostName
	Backend string // QMP or Libvirt
	Dir     string // private to the host
	Locks   string // of all hosts on the machine; "" is the machine's own directory for that

	URI  string // libvirt's, for this process
	Peer string // libvirt's, for other hosts

	Address     string // IP where other hosts reach QEMU's; "" is this machine only
	Port        int
	QEMU        string
	Accelerator string

	Memory hypervisor.Bytes
	CPUs   int
	Link   hypervisor.Bandwidth
	// Changed is told that a VM has changed.
	Changed func(hypervisor.VMID)
}

// A Host runs VMs, and somebody has to close it; the VMs run on.
type Host interface {
	hypervisor.Hypervisor
	io.Closer
}

// Check says everything that is wrong with c, whatever the host.
func (c *Config) Check() error {
	var bad []error
	if c.Name == "" {
		bad = append(bad, errors.New("--host must be given: the host's name in the cluster"))
	}
	if c.Dir == "" {
		bad = append(bad, errors.New("--dir must be given: a private directory of the host"))
	}
	if c.Backend != QMP && c.Backend != Libvirt {
		bad = append(bad, fmt.Errorf("--backend: %q is none: use qmp or libvirt", c.Backend))
	}
	if c.Backend == QMP && c.URI+c.Peer != "" {
		bad = append(bad, errors.New("--uri and --peer are libvirt's: say --backend libvirt"))
	}
	if c.Backend == Libvirt && c.Address+c.QEMU+c.Accelerator != "" {
		bad = append(bad, errors.New("--address, --qemu and --accelerator are for --backend qmp"))
	}
	return errors.Join(bad...)
}

// Open opens a host. The error is an *hypervisor.Error.
func Open(ctx context.Context, c Config) (Host, error) {
	if c.Backend == QMP {
		return openQMP(ctx, c)
	}
	h, err := libvirt.New(ctx, libvirt.Config{Name: c.Name, URI: c.URI, Peer: c.Peer, Dir: c.Dir,
		Memory: c.Memory, CPUs: c.CPUs, Link: c.Link, Changed: c.Changed})
	if err != nil {
		return nil, err
	}
	return h, nil
}
