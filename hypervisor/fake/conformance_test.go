package fake_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// newPair has two hosts that can do these things; 0 is everything.
func newPair(t tester, can hypervisor.Abilities) *world {
	t.Helper()
	m := sure()
	m.BootTime, m.ShutdownTime = 100*ms, 50*ms
	w := &world{fake.NewNetwork(epoch, m), t}
	for _, n := range []name{"n1", "n2"} {
		w.host(hypervisor.Host{Name: n, Memory: 8 * gib, CPUs: 16, Link: 10 * hypervisor.Gbit,
			Abilities: can})
	}
	return w
}

// aSmallVM is a VM of 1 GiB and one CPU.
func aSmallVM(id vmid) hypervisor.VM { return hypervisor.VM{ID: id, Memory: gib, CPUs: 1} }

// newLab is a world of the conformance suite with two modelled hosts.
func newLab(t tester) *conformance.Lab {
	t.Helper()
	w, vm := newPair(t, 0), aSmallVM
	find := func(n name) (hypervisor.Hypervisor, error) { return w.Host(n), nil }
	return &conformance.Lab{
		Source: w.Host("n1"), Target: w.Host("n2"), VM: vm, Within: 10 * time.Minute,
		Pass: w.pass, Slow: 1e6, // a slow transfer does not end within
		BusyVM: func(id vmid) hypervisor.VM {
			// The workload belongs to the VM, and is there when the suite starts it.
			w.ok(w.Host("n1").Boot(vm(id), fake.Workload{ColdRate: 2e9, Cold: gib}))
			w.ok(w.Host("n1").Do(ctx, id, hypervisor.Kill{}))
			return vm(id)
		},
		Alive: func(id vmid) ([]name, error) {
			var on []name
			for _, c := range w.Copies(id) {
				if c.State.Executes() {
					on = append(on, c.Host)
				}
			}
			return on, nil
		},
		Reopen:    find, // a modelled host has no process of ours in front of it
		KillVM:    func(n name, id vmid) error { return w.KillDomain(n, id) },
		CutLink:   func() error { return w.CutLink("n1", "n2") },
		MendLink:  func() error { return w.HealLink("n1", "n2") },
		ResetLink: func() error { return w.ResetLink("n1", "n2") },
		Restart: func(n name) (hypervisor.Hypervisor, error) {
			w.ok(w.CrashHost(n))
			w.ok(w.RestartHost(n))
			return find(n)
		},
	}
}

func TestConformance(t *testing.T) {
	conformance.Hypervisor(t, func(t *testing.T) *conformance.Lab { return newLab(t) })
}

// A lab that can do nothing, on hosts that can do little, is a lab.
func TestConformanceOfAPlainHost(t *testing.T) {
	conformance.Hypervisor(t, func(t *testing.T) *conformance.Lab {
		w := newPair(t, hypervisor.CanUseChannels)
		return &conformance.Lab{Source: w.Host("n1"), Target: w.Host("n2"), VM: aSmallVM,
			Pass: w.pass}
	})
}

func TestRandomWalksConform(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conformance.Walk(t, newLab(t), func(what string, n int) int {
			return rapid.IntRange(0, n-1).Draw(t, what)
		})
	})
}
