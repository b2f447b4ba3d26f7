package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// twoHosts is a lab with nothing in it that is optional, but for time that passes when it is
// told to. The modelled hosts are in the place of a backend's own.
func twoHosts() *conformance.Lab {
	fabric := fake.NewNetwork(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fake.QEMU())
	open := func(name hypervisor.HostName) hypervisor.Hypervisor {
		host, err := fabric.AddHost(hypervisor.Host{Name: name, Memory: 8 * hypervisor.GiB,
			CPUs: 8, Link: 10 * hypervisor.Gbit})
		if err != nil {
			panic(err)
		}
		return host
	}
	return &conformance.Lab{
		Source: open("n1"), Target: open("n2"),
		VM: func(id hypervisor.VMID) hypervisor.VM {
			return hypervisor.VM{ID: id, Memory: hypervisor.GiB, CPUs: 1}
		},
		Pass: func(d time.Duration) { fabric.AdvanceTo(fabric.Now().Add(d)) },
	}
}

// The conformance test of a backend.
func ExampleHypervisor() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		conformance.Hypervisor(t, func(*testing.T) *conformance.Lab { return twoHosts() })
	}
}

// An aloud is a [conformance.TB] that prints.
type aloud struct{}

func (aloud) Helper()                           {}
func (aloud) Logf(string, ...any)               {}
func (aloud) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// A random walk gives commands that no test names. With a *rapid.T in the place of the TB,
// and choices that are drawn from it, a walk that fails shrinks.
func ExampleWalk() {
	lab := twoHosts()
	lab.Steps = 300
	chance := rand.New(rand.NewPCG(1, 2))
	conformance.Walk(aloud{}, lab, func(_ string, n int) int { return chance.IntN(n) })
	fmt.Println("after 300 commands no VM has run twice, and none is lost")
	// Output: after 300 commands no VM has run twice, and none is lost
}
