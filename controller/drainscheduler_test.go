package controller_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// A vm waits to leave its host.
type vm struct {
	name  string
	host  int
	sends time.Duration
	at    time.Time // when its migration was created
}

// drains makes hosts a, b and so on, each with that much to send.
func drains(hosts ...[]time.Duration) []controller.Drain {
	all := make([]controller.Drain, len(hosts))
	for i, vms := range hosts {
		all[i].Host = hypervisor.HostName('a' + rune(i))
		for _, s := range vms {
			all[i].Sends += s
		}
	}
	return all
}

// lineOf returns all VMs of hosts that are drained at noon, in the order in which they wait.
func lineOf(turns *controller.DrainScheduler, hosts ...[]time.Duration) []vm {
	var line []vm
	all := drains(hosts...)
	for h, vms := range hosts {
		at, after := time.Time{}, noon.Add(-time.Hour)
		for i, s := range vms {
			at, after = turns.Next(controller.Drain{Host: all[h].Host, Sends: s}, after, noon,
				func() []controller.Drain { return all })
			line = append(line, vm{fmt.Sprintf("%s%d", all[h].Host, i), h, s, at})
		}
	}
	slices.SortStableFunc(line, func(a, b vm) int { return a.at.Compare(b.at) })
	return line
}

// of makes hosts with so many VMs, each of which takes one.
func of(vms ...int) [][]time.Duration {
	var hosts [][]time.Duration
	for _, n := range vms {
		hosts = append(hosts, slices.Repeat([]time.Duration{1}, n))
	}
	return hosts
}

// Of hosts that are drained together as many take turns as may send; when one has no VM left
// that waits, the next follows it. At the end all that are left take turns.
func TestAsManyHostsTakeTurnsAsMaySend(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts [][]time.Duration
		want  string
	}{
		{"alike", of(3, 3, 3, 3), "a0 b0 a1 b1 a2 b2 c0 d0 c1 d1 c2 d2"},
		{"one is left over", of(3, 3, 3, 3, 3), "a0 b0 a1 b1 a2 b2 c0 d0 e0 c1 d1 e1 c2 d2 e2"},
		{"one has as much as all others", of(6, 1, 2, 2, 1),
			"a0 b0 a1 e0 a2 c0 a3 c1 a4 d0 a5 d1"},
		{"the last is the largest", of(1, 2, 3, 4, 10),
			"a0 e0 b0 e1 b1 e2 c0 e3 c1 e4 c2 e5 d0 e6 d1 e7 d2 e8 d3 e9"},
		{"no more than may send", of(2, 3), "a0 b0 a1 b1 b2"},
		{"one VM is large", [][]time.Duration{{1, 1, 1}, {3}, {1, 1, 1}, {1, 1, 1}},
			"a0 b0 a1 a2 c0 d0 c1 d1 c2 d2"},
	} {
		turns := controller.DrainScheduler{Together: 2}
		var order []string
		for _, w := range lineOf(&turns, c.hosts...) {
			order = append(order, w.name)
		}
		if got := strings.Join(order, " "); got != c.want {
			t.Errorf("%s: they go as %s, want %s", c.name, got, c.want)
		}
		later := noon.Add(time.Second)
		z := controller.Drain{Host: "z", Sends: 7}
		if at, next := turns.Next(z, noon, later, noDrains); !at.Equal(later) ||
			!next.Equal(later.Add(7)) {
			t.Errorf("%s: later ones begin at %v, want their own time", c.name, at)
		}
	}
}

func noDrains() []controller.Drain { return nil }

// A host whose VM was moved by a process whose clock is ahead waits behind that, and no other
// host does.
func TestAStampOfTheFutureIsOneHostsOwn(t *testing.T) {
	var turns controller.DrainScheduler
	ahead := noon.Add(time.Hour)
	if at, _ := turns.Next(controller.Drain{Host: "a"}, ahead, noon, noDrains); !at.Equal(ahead) {
		t.Errorf("behind its VM's last migration it is %v", at)
	}
	for i, w := range lineOf(&turns, of(1, 1, 1)...) {
		if w.at.Sub(noon) != time.Duration(i) {
			t.Errorf("%s is created %v later", w.name, w.at.Sub(noon))
		}
	}
}

// send sends the VMs of a line, as many at once as may, one of each host: what the queue does
// for those that take turns. It returns when each host is empty.
func send(line []vm, hosts, lanes int) []time.Duration {
	empty := make([]time.Duration, hosts)
	var until []vm // who is sent; at is when it has arrived
	for now := noon; len(line) > 0 || len(until) > 0; {
		for i := 0; i < len(line) && len(until) < lanes; {
			w := line[i]
			if slices.ContainsFunc(until, func(o vm) bool { return o.host == w.host }) {
				i++
				continue
			}
			w.at = now.Add(w.sends)
			until, line = append(until, w), slices.Delete(line, i, i+1)
		}
		now = slices.MinFunc(until, func(a, b vm) int { return a.at.Compare(b.at) }).at
		until = slices.DeleteFunc(until, func(w vm) bool {
			empty[w.host] = now.Sub(noon) // again, unless this was the last of its host
			return w.at.Equal(now)
		})
	}
	return empty
}

