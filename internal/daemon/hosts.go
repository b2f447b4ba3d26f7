package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// The backends.
const (
	QMP     = "qmp"
	Libvirt = "libvirt"
)

// A Config says what runs the VMs of a host. A zero field takes the backend's default.
type HostConfig struct {
	Name    hypervisor.HostName
	Backend string // QMP or Libvirt
	Dir     string // private to the host
	Locks   string // of all hosts on the machine; "" is the machine's own directory for that

	URI  string // libvirt's, for this process
	Peer string // libvirt's, for other hosts
	// DebugDir is where libvirt's QEMUs make the sockets of Hardware.DebugPort. Default: nowhere.
	DebugDir string

	Address     string // IP where other hosts reach QEMU's; "" is this machine only
	Port        int
	QEMU        string
	Accelerator string

	TLS         string // directory of QEMU's certificates, or of its shared key; "" is no encryption
	TLSPSK      bool   // it has a shared key
	TLSHostname string // that the certificates of other hosts carry; "" is their address
	// LibvirtTLS: libvirt's qemu.conf names certificates, and migrations are encrypted with them.
	LibvirtTLS bool

	Memory hypervisor.Bytes
	CPUs   int
	Link   hypervisor.Bandwidth
	// Changed is told that a VM has changed.
	Changed func(hypervisor.VMID)
}

// A Host runs VMs, and its opener has to close it; the VMs run on.
type Host interface {
	hypervisor.Hypervisor
	io.Closer
}

// Check says everything that is wrong with c, whatever the host.
func (c *HostConfig) Check() error {
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
	if c.Backend == QMP && c.URI+c.Peer+c.DebugDir != "" {
		bad = append(bad, errors.New("--uri, --peer and --debug-dir are libvirt's: say --backend libvirt"))
	}
	if c.Backend == Libvirt && c.Address+c.QEMU+c.Accelerator != "" {
		bad = append(bad, errors.New("--address, --qemu and --accelerator are for --backend qmp"))
	}
	if c.Backend == Libvirt && (c.TLS+c.TLSHostname != "" || c.TLSPSK) {
		bad = append(bad, errors.New("--tls-dir, --tls-psk and --tls-hostname are for --backend qmp: "+
			"libvirt has its own in qemu.conf: see --libvirt-tls"))
	}
	if c.Backend == QMP && c.LibvirtTLS {
		bad = append(bad, errors.New("--libvirt-tls is libvirt's: give --tls-dir"))
	}
	if c.Backend == QMP && c.TLS == "" && (c.TLSPSK || c.TLSHostname != "") {
		bad = append(bad, errors.New("--tls-psk and --tls-hostname say how to use --tls-dir: "+
			"give that, too"))
	}
	if c.TLSPSK && c.TLSHostname != "" {
		bad = append(bad, errors.New("--tls-hostname is about certificates, and --tls-psk uses none: "+
			"leave one out"))
	}
	return errors.Join(append(bad, c.credentials()...)...)
}

// credentials says which files of TLS are missing. QEMU would say so only when a VM moves.
// Source: QEMU 7.2 docs/system/tls.rst.
func (c *HostConfig) credentials() (bad []error) {
	if c.Backend != QMP || c.TLS == "" {
		return nil
	}
	files := []string{"ca-cert.pem", "server-cert.pem", "server-key.pem", "client-cert.pem",
		"client-key.pem"}
	how := "godwit pki issue makes it"
	if c.TLSPSK {
		files, how = []string{"keys.psk"}, "docs/encryption.md says how to make it"
	}
	for _, name := range files {
		f, err := os.Open(filepath.Join(c.TLS, name))
		if err != nil {
			bad = append(bad, fmt.Errorf("--tls-dir: %w: QEMU needs this file to encrypt "+
				"migrations: %s", err, how))
			continue
		}
		_ = f.Close()
	}
	return bad
}

// OpenHost opens a host. The error is an *hypervisor.Error.
func OpenHost(ctx context.Context, c HostConfig) (Host, error) {
	if c.Backend == QMP {
		return openQMP(ctx, c)
	}
	h, err := libvirt.New(ctx, libvirt.Config{Name: c.Name, URI: c.URI, Peer: c.Peer, Dir: c.Dir,
		DebugDir: c.DebugDir, TLS: c.LibvirtTLS, Memory: c.Memory, CPUs: c.CPUs, Link: c.Link, Changed: c.Changed})
	if err != nil {
		return nil, err
	}
	return h, nil
}
