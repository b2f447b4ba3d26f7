//go:build linux

package qmp_test

import (
	"context"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

// Two hosts on one machine: a VM is started on one and moved to the other.
func Example() {
	ctx := context.Background()
	one, err := qmp.New(ctx, qmp.Config{Name: "n1", Dir: "/var/lib/godwit/n1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer one.Close() // the VM runs on
	two, err := qmp.New(ctx, qmp.Config{Name: "n2", Dir: "/var/lib/godwit/n2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer two.Close()
	vm := hypervisor.VM{ID: "default/web", Memory: hypervisor.GiB, CPUs: 2,
		Hardware: &hypervisor.Hardware{Machine: "pc-q35-7.2",
			Disks: []hypervisor.Disk{{Name: "root", Format: "qcow2", Size: 10 * hypervisor.GiB}}}}
	if err := one.Do(ctx, vm.ID, hypervisor.Start{VM: vm}); err != nil {
		fmt.Println(err)
		return
	}
	address, err := two.Receive(ctx, hypervisor.Incoming{Job: "web#1", VM: vm})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = one.Migrate(ctx, hypervisor.Outgoing{Job: "web#1", VM: vm.ID, Target: "n2",
		Address: address, Options: hypervisor.TransferOptions{AutoConverge: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(one.Progress(ctx, "web#1"))
}
