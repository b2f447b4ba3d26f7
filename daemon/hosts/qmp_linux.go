package hosts

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

func openQMP(ctx context.Context, c Config) (Host, error) {
	h, err := qmp.New(ctx, qmp.Config{Name: c.Name, Dir: c.Dir, Locks: c.Locks,
		Memory: c.Memory, CPUs: c.CPUs,
		Link: c.Link, QEMU: c.QEMU, Accelerator: c.Accelerator, Listen: c.Address, Port: c.Port,
		Changed: c.Changed})
	if err != nil {
		return nil, err
	}
	return h, nil
}
