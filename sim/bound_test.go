package sim_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Of the hosts of rack r1 n1 has a link of 10 bytes per second and n2 one of 20; n3 is in
// rack r2, n4 in none, and their links are not known.
func TestTheNarrowestLinkForWhatCrossesItDecides(t *testing.T) {
	host := func(name hypervisor.HostName, link hypervisor.Bandwidth, rack string,
		uplink hypervisor.Bandwidth) *store.Host {
		return &store.Host{Host: hypervisor.Host{Name: name, Link: link},
			Facts: &placement.Facts{Rack: rack, Uplink: uplink}}
	}
	n1, n2 := host("n1", 10, "r1", 8), host("n2", 20, "r1", 8)
	n3, n4 := host("n3", 0, "r2", 4), host("n4", 0, "", 1)
	type move struct {
		source, target *store.Host
		bytes          hypervisor.Bytes
	}
	for _, test := range []struct {
		name string
		all  []move
		want time.Duration
	}{
		{"nothing moves", nil, 0},
		{"a host that is not known", []move{{n1, nil, 100}, {nil, n1, 100}}, 0},
		{"the narrower of two hosts", []move{{n1, n2, 100}}, 10 * time.Second},
		{"what leaves a host adds up", []move{{n1, n2, 100}, {n1, n2, 50}}, 15 * time.Second},
		{"what comes does not count to what leaves", []move{{n1, n2, 100}, {n2, n1, 100}},
			10 * time.Second},
		{"hosts that share an up-link", []move{{n1, n4, 40}, {n2, n4, 40}}, 10 * time.Second},
		{"the narrower of two racks", []move{{n1, n3, 40}}, 10 * time.Second},
		{"no rack has no up-link", []move{{n4, n1, 40}}, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			var links sim.LowerBound
			for _, m := range test.all {
				links.Move(m.source, m.target, m.bytes)
			}
			if got := links.Least(); got != test.want {
				t.Errorf("at least %v, want %v", got, test.want)
			}
		})
	}
}

func TestQuantileIsTheSmallestThatEnoughDoNotExceed(t *testing.T) {
	if got := sim.Quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		sorted := make([]float64, rapid.IntRange(1, 30).Draw(t, "values"))
		for i := range sorted {
			sorted[i] = float64(i)
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got := sim.Quantile(sorted, q)
		if below := got + 1; below < q*float64(len(sorted)) {
			t.Errorf("%v values of %d are at most %v: fewer than %v", below, len(sorted), got, q)
		}
		if got > 0 && got >= q*float64(len(sorted)) {
			t.Errorf("already %v values are enough of %d for %v", got, len(sorted), q)
		}
	})
}
