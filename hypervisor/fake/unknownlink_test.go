package fake_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

func TestALinkWhoseSpeedIsNotKnownIsNoBottleneck(t *testing.T) {
	n := fake.NewNetwork(time.Unix(1e9, 0), fake.QEMU())
	vm := hypervisor.VM{ID: "vm", Memory: hypervisor.GiB, CPUs: 1}
	for _, h := range []hypervisor.HostName{"n1", "n2"} {
		if _, err := n.AddHost(hypervisor.Host{Name: h, Memory: 4 * hypervisor.GiB, CPUs: 4}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Host("n1").Boot(vm, fake.Workload{}); err != nil {
		t.Fatal(err)
	}
	a, err := n.Host("n2").Receive(t.Context(), hypervisor.Incoming{Job: "j", VM: vm})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Host("n1").Migrate(t.Context(), hypervisor.Outgoing{Job: "j", VM: "vm", Target: "n2", Address: a}); err != nil {
		t.Fatal(err)
	}
	n.AdvanceTo(n.Now().Add(10 * time.Second))
	if p, err := n.Host("n1").Progress(t.Context(), "j"); err != nil || p.Status != hypervisor.JobSucceeded {
		t.Errorf("it is %v: %+v, %v", p.Status, p, err)
	}
}
