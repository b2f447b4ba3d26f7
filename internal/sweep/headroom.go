package sweep

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// maxHeadroom is of how many hosts the headroom is shown: those with the least.
const maxHeadroom = 200

// A Headroom is how much of a host's memory VMs took over time, those among them that were arriving.
type Headroom struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory"` // bytes that the host has
	// Used is the mean in each bucket, in parts per thousand of Memory.
	Used []int `json:"used"`
	// Least is how many bytes were free when the fewest were, and At when that was first so.
	Least int64 `json:"least"`
	At    int64 `json:"at"`
}

// A change of how much of a host's memory is taken.
type taking struct {
	at time.Duration
	by hypervisor.Bytes
}

// A rehoming is a VM that goes from one host to another, as the store has it. One of them may be "".
type rehoming struct {
	at       time.Duration
	vm       hypervisor.VMID
	from, to hypervisor.HostName
}

// rehome keeps a VM's change of hosts.
func (r *Recorder) rehome(at time.Duration, before, after *store.VM) {
	if before.Host != after.Host {
		r.homes = append(r.homes, rehoming{at, after.VM.ID, before.Host, after.Host})
	}
}

// demandOf returns what a VM takes of its host's memory.
func demandOf(v *store.VM) hypervisor.Bytes { return v.Now().Memory + v.Overhead - v.Balloon }

// headroom returns how much of the hosts' memory was taken, of the hosts with the least headroom. VMs
// whose records are gone are not counted.
func (r *Recorder) headroom(w *sim.World, c buckets) []Headroom {
	demand, used := map[hypervisor.VMID]hypervisor.Bytes{}, map[hypervisor.HostName]hypervisor.Bytes{}
	for _, id := range w.VMs() {
		if v := w.VM(id); v != nil {
			demand[id] = demandOf(v)
			used[v.Host] += demand[id]
		}
	}
	changes := map[hypervisor.HostName][]taking{}
	for _, h := range r.homes {
		changes[h.from] = append(changes[h.from], taking{h.at, -demand[h.vm]})
		changes[h.to] = append(changes[h.to], taking{h.at, demand[h.vm]})
	}
	for host, all := range changes { // what was there in the beginning
		for _, t := range all {
			used[host] -= t.by
		}
	}
	for i := range r.rows {
		n := &r.rows[i]
		if began := n.at[migration.Scheduled]; n.target != "" && began != never {
			changes[n.target] = append(changes[n.target], taking{began, demand[n.vm]},
				taking{n.end(c.end()), -demand[n.vm]})
		}
	}
	var list []Headroom
	for _, name := range w.Hosts() {
		if h := w.HostRecord(name); h != nil && h.Host.Memory > 0 {
			list = append(list, headroomOf(name, h.Host.Memory, used[name], changes[name], c))
		}
	}
	slices.SortFunc(list, func(a, b Headroom) int {
		return cmp.Or(cmp.Compare(float64(a.Least)/float64(a.Memory), float64(b.Least)/float64(b.Memory)),
			natural(hypervisor.HostName(a.Name), hypervisor.HostName(b.Name)))
	})
	return list[:min(maxHeadroom, len(list))]
}

// headroomOf returns the headroom of one host. What changes at one moment counts together.
func headroomOf(name hypervisor.HostName, memory, used hypervisor.Bytes, changes []taking, c buckets) Headroom {
	slices.SortStableFunc(changes, func(a, b taking) int { return cmp.Compare(a.at, b.at) })
	h := Headroom{Name: string(name), Memory: int64(memory), Least: math.MaxInt64}
	var s series
	since := time.Duration(0)
	until := func(at time.Duration) {
		if at <= since && at < c.end() {
			return
		}
		if free := int64(memory - used); free < h.Least {
			h.Least, h.At = free, since.Milliseconds()
		}
		s.add(c, since, at, float64(used)/float64(memory))
		since = at
	}
	for _, t := range changes {
		until(t.at)
		used += t.by
	}
	until(c.end())
	for _, share := range s.means() {
		h.Used = append(h.Used, int(math.Round(1000*share)))
	}
	return h
}
