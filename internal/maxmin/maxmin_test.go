package maxmin_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/maxmin"
)

const none = maxmin.Unlimited

func TestSettle(t *testing.T) {
	type flow struct {
		limit hypervisor.Bandwidth
		links []int
	}
	tests := []struct {
		name     string
		capacity []hypervisor.Bandwidth
		flows    []flow
		want     []hypervisor.Bandwidth
	}{
		{"a flow alone has its link", []hypervisor.Bandwidth{90},
			[]flow{{none, []int{0}}}, []hypervisor.Bandwidth{90}},
		{"two flows into one link have half each", []hypervisor.Bandwidth{90},
			[]flow{{none, []int{0}}, {none, []int{0}}}, []hypervisor.Bandwidth{45, 45}},
		{"what a limited flow leaves goes to the others", []hypervisor.Bandwidth{90},
			[]flow{{10, []int{0}}, {none, []int{0}}, {none, []int{0}}},
			[]hypervisor.Bandwidth{10, 40, 40}},
		{"what a flow cannot use elsewhere it leaves here", []hypervisor.Bandwidth{100, 10},
			[]flow{{none, []int{0}}, {none, []int{0, 1}}}, []hypervisor.Bandwidth{90, 10}},
		{"a rack's up-link binds before the hosts' links", []hypervisor.Bandwidth{100, 100, 30},
			[]flow{{none, []int{0, 2}}, {none, []int{1, 2}}, {none, []int{1}}},
			[]hypervisor.Bandwidth{15, 15, 85}},
		{"the old example of a line of three links", []hypervisor.Bandwidth{10, 20, 30},
			[]flow{{none, []int{0, 1, 2}}, {none, []int{0}}, {none, []int{1}}, {none, []int{2}}},
			[]hypervisor.Bandwidth{5, 5, 15, 25}},
		{"a flow without links has its limit", nil, []flow{{7, nil}}, []hypervisor.Bandwidth{7}},
		{"a stopped flow takes nothing", []hypervisor.Bandwidth{90},
			[]flow{{0, []int{0}}, {none, []int{0}}}, []hypervisor.Bandwidth{0, 90}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var n maxmin.Network
			var links []*maxmin.Link
			for _, c := range test.capacity {
				links = append(links, n.AddLink(c))
			}
			var flows []*maxmin.Flow
			for i, f := range test.flows {
				flows = append(flows, n.Add(i, f.limit, pick(links, f.links)...))
			}
			n.Settle()
			var got []hypervisor.Bandwidth
			for _, f := range flows {
				got = append(got, f.Rate())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rates (-want +got):\n%s", diff)
			}
		})
	}
}

// A flow that was stopped and taken away before the links were shared again had kept the other
// from what was too little for two.
func TestAVMThatIsStoppedAndTakenAwayLeavesWhatItHadClaimed(t *testing.T) {
	var n maxmin.Network
	link := n.AddLink(1)
	one, other := n.Add(1, none, link), n.Add(2, none, link)
	n.Settle()
	n.SetLimit(one, 0)
	n.Remove(one)
	if n.Settle(); other.Rate() != 1 {
		t.Errorf("the other has %v of a link that carries 1", other.Rate())
	}
}

