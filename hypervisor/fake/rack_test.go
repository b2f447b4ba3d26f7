package fake_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// Four hosts in two racks, and one in none; every NIC carries 1 GB/s.
func racks(t *testing.T, uplinks [2]hypervisor.Bandwidth, network hypervisor.Bandwidth) *world {
	w := &world{fake.NewNetwork(epoch, fake.Model{}), t}
	for i, rack := range []string{"a", "a", "b", "b", ""} {
		n := name(fmt.Sprintf("n%d", i+1))
		w.host(hypervisor.Host{Name: n, Memory: 64 * gib, CPUs: 64, Link: 1_000_000_000})
		if rack != "" {
			w.ok(w.Place(n, rack, uplinks[i/2]))
		}
	}
	w.Share(network)
	return w
}

// Speeds of idle VMs that are moved at the same time.
func TestMovesShareTheLinksAboveTheirHosts(t *testing.T) {
	const mb = hypervisor.Bandwidth(1_000_000)
	for _, test := range []struct {
		name    string
		uplinks [2]hypervisor.Bandwidth
		network hypervisor.Bandwidth
		moves   [][2]name
		want    []hypervisor.Bandwidth
	}{
		{"without anything above only the hosts' links count", [2]hypervisor.Bandwidth{}, 0,
			[][2]name{{"n1", "n3"}, {"n2", "n4"}}, []hypervisor.Bandwidth{1000 * mb, 1000 * mb}},
		{"moves out of a rack share its up-link", [2]hypervisor.Bandwidth{600 * mb, 0}, 0,
			[][2]name{{"n1", "n3"}, {"n2", "n4"}}, []hypervisor.Bandwidth{300 * mb, 300 * mb}},
		{"moves into a rack share its up-link", [2]hypervisor.Bandwidth{0, 600 * mb}, 0,
			[][2]name{{"n1", "n3"}, {"n2", "n4"}}, []hypervisor.Bandwidth{300 * mb, 300 * mb}},
		{"the two directions do not", [2]hypervisor.Bandwidth{600 * mb, 900 * mb}, 0,
			[][2]name{{"n1", "n3"}, {"n4", "n2"}}, []hypervisor.Bandwidth{600 * mb, 600 * mb}},
		{"moves within a rack do not", [2]hypervisor.Bandwidth{100 * mb, 100 * mb}, 0,
			[][2]name{{"n1", "n2"}, {"n3", "n4"}}, []hypervisor.Bandwidth{1000 * mb, 1000 * mb}},
		{"a host without a rack is above them", [2]hypervisor.Bandwidth{100 * mb, 0}, 0,
			[][2]name{{"n1", "n5"}, {"n3", "n4"}}, []hypervisor.Bandwidth{100 * mb, 1000 * mb}},
		{"all share the network", [2]hypervisor.Bandwidth{}, 900 * mb,
			[][2]name{{"n1", "n2"}, {"n3", "n4"}, {"n2", "n5"}},
			[]hypervisor.Bandwidth{300 * mb, 300 * mb, 300 * mb}},
		{"what an up-link leaves of it others have", [2]hypervisor.Bandwidth{100 * mb, 0},
			900 * mb, [][2]name{{"n1", "n3"}, {"n3", "n4"}},
			[]hypervisor.Bandwidth{100 * mb, 800 * mb}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := racks(t, test.uplinks, test.network)
			var jobs []hypervisor.JobID
			for i, m := range test.moves {
				id := vmid(fmt.Sprint("vm", i))
				w.boot(m[0], id, fake.Workload{})
				jobs = append(jobs, w.begin(move{vm: aVM(id), from: m[0], to: m[1]}))
			}
			w.pass(10 * ms)
			for i, m := range test.moves {
				if got := w.progress(m[0], jobs[i]).Bandwidth; got != test.want[i] {
					t.Errorf("%s to %s: %v, want %v", m[0], m[1], got, test.want[i])
				}
			}
		})
	}
}

func TestPlaceRefusesWhatIsNoRack(t *testing.T) {
	w := racks(t, [2]hypervisor.Bandwidth{}, 0)
	for _, test := range []struct {
		host name
		rack string
		up   hypervisor.Bandwidth
		want hypervisor.Kind
	}{
		{"n9", "a", 1, hypervisor.NotFound},
		{"n1", "", 1, hypervisor.Invalid},
		{"n1", "a", -1, hypervisor.Invalid},
	} {
		if err := w.Place(test.host, test.rack, test.up); !errors.Is(err, test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestAgreesWithOtherSimulatorsWithoutCaps moves 1,000 VMs of different sizes and loads
// from 50 hosts to 50 others, two at a time out of each: SimGrid 3.32 says that it takes
// 218.02 s, and DISSECT-CF 218.26 s.
func TestAgreesWithOtherSimulatorsWithoutCaps(t *testing.T) {
	testutil.Unraced(t)
	const hosts, each = 50, 20
	w := &world{fake.NewNetwork(epoch, fake.Model{}), t}
	host := func(i int) name { return name(fmt.Sprint("h", i)) }
	for i := range 2 * hosts {
		w.host(hypervisor.Host{Name: host(i), Memory: 4096 * gib, CPUs: 4096,
			Link: 1_250_000_000})
	}
	var sent [hosts]int // so many have begun to leave each host
	var under [hosts][]hypervisor.JobID
	send := func(h int) {
		for ; sent[h] < each && len(under[h]) < 2; sent[h]++ {
			vm, load := mixed(h*each + sent[h])
			w.ok(w.Host(host(h)).Boot(vm, load))
			under[h] = append(under[h], w.begin(move{vm: vm, from: host(h),
				to:      host(hosts + (h+sent[h])%hosts),
				options: hypervisor.TransferOptions{Downtime: 30 * ms}}))
		}
	}
	for some := true; some; {
		for h := range hosts {
			under[h] = slices.DeleteFunc(under[h], func(job hypervisor.JobID) bool {
				return w.progress(host(h), job).Status == hypervisor.JobSucceeded
			})
			send(h)
		}
		var next time.Time
		if next, some = w.Next(); some {
			w.AdvanceTo(next)
		}
	}
	if took := w.Now().Sub(epoch); took < 218*time.Second || took > 218300*ms {
		t.Errorf("all have moved after %v, want 218.0 to 218.3 s", took)
	}
}

// mixed is the nth VM of the baselines' mixed scenarios: 0.5 to 4 times 4 GiB with some
// jitter, and a dirty rate of 0 to 50 MB/s up to 0.9 of its memory, by a hash of n.
func mixed(n int) (hypervisor.VM, fake.Workload) {
	x := uint64(n)*0x9E3779B97F4A7C15 + 0x1234567
	x ^= x >> 31
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 29
	size := float64(4096*mib) * []float64{0.5, 1, 1, 2, 4}[x%5] *
		(0.9 + 0.2*float64((x>>8)%1000)/1000)
	memory := hypervisor.Bytes(math.Round(size))
	rate := []hypervisor.Bandwidth{0, 2_500_000, 12_500_000, 25_000_000, 50_000_000}[(x>>20)%5]
	return hypervisor.VM{ID: vmid(fmt.Sprint("vm", n)), Memory: memory, CPUs: 1},
		fake.Workload{ColdRate: rate, Cold: memory / 10 * 9}
}
