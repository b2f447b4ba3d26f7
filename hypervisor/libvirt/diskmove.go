//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
)

func (d guest) MoveDisk(context.Context, found, hypervisor.MoveDisk) error {
	return need(d.Node.able(), hypervisor.CanMoveDisk)
}

func (d guest) SwitchDisk(context.Context, found, string) error {
	return need(d.Node.able(), hypervisor.CanMoveDisk)
}

func (d guest) EndDiskMove(context.Context, found, hypervisor.EndDiskMove) error {
	return need(d.Node.able(), hypervisor.CanMoveDisk)
}
