package daemon

import (
	"context"
	"path/filepath"

	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

func openQMP(ctx context.Context, c HostConfig) (Host, error) {
	var tls *qmp.TLS
	if c.TLS != "" {
		dir, err := filepath.Abs(c.TLS)
		if err != nil {
			return nil, err
		}
		tls = &qmp.TLS{Dir: dir, PSK: c.TLSPSK, Hostname: c.TLSHostname}
	}
	h, err := qmp.New(ctx, qmp.Config{Name: c.Name, Dir: c.Dir, Locks: c.Locks,
		Memory: c.Memory, CPUs: c.CPUs,
		Link: c.Link, QEMU: c.QEMU, Accelerator: c.Accelerator, Listen: c.Address, Port: c.Port,
		TLS: tls, Changed: c.Changed})
	if err != nil {
		return nil, err
	}
	return h, nil
}
