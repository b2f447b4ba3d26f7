package placement_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// model is what the hosts of an index must be like, kept the simple way.
type model struct {
	t       *rapid.T
	inbound int
	index   *placement.Index
	hosts   map[hypervisor.HostName]placement.Host
	moving  map[hypervisor.HostName][]*placement.VM // reserved, on their way
	here    map[hypervisor.HostName][]*placement.VM // arrived
}

func drawModel(t *rapid.T) *model {
	b := &model{
		t:       t,
		inbound: rapid.IntRange(0, 3).Draw(t, "index inbound"),
		hosts:   map[hypervisor.HostName]placement.Host{},
		moving:  map[hypervisor.HostName][]*placement.VM{},
		here:    map[hypervisor.HostName][]*placement.VM{},
	}
	hosts := drawHosts(t)
	b.index = placement.NewIndex(b.inbound, hosts...)
	for _, h := range hosts {
		b.hosts[h.Name], _ = b.index.Get(h.Name)
	}
	return b
}

// bestByBruteForce asks every host, and remembers the best that accepts.
func (b *model) bestByBruteForce(
	vm *placement.VM, o placement.Options,
) (best hypervisor.HostName, ok bool) {
	for name := range b.hosts {
		h, _ := b.index.Get(name)
		limited := o
		limited.Inbound = b.inbound
		if len(placement.Check(vm, &h, o)) > 0 || len(placement.Check(vm, &h, limited)) > 0 {
			continue
		}
		top, _ := b.index.Get(best)
		if !ok || h.FreeMemory() > top.FreeMemory() ||
			h.FreeMemory() == top.FreeMemory() && name < best {
			best, ok = name, true
		}
	}
	return best, ok
}

// place reserves a VM on the best host, and checks that it is the best.
func (b *model) place(t *rapid.T) {
	vm, o := drawVM(t), drawOptions(t)
	got, ok := b.index.Best(vm, o)
	want, found := b.bestByBruteForce(vm, o)
	if got != want || ok != found {
		t.Fatalf("Best = %q, %v; by brute force %q, %v", got, ok, want, found)
	}
	if refused := len(b.index.Refusals(vm, o)); (refused < len(b.hosts)) != ok {
		t.Fatalf("%d of %d hosts refuse, and a host was found: %v", refused, len(b.hosts), ok)
	}
	if !ok {
		return
	}
	if !b.index.Reserve(vm, got) {
		t.Fatalf("the reservation of %v on %s was refused", vm, got)
	}
	b.moving[got] = append(b.moving[got], vm)
	h, _ := b.index.Get(got)
	over := vm.Memory > 0 && h.UsedMemory > h.Memory || vm.CPUs > 0 && h.UsedCPUs > h.CPUs ||
		b.inbound > 0 && h.Incoming > b.inbound
	if over {
		t.Fatalf("over capacity: %+v", h)
	}
}

// end takes one VM off a list, and ends its reservation.
func (b *model) end(
	t *rapid.T, lists map[hypervisor.HostName][]*placement.VM,
	change func(*placement.VM, hypervisor.HostName) bool,
) {
	names := slices.Sorted(maps.Keys(lists))
	names = slices.DeleteFunc(names, func(n hypervisor.HostName) bool { return len(lists[n]) == 0 })
	if len(names) == 0 {
		t.Skip("no VM is there")
	}
	name := rapid.SampledFrom(names).Draw(t, "host")
	i := rapid.IntRange(0, len(lists[name])-1).Draw(t, "which")
	vm := lists[name][i]
	lists[name] = slices.Delete(lists[name], i, i+1)
	if !change(vm, name) {
		t.Fatalf("the end of %v on %s was refused", vm, name)
	}
}

