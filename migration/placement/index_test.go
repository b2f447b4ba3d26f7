package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func empty(name hypervisor.HostName, gib int64) placement.Host {
	return placement.Host{Name: name, Memory: hypervisor.Bytes(gib) * hypervisor.GiB, CPUs: 64}
}

func TestBest(t *testing.T) {
	down := empty("n0", 999)
	down.Down = true
	closed := empty("n0", 999)
	closed.Cordoned = true
	full := empty("n0", 999)
	full.Incoming = 2
	narrow := empty("n0", 999)
	narrow.CPUs = 1
	rows := []struct {
		name  string
		hosts []placement.Host
		o     placement.Options
		want  hypervisor.HostName
	}{
		{"no hosts, no target", nil, placement.Options{}, ""},
		{"the host with the most free memory is best",
			[]placement.Host{empty("n1", 32), empty("n3", 64), empty("n2", 48)},
			placement.Options{}, "n3"},
		{"among equals the smaller name is best",
			[]placement.Host{empty("n3", 64), empty("n2", 64), empty("n4", 64)},
			placement.Options{}, "n2"},
		{"the source is passed over", []placement.Host{empty("n1", 32), empty("n2", 64)},
			placement.Options{Source: "n2"}, "n1"},
		{"all better hosts are avoided, the worst is taken",
			[]placement.Host{empty("n1", 32), empty("n2", 64), empty("n3", 48), empty("n4", 128)},
			placement.Options{Source: "n4", Avoid: []hypervisor.HostName{"n2", "n3"}}, "n1"},
		{"no host has room", []placement.Host{empty("n1", 8), empty("n2", 16)},
			placement.Options{}, ""},
		{"a host that is down is not seen", []placement.Host{down, empty("n1", 32)},
			placement.Options{}, "n1"},
		{"a closed host is not seen", []placement.Host{closed, empty("n1", 32)},
			placement.Options{}, "n1"},
		{"a host at the index's inbound limit is not seen", []placement.Host{full, empty("n1", 32)},
			placement.Options{Inbound: 5}, "n1"},
		{"a host without CPUs is passed over", []placement.Host{narrow, empty("n1", 32)},
			placement.Options{}, "n1"},
		{"of two hosts with one name the later counts",
			[]placement.Host{empty("n1", 999), empty("n2", 32), empty("n1", 8)},
			placement.Options{}, "n2"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, ok := placement.NewIndex(2, row.hosts...).Best(web(), row.o)
			if got != row.want || ok != (row.want != "") {
				t.Errorf("Best = %q, %v; want %q", got, ok, row.want)
			}
		})
	}
}

func TestTheStricterInboundLimitCounts(t *testing.T) {
	one := empty("n1", 64)
	one.Incoming = 1
	for _, row := range []struct {
		name         string
		index, asked int
		fits         bool
	}{
		{"no limit anywhere", 0, 0, true},
		{"the index is strict", 1, 5, false},
		{"the index is strict and nothing is asked", 1, 0, false},
		{"the caller is strict", 5, 1, false},
		{"the caller alone has a limit", 0, 1, false},
		{"both leave room", 2, 3, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			x, o := placement.NewIndex(row.index, one), placement.Options{Inbound: row.asked}
			if _, ok := x.Best(web(), o); ok != row.fits {
				t.Errorf("Best found a host: %v, want %v", ok, row.fits)
			}
			if why := x.Check(web(), "n1", o); (len(why) == 0) != row.fits {
				t.Errorf("Check = %v, want acceptance %v", why, row.fits)
			}
		})
	}
}

func TestReservationsSpreadAndComeToAnEnd(t *testing.T) {
	x := placement.NewIndex(1, empty("n1", 64), empty("n2", 64), empty("n3", 30))
	var got []hypervisor.HostName
	for {
		host, ok := x.Best(web(), placement.Options{})
		if !ok {
			break
		}
		got = append(got, host)
		if !x.Reserve(web(), host) {
			t.Fatalf("the reservation on %s was refused", host)
		}
	}
	want := []hypervisor.HostName{"n1", "n2", "n3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets with one inbound migration each (-want +got):\n%s", diff)
	}
	x.Arrive("n2")
	if host, _ := x.Best(web(), placement.Options{}); host != "n2" {
		t.Errorf("after an arrival Best = %q, want n2", host)
	}
}

