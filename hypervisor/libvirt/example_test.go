package libvirt_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// A VM moves from one libvirtd to another. It needs both, so it is only compiled here;
// examples/libvirt-drain does it with controller and agents.
func Example() {
	ctx := context.Background()
	open := func(name hypervisor.HostName, uri string) *libvirt.Host {
		h, err := libvirt.New(ctx, libvirt.Config{Name: name, URI: uri, Dir: "/var/lib/godwit/" + string(name)})
		if err != nil {
			log.Fatal(err)
		}
		return h
	}
	n1, n2 := open("n1", "qemu:///system"), open("n2", "qemu+tls://n2/system")
	defer n1.Close()
	defer n2.Close()

	web, err := n1.Domain(ctx, "web")
	if err != nil {
		log.Fatal(err)
	}
	address, err := n2.Receive(ctx, hypervisor.Incoming{Job: "web#1", VM: web.VM})
	if err != nil {
		log.Fatal(err)
	}
	err = n1.Migrate(ctx, hypervisor.Outgoing{Job: "web#1", VM: "web", Target: "n2", Address: address})
	if err != nil {
		log.Fatal(err)
	}
	for {
		p, err := n1.Progress(ctx, "web#1")
		if err != nil || p.Status.Final() {
			fmt.Println(p.Status, p.Downtime, err)
			break
		}
		time.Sleep(time.Second)
	}
	// What has become of the VM, asked of both; what the source still has of it is removed.
	where, err := libvirt.Resolve(ctx, n1, n2, "web", "web#1")
	fmt.Println(where.Host, err)
}
