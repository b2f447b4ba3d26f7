//go:build !linux

package daemon

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
)

func openQMP(_ context.Context, c HostConfig) (Host, error) {
	return nil, &hypervisor.Error{Op: "New", Host: c.Name, Kind: hypervisor.Unsupported,
		Err: errors.New("QEMU is driven on Linux only: use --backend libvirt")}
}