// check compares every host with what was reported first and has come since.
func (b *model) check(t *rapid.T) {
	for name, first := range b.hosts {
		want := first
		want.Groups = maps.Clone(first.Groups)
		want.Incoming += len(b.moving[name])
		for _, vm := range append(slices.Clone(b.moving[name]), b.here[name]...) {
			want.UsedMemory += vm.Memory
			want.UsedCPUs += vm.CPUs
			for _, g := range slices.Compact(slices.Sorted(slices.Values(vm.Constraints.Apart))) {
				if want.Groups == nil {
					want.Groups = map[string]int{}
				}
				want.Groups[g]++
			}
		}
		got, _ := b.index.Get(name)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the reservations of %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTheBooksBalance runs any sequence of entries. After each, every host has
// what was reported first plus the VMs that came and have not gone: so the
// entries are exact inverses, and nothing is ever negative or over capacity.
func TestTheBooksBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"a VM is placed":       b.place,
			"a VM is placed again": b.place,
			"a move is cancelled":  func(t *rapid.T) { b.end(t, b.moving, b.index.Cancel) },
			"a VM leaves":          func(t *rapid.T) { b.end(t, b.here, b.index.Leave) },
			"a VM arrives": func(t *rapid.T) {
				b.end(t, b.moving, func(vm *placement.VM, host hypervisor.HostName) bool {
					b.here[host] = append(b.here[host], vm)
					return b.index.Arrive(host)
				})
			},
			"a host is reported anew": func(t *rapid.T) {
				n := rapid.IntRange(1, 20).Draw(t, "n")
				h := drawHost(t, hypervisor.HostName(rune('a'+n)))
				b.index.Update(h)
				b.hosts[h.Name], _ = b.index.Get(h.Name)
				b.moving[h.Name], b.here[h.Name] = nil, nil
			},
			"": b.check,
		})
	})
}

func TestReserveAndCancelIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := placement.NewIndex(rapid.IntRange(0, 2).Draw(t, "inbound"), drawHost(t, "n1"))
		vm, other, o := drawVM(t), drawVM(t), drawOptions(t)
		before, _ := x.Get("n1")
		best, ok := x.Best(other, o)
		if !x.Reserve(vm, "n1") || !x.Cancel(vm, "n1") {
			t.Fatal("an entry was refused")
		}
		after, _ := x.Get("n1")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("the reservations (-before +after):\n%s", diff)
		}
		if again, found := x.Best(other, o); again != best || found != ok {
			t.Fatalf("Best was %q, %v and is now %q, %v", best, ok, again, found)
		}
	})
}

// TestTheOrderOfHostsIsIrrelevant: neither the answer nor its explanation
// depends on the order in which the hosts became known.
func TestTheOrderOfHostsIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm, o := drawHosts(t), drawVM(t), drawOptions(t)
		x := placement.NewIndex(0, hosts...)
		y := placement.NewIndex(0, rapid.Permutation(hosts).Draw(t, "other order")...)
		a, okA := x.Best(vm, o)
		b, okB := y.Best(vm, o)
		if a != b || okA != okB {
			t.Fatalf("Best = %q, %v or %q, %v", a, okA, b, okB)
		}
		if diff := cmp.Diff(x.Refusals(vm, o), y.Refusals(vm, o)); diff != "" {
			t.Fatalf("Refusals (-one +other):\n%s", diff)
		}
		if diff := cmp.Diff(x.Histogram(vm, o), y.Histogram(vm, o)); diff != "" {
			t.Fatalf("Histogram (-one +other):\n%s", diff)
		}
	})
}

// TestTheHistogramCountsTheRefusals: both walk the same table.
func TestTheHistogramCountsTheRefusals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, vm, o := placement.NewIndex(2, drawHosts(t)...), drawVM(t), drawOptions(t)
		want, got := map[string]int{}, map[string]int{}
		for _, r := range x.Refusals(vm, o) {
			for _, why := range r.Why {
				want[why.Check]++
			}
		}
		for _, c := range x.Histogram(vm, o) {
			got[c.Check] = c.Hosts
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-from the refusals +counted):\n%s", diff)
		}
	})
}