// Whatever is drained, each host's VMs are created one after the other, none before now; and
// the last host is empty at most an eighth and a VM later than is possible.
func TestTheLastHostIsEmptySoon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20)
		hosts := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(size.Draw(t, "size"))
		}), 1, 12), 1, 20).Draw(t, "hosts")
		together := rapid.IntRange(-1, 6).Draw(t, "together")
		lanes := max(1, together)
		turns := controller.DrainScheduler{Together: together}
		line := lineOf(&turns, hosts...)
		last := map[int]time.Time{}
		for _, w := range line {
			if w.at.Before(noon) || !w.at.After(last[w.host]) {
				t.Fatalf("%s is created at %v, after %v", w.name, w.at, last[w.host])
			}
			last[w.host] = w.at
		}
		var sum, most, one time.Duration
		for i, d := range drains(hosts...) {
			sum, most, one = sum+d.Sends, max(most, d.Sends), max(one, slices.Max(hosts[i]))
		}
		least := max(most, (sum-1)/time.Duration(lanes)+1)
		if end := slices.Max(send(line, len(hosts), lanes)); end > least+least/8+one {
			t.Fatalf("%v in %d lanes end after %d; %d is the least", hosts, lanes, end, least)
		}
	})
}

// Where as many may send as there are hosts, or any number, all begin at once.
func TestNoLimitIsNoCost(t *testing.T) {
	for _, together := range []int{3, migration.Unlimited, math.MaxInt} {
		turns := controller.DrainScheduler{Together: together}
		for _, w := range lineOf(&turns, of(1, 1, 1)...) {
			if !w.at.Equal(noon) {
				t.Errorf("%d may send: %s is created at %v", together, w.name, w.at)
			}
		}
	}
}

// Most hosts are empty long before the last.
func TestTheAverageHostIsEmptyEarly(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts [][]time.Duration
		most  time.Duration
	}{
		{"forty alike", slices.Repeat(of(20), 40), 90}, // the last at 160
		{"twelve alike", slices.Repeat(of(20), 12), 37},
		{"from small to large", of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
			19, 20), 22}, // the last at 42
	} {
		turns := controller.DrainScheduler{Together: 5}
		sum := time.Duration(0)
		for _, at := range send(lineOf(&turns, c.hosts...), len(c.hosts), 5) {
			sum += at
		}
		if sum > c.most*time.Duration(len(c.hosts)) {
			t.Errorf("%s: the average is %d, want %d", c.name, int(sum)/len(c.hosts), c.most)
		}
	}
}

// Those that come while the same look goes on follow behind all that are planned.
func TestWhoComesLaterInTheSameLookFollows(t *testing.T) {
	turns := controller.DrainScheduler{Together: 2}
	lineOf(&turns, of(3, 5)...)
	for _, w := range lineOf(&turns, of(3, 5, 4, 1)...) {
		if w.name == "c0" && w.at.Sub(noon) != 5 || w.name == "b0" && !w.at.Equal(noon) {
			t.Errorf("%s is created %d later", w.name, w.at.Sub(noon))
		}
	}
	all := append(drains(of(1)...), controller.Drain{Host: "z"}) // no VM leaves z, as far as is known
	if at, _ := turns.Next(all[1], time.Time{}, noon,
		func() []controller.Drain { return all }); !at.Equal(noon) {
		t.Errorf("z begins at %v", at)
	}
}

// A host sends as fast as it can when its migrations together may fill its link.
func TestFills(t *testing.T) {
	for _, c := range []struct {
		migrations int
		each, link hypervisor.Bandwidth
		want       bool
	}{
		{0, 0, 0, false},
		{1, 0, 100, true},
		{1, 50, 0, true},
		{1, 50, 100, false},
		{2, 50, 100, true},
		{3, 33, 100, false},
		{3, 34, 100, true},
		{2, math.MaxInt64, math.MaxInt64, true},
	} {
		if got := controller.Fills(c.migrations, c.each, c.link); got != c.want {
			t.Errorf("%d of %d on %d: %v", c.migrations, c.each, c.link, got)
		}
	}
}

// A VM holds its place in the order of what is to be sent, whatever nonsense its host says.
func TestSends(t *testing.T) {
	for _, c := range []struct {
		size hypervisor.Bytes
		link hypervisor.Bandwidth
		want time.Duration
	}{
		{5e9, 10 * hypervisor.Gbit, 40},
		{5e9, 0, 40},
		{5e9, 1 * hypervisor.Gbit, 400},
		{0, hypervisor.Gbit, 1},
		{-1, -1, 1},
		{1 << 62, 1, 10 * time.Microsecond},
	} {
		if got := controller.Sends(&store.VM{VM: hypervisor.VM{Memory: c.size}},
			&store.Host{Host: hypervisor.Host{Link: c.link}}); got != c.want {
			t.Errorf("%v at %v: %d ns, want %d", c.size, c.link, got, c.want)
		}
	}
}
