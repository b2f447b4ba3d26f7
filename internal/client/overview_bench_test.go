package client_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

// BenchmarkMake measures a cluster of 200 hosts and 10,000 VMs, of which two hosts drain and 1,000
// VMs were moved.
func BenchmarkMake(b *testing.B) {
	s := store.NewMemory()
	for i := range 200 {
		h := &store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(fmt.Sprint("n", i)), Link: 1 << 30}}
		if i < 2 {
			h = draining(h.Host.Name)
		}
		put(b, s, h)
	}
	for i := range 10_000 {
		name := fmt.Sprint("v", i)
		put(b, s, overviewVM(name, hypervisor.HostName(fmt.Sprint("n", i%200))))
		if i%10 == 0 {
			put(b, s, moved(1, name, "n1", "n7", i/100, hypervisor.GiB))
		}
	}
	var c client.Cluster
	if err := c.Pull(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := (client.Frame{}).Print(&out, client.MakeOverview(&c, defaults, at(100))); err != nil {
			b.Fatal(err)
		}
	}
}
