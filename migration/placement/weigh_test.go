package placement_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestNormalise has the rows of Nova's tests/unit/test_weights.py.
func TestNormalise(t *testing.T) {
	for _, row := range []struct {
		name     string
		in, want []float64
		fromZero bool
	}{
		{"nothing", nil, nil, false},
		{"all equal are 0", []float64{0, 0, 0}, []float64{0, 0, 0}, false},
		{"all equal are 0, whatever they are", []float64{1, 1}, []float64{0, 0}, false},
		{"one alone is 0", []float64{7}, []float64{0}, false},
		{"one alone is 1 from zero", []float64{7}, []float64{1}, true},
		{"spread over 0 to 1", []float64{1, 10, 4, 7}, []float64{0, 1, 1. / 3, 2. / 3}, false},
		{"negative numbers", []float64{-10, 0, 10}, []float64{0, .5, 1}, false},
		{"from zero the worst is more than 0", []float64{5, 10}, []float64{.5, 1}, true},
		{"from zero less than zero is zero", []float64{-5, 10, 5}, []float64{0, 1, .5}, true},
		{"from zero all below are 0", []float64{-5, -10}, []float64{0, 0}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := slices.Clone(row.in)
			placement.Normalise(got, row.fromZero)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("normalised (-want +got):\n%s", diff)
			}
		})
	}
}

func host(name hypervisor.HostName, free int) placement.Host {
	return placement.Host{Name: name, Memory: hypervisor.Bytes(free) * gib, CPUs: 8,
		Facts: &placement.Facts{}, Load: &placement.Load{}}
}

func only(name string) []placement.Weigher {
	return slices.DeleteFunc(placement.Spread(), func(w placement.Weigher) bool { return w.Name != name })
}

func soft(p placement.GroupPolicy, domain string) placement.Constraints {
	return placement.Constraints{Groups: []placement.GroupRule{
		{Group: "g", Policy: p, Domain: domain}}}
}

// TestPreferences says of two equal hosts, of which the second was changed, which
// one is better. Of equals the smaller name is.
func TestPreferences(t *testing.T) {
	gpus := func(n int) placement.Devices { return placement.Devices{{Class: "gpu", Count: n}} }
	gpuVM := placement.Constraints{Devices: []placement.DeviceAsk{{Class: "gpu", Count: 1}}}
	for _, row := range []struct {
		name, weigher string
		c             placement.Constraints
		change        func(*placement.Host, *placement.Facts) // the second host, the source
		want          hypervisor.HostName
	}{
		{"equals", "memory", placement.Constraints{},
			func(*placement.Host, *placement.Facts) {}, "a"},
		{"more memory", "memory", placement.Constraints{},
			func(h *placement.Host, _ *placement.Facts) { h.Memory++ }, "b"},
		{"used memory is not free", "memory", placement.Constraints{},
			func(h *placement.Host, _ *placement.Facts) { h.Memory++; h.UsedMemory = 2 }, "a"},
		{"more CPUs", "cpus", placement.Constraints{},
			func(h *placement.Host, _ *placement.Facts) { h.CPUs++ }, "b"},
		{"more disk", "disk", placement.Constraints{}, func(h *placement.Host, _ *placement.Facts) {
			h.Facts.Disk.Total = 5
		}, "b"},
		{"a newer hypervisor", "version", placement.Constraints{},
			func(h *placement.Host, _ *placement.Facts) { h.Facts.Hypervisor.Version = 8 }, "b"},
		{"a busy host", "busy", placement.Constraints{},
			func(h *placement.Host, _ *placement.Facts) { h.Incoming = 1 }, "a"},
		{"a host with special devices is kept free", "special", placement.Constraints{},
			func(h *placement.Host, _ *placement.Facts) { h.Facts.Devices = gpus(1) }, "a"},
		{"a VM that asks for one goes there", "special", gpuVM,
			func(h *placement.Host, _ *placement.Facts) { h.Facts.Devices = gpus(1) }, "b"},
		{"friends attract", "soft-affinity", soft(placement.SoftAffinity, ""),
			func(h *placement.Host, _ *placement.Facts) { h.Groups = map[string]int{"g": 1} }, "b"},
		{"rivals repel", "soft-anti-affinity", soft(placement.SoftAntiAffinity, ""),
			func(h *placement.Host, _ *placement.Facts) { h.Groups = map[string]int{"g": 1} }, "a"},
		{"strangers do neither", "soft-affinity", soft(placement.SoftAffinity, ""),
			func(h *placement.Host, _ *placement.Facts) { h.Groups = map[string]int{"x": 1} }, "a"},
		{"friends in the rack attract", "soft-affinity", soft(placement.SoftAffinity, "rack"),
			func(h *placement.Host, _ *placement.Facts) {
				h.Labels = placement.Labels{"rack": "r1"}
			}, "b"},
		{"a faster link", "cost", placement.Constraints{},
			func(h *placement.Host, from *placement.Facts) {
				from.Link, h.Facts.Link = 25*hypervisor.Gbit, 10*hypervisor.Gbit
			}, "a"},
		{"the slower side decides", "cost", placement.Constraints{},
			func(h *placement.Host, from *placement.Facts) {
				from.Link, h.Facts.Link = 10*hypervisor.Gbit, 25*hypervisor.Gbit
			}, "a"},
		{"a slow way between racks", "cost", placement.Constraints{},
			func(h *placement.Host, from *placement.Facts) {
				from.Link, from.Uplink = 10*hypervisor.Gbit, hypervisor.Gbit
				h.Facts.Rack = "r2"
			}, "a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b, from := host("a", 8), host("b", 8), &placement.Facts{}
			row.change(&b, from)
			o := placement.Options{Move: &placement.Move{Source: from,
				Domains: map[placement.Domain]int{{Group: "g", Label: "rack", Value: "r1"}: 2}}}
			vm := &placement.VM{ID: "vm", Memory: gib, Constraints: row.c}
			for _, hosts := range [][]placement.Host{{a, b}, {b, a}} {
				i, ok := placement.Best(only(row.weigher), vm, hosts, []int{0, 1}, o)
				if !ok || hosts[i].Name != row.want {
					t.Errorf("the best is %s, want %s", hosts[i].Name, row.want)
				}
			}
		})
	}
}

