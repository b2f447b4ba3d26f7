package libvirt

import (
	"fmt"
	"path"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// Config configures a Host. A zero field takes the default it names.
type Config struct {
	// Name is the host's name in the cluster. It must be set.
	Name hypervisor.HostName
	// URI is libvirt's name of the connection to the host's libvirtd: qemu:///system,
	// qemu+unix:///system?socket=PATH, qemu+tcp://, qemu+tls:// or
	// qemu+ssh://HOST/system. Default: qemu:///system.
	URI string
	// Peer is how the libvirtd of another host connects to this one. Default:
	// qemu+tls://NAME/system.
	Peer string
	// Dir is a private directory for what libvirt does not keep: one for each host.
	// It must be set.
	Dir string
	// Memory and CPUs are what VMs may use together. Default: all that the host has.
	Memory hypervisor.Bytes
	CPUs   int
	// Link is the speed of the migration network, each way, for planning.
	Link hypervisor.Bandwidth
	// Namespace is the namespace of domains whose name has none: the domain "web" is
	// the VM "default/web", "shop_web" is "shop/web". Default: "default".
	Namespace string
	// Accelerator is "kvm" or "qemu", for VMs that are made here. Default: kvm where
	// the host has it.
	Accelerator string
	// DiskDir is where local disks are kept, in a storage pool of libvirt's. Default:
	// /var/lib/libvirt/images/godwit.
	DiskDir string
	// DebugDir is where the sockets of Hardware.DebugPort are. Default: VMs that have
	// one have no reader.
	DebugDir string
	// TLS encrypts migrations, with the certificates that the hosts' qemu.conf names.
	TLS bool
	// Direct has this process lead migrations, over connections of its own to both
	// hosts, in place of the source's libvirtd: where the hosts' libvirtds do not reach
	// each other. A migration then ends when this process does.
	Direct bool
	// Strict holds every target until its source is known to have stopped for good, as
	// if every Incoming asked for Hold. Without it libvirt's own hand-over is adopted,
	// which has a gap: see the package's comment.
	Strict bool
	// Reach returns how this process connects to the libvirtd that others call peer:
	// it is asked before a VM is sent there. Default: the same.
	Reach func(peer string) string
	// Rewrite changes the XML of a domain for its target: it may change what the guest
	// does not see. Default: nothing, besides what the VM's description at the target
	// says of disks and pins.
	Rewrite func(target hypervisor.HostName, xml string) (string, error)
	// Timeout bounds every call of libvirt, and, together with libvirt's keep-alive,
	// how long a libvirtd may hang unnoticed. Default: 30 s.
	Timeout time.Duration
	// KeepAlive is how often a silent libvirtd is asked whether it lives; the
	// connection is given up after five questions. Default: 5 s.
	KeepAlive time.Duration
	// Grace is how long after our or libvirtd's beginning nothing is concluded from a
	// migration that is not there: what was asked before may be on its way. Default:
	// 2 s.
	Grace time.Duration
	// TombstoneTTL is how long a host refuses a VM that it was told to discard. Default: 10m.
	TombstoneTTL time.Duration
	// Changed is told that a VM or its job has changed. It must not block. Default:
	// nothing is called.
	Changed func(hypervisor.VMID)
}

// complete checks c and returns it with the defaults filled in that need no libvirt.
func (c Config) complete() (Config, error) {
	switch {
	case c.Name == "":
		return c, fmt.Errorf("config: Name: it must be set")
	case c.Dir == "":
		return c, fmt.Errorf("config: Dir: it must be set")
	case c.Memory < 0 || c.CPUs < 0 || c.Link < 0:
		return c, fmt.Errorf("config: Memory, CPUs, Link: %v, %d, %v: they are not negative",
			c.Memory, c.CPUs, c.Link)
	case c.Timeout < 0 || c.KeepAlive < 0 || c.Grace < 0 || c.TombstoneTTL < 0:
		return c, fmt.Errorf("config: Timeout, KeepAlive, Grace, TombstoneTTL: they are not negative")
	case c.Accelerator != "" && c.Accelerator != domxml.KVM && c.Accelerator != domxml.QEMU:
		return c, fmt.Errorf("config: Accelerator: %q: it is kvm or qemu", c.Accelerator)
	}
	for _, d := range []string{c.DiskDir, c.DebugDir} {
		if d != "" && !path.IsAbs(d) {
			return c, fmt.Errorf("config: DiskDir, DebugDir: %q: it is a path from /", d)
		}
	}
	for _, t := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 30 * time.Second}, {&c.KeepAlive, 5 * time.Second}, {&c.Grace, 2 * time.Second},
		{&c.TombstoneTTL, 10 * time.Minute}} {
		if *t.field == 0 {
			*t.field = t.value
		}
	}
	for _, t := range []struct {
		field *string
		value string
	}{{&c.URI, "qemu:///system"}, {&c.Peer, "qemu+tls://" + string(c.Name) + "/system"},
		{&c.Namespace, "default"}, {&c.DiskDir, "/var/lib/libvirt/images/godwit"}} {
		if *t.field == "" {
			*t.field = t.value
		}
	}
	if c.Reach == nil {
		c.Reach = func(peer string) string { return peer }
	}
	if c.Changed == nil {
		c.Changed = func(hypervisor.VMID) {}
	}
	return c, nil
}
