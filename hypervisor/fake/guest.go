package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A guest is how much its CPUs ran, and so dirtied, in the present pass.
type guest struct {
	workload Workload
	before   hypervisor.Bytes // dirtied in this pass under earlier workloads
	ran      time.Duration    // CPU time until at
	at       time.Duration
	share    int // percent of the time that the CPUs run, since at
}

// turn changes the share of the time that the CPUs run from now on.
func (g *guest) turn(now time.Duration, share int) {
	g.ran, g.at, g.share = g.runs(now), now, share
}

// change gives the guest another workload from now on.
func (g *guest) change(now time.Duration, w Workload) {
	g.before, g.workload = g.before+g.workload.Dirtied(g.runs(now)), w
	g.ran, g.at = 0, now
}

// restart begins a new pass: nothing is dirty.
func (g *guest) restart(now time.Duration) { g.before, g.ran, g.at = 0, 0, now }

func (g *guest) runs(now time.Duration) time.Duration {
	d := now - g.at
	return g.ran + d/100*time.Duration(g.share) + d%100*time.Duration(g.share)/100
}

// dirtied returns the distinct bytes dirtied in this pass of a guest with memory.
func (g *guest) dirtied(now time.Duration, memory hypervisor.Bytes) hypervisor.Bytes {
	return min(memory, g.before+g.workload.Dirtied(g.runs(now)))
}

// writable returns the size of what the guest can dirty at all.
func (g *guest) writable(memory hypervisor.Bytes) hypervisor.Bytes {
	return min(memory, g.workload.Hot+g.workload.Cold)
}

// stale returns what of the memory that the guest writes differs from what the
// other end has, when left of it was not sent and dirtied was written since. The
// two are taken to meet by chance.
func (g *guest) stale(left, dirtied, memory hypervisor.Bytes) hypervisor.Bytes {
	return left + dirtied - scale(left, dirtied, max(left, dirtied, g.writable(memory)))
}