func TestSpreadAndPackAreOpposites(t *testing.T) {
	hosts := []placement.Host{host("a", 8), host("b", 16), host("c", 4)}
	vm := &placement.VM{ID: "vm"}
	for _, row := range []struct {
		name string
		ws   []placement.Weigher
		want hypervisor.HostName
	}{{"spread", placement.Spread(), "b"}, {"pack", placement.Pack(), "c"}} {
		ranked := placement.Rank(row.ws, vm, hosts, []int{0, 1, 2}, placement.Options{})
		if ranked[0].Host != row.want {
			t.Errorf("%s: %v", row.name, ranked)
		}
	}
}

func TestWeighSelect(t *testing.T) {
	ws, err := placement.SelectWeighers(map[string]float64{"memory": -2})
	if err != nil || ws[0].Multiplier != -2 || placement.Spread()[0].Multiplier != 1 {
		t.Errorf("selected %v, %v", ws, err)
	}
	if _, err := placement.SelectWeighers(map[string]float64{"ram": 1}); err == nil ||
		!strings.Contains(err.Error(), "memory, cpus") {
		t.Errorf("an unknown name: %v", err)
	}
	for _, m := range []float64{math.NaN(), math.Inf(1)} {
		if _, err := placement.SelectWeighers(map[string]float64{"cpus": m}); err == nil {
			t.Errorf("the multiplier %v is accepted", m)
		}
	}
}

// TestBestIsTheFirstOfTheRanking: also for weighers that return nonsense, and in
// any order of the hosts.
func TestBestIsTheFirstOfTheRanking(t *testing.T) {
	numbers := rapid.SampledFrom([]float64{0, 1, 2, -1, math.NaN(), math.Inf(1), math.Inf(-1),
		1e308})
	rapid.Check(t, func(t *rapid.T) {
		var hosts []placement.Host
		var at []int
		of := map[hypervisor.HostName]float64{}
		for i := range rapid.IntRange(0, 5).Draw(t, "hosts") {
			h := host(hypervisor.HostName(rune('a'+i)), rapid.IntRange(0, 3).Draw(t, "free"))
			hosts, at = append(hosts, h), append(at, i)
			of[h.Name] = numbers.Draw(t, "number")
		}
		ws := append(placement.Spread(), placement.Weigher{Name: "odd", Multiplier: 1,
			Of: func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
				return of[h.Name]
			}})
		vm := &placement.VM{}
		ranked := placement.Rank(ws, vm, hosts, at, placement.Options{})
		i, ok := placement.Best(ws, vm, hosts, at, placement.Options{})
		if ok != (len(hosts) > 0) || ok && hosts[i].Name != ranked[0].Host {
			t.Fatalf("Best = %d, %v; ranked %v", i, ok, ranked)
		}
		for _, r := range ranked {
			if math.IsNaN(r.Score) || math.IsInf(r.Score, 0) {
				t.Fatalf("the score of %s is %v", r.Host, r.Score)
			}
		}
		other := rapid.Permutation(at).Draw(t, "order")
		again := placement.Rank(ws, vm, hosts, other, placement.Options{})
		if diff := cmp.Diff(ranked, again); diff != "" {
			t.Fatalf("in another order (-one +other):\n%s", diff)
		}
	})
}