func TestTheBooksRefuseWhatMakesNoSense(t *testing.T) {
	vm := web()
	vm.Constraints.Apart = []string{"db"}
	huge := &placement.VM{Memory: 1<<63 - 1, CPUs: 1}
	rows := []struct {
		name   string
		change func(*placement.Index) bool
	}{
		{"an unknown host", func(x *placement.Index) bool { return x.Reserve(vm, "n9") }},
		{"an arrival that was not announced", func(x *placement.Index) bool {
			return x.Arrive("n1")
		}},
		{"a cancellation of nothing", func(x *placement.Index) bool { return x.Cancel(vm, "n1") }},
		{"a departure of more memory than is used", func(x *placement.Index) bool {
			return x.Leave(&placement.VM{Memory: 9 * hypervisor.GiB}, "n1")
		}},
		{"a departure of more CPUs than are used", func(x *placement.Index) bool {
			return x.Leave(&placement.VM{CPUs: 2}, "n1")
		}},
		{"a departure from a group that is empty", func(x *placement.Index) bool {
			return x.Leave(&placement.VM{Constraints: vm.Constraints}, "n1")
		}},
		{"a VM of negative size", func(x *placement.Index) bool {
			return x.Reserve(&placement.VM{Memory: -1}, "n1")
		}},
		{"a VM with negative CPUs", func(x *placement.Index) bool {
			return x.Leave(&placement.VM{CPUs: -1}, "n1")
		}},
		{"a number that overflows", func(x *placement.Index) bool { return x.Reserve(huge, "n1") }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			h := empty("n1", 64)
			h.UsedMemory, h.UsedCPUs = 8*hypervisor.GiB, 1
			x := placement.NewIndex(0, h)
			if row.change(x) {
				t.Error("the entry was made")
			}
			got, _ := x.Get("n1")
			if diff := cmp.Diff(h, got); diff != "" {
				t.Errorf("the reservations changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAVMIsCountedOnceInAGroupThatItNamesTwice(t *testing.T) {
	vm := web()
	vm.Constraints.Apart = []string{"db", "web", "db"}
	x := placement.NewIndex(0, empty("n1", 64))
	x.Reserve(vm, "n1")
	got, _ := x.Get("n1")
	if diff := cmp.Diff(map[string]int{"db": 1, "web": 1}, got.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	got.Groups["db"] = 7
	if again, _ := x.Get("n1"); again.Groups["db"] != 1 {
		t.Error("the reservations can be changed through the answer of Get")
	}
}

func TestRefusalsAndHistogram(t *testing.T) {
	down := empty("n4", 8)
	down.Down = true
	x := placement.NewIndex(0, empty("n3", 8), down, empty("n1", 64), empty("n2", 64))
	x.Use()
	o := placement.Options{Source: "n2"}
	want := []placement.Refusal{
		{Host: "n2", Why: reasons("source", "another host", "the source n2")},
		{Host: "n3", Why: reasons("memory", "24GiB", "8GiB")},
		{Host: "n4", Why: reasons("down", "a live host", "down", "memory", "24GiB", "8GiB")},
	}
	if diff := cmp.Diff(want, x.Refusals(web(), o)); diff != "" {
		t.Errorf("Refusals (-want +got):\n%s", diff)
	}
	counts := []placement.Count{{"memory", 2}, {"down", 1}, {"source", 1}}
	if diff := cmp.Diff(counts, x.Histogram(web(), o)); diff != "" {
		t.Errorf("Histogram (-want +got):\n%s", diff)
	}
	if x.Len() != 4 {
		t.Errorf("Len = %d, want 4", x.Len())
	}
	if _, ok := x.Get("n9"); ok {
		t.Error("Get found a host that is not there")
	}
	unknown := reasons("unknown", "a known host", "n9")
	if diff := cmp.Diff(unknown, x.Check(web(), "n9", o)); diff != "" {
		t.Errorf("Check of an unknown host (-want +got):\n%s", diff)
	}
}

func TestOnlyIsTheHostOfThatName(t *testing.T) {
	x := placement.NewIndex(0, placement.Host{Name: "n1"}, placement.Host{Name: "n2", CPUs: 4})
	if got := x.Only("n2"); len(got) != 1 || got[0].Name != "n2" || got[0].CPUs != 4 {
		t.Errorf("Only(n2) = %+v", got)
	}
	if got := x.Only("n9"); len(got) != 0 {
		t.Errorf("Only of an unknown host = %+v", got)
	}
}