func TestSettleLeavesBystandersAlone(t *testing.T) {
	var n maxmin.Network
	a, b := n.AddLink(100), n.AddLink(100)
	n.Add("a", none, a)
	n.Add("b", none, b)
	n.Settle()
	second := n.Add("second a", none, a)
	var got []any
	for _, f := range n.Settle() {
		got = append(got, f.Owner)
	}
	if diff := cmp.Diff([]any{"a", "second a"}, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	n.Remove(second)
	if got := n.Settle(); len(got) != 1 || got[0].Rate() != 100 {
		t.Errorf("after the removal %d flows changed, want the one that has 100 again", len(got))
	}
	if got := n.Settle(); got != nil {
		t.Errorf("nothing changed, but Settle answered %d flows", len(got))
	}
}

func pick(links []*maxmin.Link, which []int) []*maxmin.Link {
	var out []*maxmin.Link
	for _, i := range which {
		out = append(out, links[i])
	}
	return out
}

// A world is a network and what the test knows about it.
type world struct {
	net   maxmin.Network
	links []*maxmin.Link
	room  []hypervisor.Bandwidth
	flows []*wire
}

type wire struct {
	flow  *maxmin.Flow
	limit hypervisor.Bandwidth
	links []int
}

func newWorld(t *rapid.T) *world {
	w := &world{}
	for range rapid.IntRange(1, 6).Draw(t, "links") {
		c := hypervisor.Bandwidth(rapid.Int64Range(0, 1000).Draw(t, "capacity"))
		w.links, w.room = append(w.links, w.net.AddLink(c)), append(w.room, c)
	}
	return w
}

func (w *world) change(t *rapid.T) {
	limit := rapid.OneOf(rapid.Int64Range(0, 500), rapid.Just(int64(none)))
	what := rapid.IntRange(0, 3).Draw(t, "what")
	if what < 2 || len(w.flows) == 0 {
		f := &wire{limit: hypervisor.Bandwidth(limit.Draw(t, "limit"))}
		f.links = rapid.SliceOfNDistinct(rapid.IntRange(0, len(w.links)-1), 1,
			min(3, len(w.links)), rapid.ID[int]).Draw(t, "route")
		f.flow = w.net.Add(f, f.limit, pick(w.links, f.links)...)
		w.flows = append(w.flows, f)
		return
	}
	i := rapid.IntRange(0, len(w.flows)-1).Draw(t, "flow")
	if f := w.flows[i]; what == 2 {
		f.limit = hypervisor.Bandwidth(limit.Draw(t, "limit"))
		w.net.SetLimit(f.flow, f.limit)
		return
	}
	w.net.Remove(w.flows[i].flow)
	w.flows = slices.Delete(w.flows, i, i+1)
}

// used returns what flows take of a link, and how many and the fastest there are.
func (w *world) used(link int) (sum, most hypervisor.Bandwidth, flows int) {
	for _, f := range w.flows {
		if slices.Contains(f.links, link) {
			sum, most, flows = sum+f.flow.Rate(), max(most, f.flow.Rate()), flows+1
		}
	}
	return sum, most, flows
}

// bottlenecked reports whether f has its limit, or crosses a full link on which
// none has more. A link that n flows share may lose n-1 bytes by rounding, and
// rounding may give one flow up to n bytes more than another.
func (w *world) bottlenecked(f *wire) bool {
	if f.flow.Rate() == f.limit {
		return true
	}
	for _, l := range f.links {
		sum, most, flows := w.used(l)
		slack := hypervisor.Bandwidth(flows)
		if w.room[l]-sum < slack && most-f.flow.Rate() <= slack {
			return true
		}
	}
	return false
}

func TestSharesAreMaxMinFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			w.change(t)
			w.net.Settle()
			for l, room := range w.room {
				if sum, _, _ := w.used(l); sum > room {
					t.Fatalf("link %d carries %d of %d", l, sum, room)
				}
			}
			for i, f := range w.flows {
				if f.flow.Rate() > f.limit || !w.bottlenecked(f) {
					t.Fatalf("flow %d has %d of %d and could have more or less",
						i, f.flow.Rate(), f.limit)
				}
			}
		}
	})
}

func TestChangingStepByStepEqualsBuildingAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			w.change(t)
			if rapid.Bool().Draw(t, "settle") {
				w.net.Settle()
			}
		}
		w.net.Settle()
		var fresh maxmin.Network
		var links []*maxmin.Link
		for _, c := range w.room {
			links = append(links, fresh.AddLink(c))
		}
		for _, f := range w.flows {
			again := fresh.Add(nil, f.limit, pick(links, f.links)...)
			defer func() {
				if again.Rate() != f.flow.Rate() {
					t.Fatalf("anew %d, step by step %d", again.Rate(), f.flow.Rate())
				}
			}()
		}
		fresh.Settle()
	})
}

func ExampleNetwork() {
	var n maxmin.Network
	up, down1, down2 := n.AddLink(100), n.AddLink(100), n.AddLink(100)
	first := n.Add(nil, maxmin.Unlimited, up, down1)
	second := n.Add(nil, 20, up, down2)
	n.Settle()
	fmt.Println(int64(first.Rate()), int64(second.Rate()))
	// Output: 80 20
}

func BenchmarkChurnOfAThousandFlows(b *testing.B) {
	var n maxmin.Network
	var links []*maxmin.Link
	for range 100 {
		links = append(links, n.AddLink(hypervisor.Gbit))
	}
	var flows []*maxmin.Flow
	for i := range 1000 {
		flows = append(flows, n.Add(nil, none, links[i%50], links[50+i%49]))
	}
	n.Settle()
	for i := 0; b.Loop(); i++ {
		n.Remove(flows[i%1000])
		flows[i%1000] = n.Add(nil, none, links[i%50], links[50+i%49])
		n.Settle()
	}
}
