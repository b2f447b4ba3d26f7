package controller_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// Few hosts are explained one by one, many together.
func TestManyRefusalsAreToldTogether(t *testing.T) {
	for _, c := range []struct {
		hosts int
		free  func(i int) hypervisor.Bytes // of each
		want  []string
	}{
		{2, func(int) hypervisor.Bytes { return gib }, []string{
			"h00: memory needs 4GiB has 1GiB", "h01: memory needs 4GiB has 1GiB"}},
		{12, func(int) hypervisor.Bytes { return gib }, []string{
			"12 hosts (h00, h01, h02, …): memory needs 4GiB has 1GiB"}},
		{12, func(i int) hypervisor.Bytes { return hypervisor.Bytes(1+i/11) * gib }, []string{
			"11 hosts (h00, h01, h02, …): memory needs 4GiB has 1GiB",
			"h11: memory needs 4GiB has 2GiB"}},
		{12, func(i int) hypervisor.Bytes { return hypervisor.Bytes(1+i) << 20 }, []string{
			"12 hosts (h00, h01, h02, …): memory needs 4GiB has 1MiB (h00), 2MiB (h01), " +
				"3MiB (h02), …"}},
	} {
		b := controller.NewReservations(controller.ReservationsConfig{})
		for i := range c.hosts {
			name := hypervisor.HostName(fmt.Sprintf("h%02d", i))
			b.Host(&store.Host{Host: hypervisor.Host{Name: name, CPUs: 8,
				Memory: c.free(i)}}, false)
		}
		for range 2 { // the second time it is known
			var got []string
			for _, r := range b.Why(&placement.Request{VM: &placement.VM{Memory: 4 * gib}}) {
				got = append(got, fmt.Sprintf("%s needs %s has %s", r.Check, r.Need, r.Have))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%d hosts:\n%s\nwant\n%s", c.hosts, strings.Join(got, "\n"),
					strings.Join(c.want, "\n"))
			}
		}
	}
}

// Hosts that need something else are not told together: each taint is another matter.
func TestEachNeedIsToldByItself(t *testing.T) {
	b := controller.NewReservations(controller.ReservationsConfig{})
	for i := range 12 {
		h := &store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(fmt.Sprintf("h%02d", i)),
			CPUs: 8, Memory: 8 * gib}, Taints: []placement.Taint{{Key: fmt.Sprint("t", i%4),
			Effect: placement.NoSchedule}}}
		b.Host(h, false)
	}
	why := b.Why(&placement.Request{VM: &placement.VM{Memory: 4 * gib}})
	for i, r := range why {
		want := fmt.Sprintf("toleration of t%d:NoSchedule", i)
		if r.Need != want || r.Have != "none" {
			t.Errorf("%s needs %s has %s, want it to need %s", r.Check, r.Need, r.Have, want)
		}
	}
	if len(why) != 4 || why[0].Check != "h00, h04, h08: taints" {
		t.Errorf("it says %v", why)
	}
}

// What is remembered of an answer is what a look at all hosts finds, whatever was reserved
// meanwhile.
func TestWhatIsRememberedOfAnAnswerHolds(t *testing.T) {
	testutil.Unraced(t)
	rapid.Check(t, func(t *rapid.T) {
		b := controller.NewReservations(controller.ReservationsConfig{Inbound: rapid.IntRange(0, 1).Draw(t, "inbound")})
		for i := range 30 { // many refuse
			name := hypervisor.HostName(fmt.Sprintf("x%d", i))
			b.Host(&store.Host{Host: hypervisor.Host{Name: name, Memory: 2 * gib}}, i%2 > 0)
		}
		stands := map[hypervisor.VMID]controller.Usage{}
		t.Repeat(map[string]func(*rapid.T){
			"a host": func(t *rapid.T) {
				h, closed := drawHost(t, rapid.SampledFrom(someHosts).Draw(t, "host"))
				if rapid.IntRange(0, 3).Draw(t, "says more") > 0 {
					h.Facts = nil
				}
				b.Host(h, closed)
			},
			"a VM": func(t *rapid.T) {
				id := rapid.SampledFrom(someVMs).Draw(t, "VM")
				s := drawNext(t, id, stands[id])
				if rapid.IntRange(0, 3).Draw(t, "asks") > 0 {
					s.VM.Constraints = placement.Constraints{}
				}
				stands[id] = s
				b.Say(id, s)
			},
			"": func(t *rapid.T) {
				r := &placement.Request{VM: drawVM(t, "new"),
					Source: rapid.SampledFrom(append(someHosts, "")).Draw(t, "source")}
				if rapid.Bool().Draw(t, "plain") {
					r.VM.Constraints = placement.Constraints{}
				}
				if rapid.IntRange(0, 5).Draw(t, "fails there") == 0 {
					r.Avoid = someHosts[:1]
				}
				said, is := slices.Clone(b.Why(r)), b.WhyAnew(r)
				slices.SortFunc(said, byText)
				slices.SortFunc(is, byText)
				if !slices.Equal(said, is) {
					t.Fatalf("it says\n%v\nand it is\n%v", said, is)
				}
			},
		})
	})
}

func byText(a, b placement.Reason) int { return cmp.Compare(a.String(), b.String()) }

// The reasons leave out why a VM does not move to where it is.
func TestWhyAVMStaysDoesNotListItsOwnHost(t *testing.T) {
	for _, hosts := range []int{1, 2, 40} {
		b := controller.NewReservations(controller.ReservationsConfig{})
		for i := range hosts {
			name := hypervisor.HostName(fmt.Sprintf("n%d", i+1))
			b.Host(&store.Host{Host: hypervisor.Host{Name: name, Memory: 2 * gib}}, i == 0)
		}
		r := &placement.Request{Source: "n1", VM: &placement.VM{ID: "web", Memory: 8 * gib}}
		why := b.Why(r)
		for _, reason := range why {
			if own := strings.HasPrefix(reason.Check, "n1: "); own != (hosts == 1) {
				t.Errorf("of %d hosts: %v", hosts, reason)
			}
		}
		if len(why) == 0 {
			t.Errorf("of %d hosts there is no reason", hosts)
		}
	}
}
