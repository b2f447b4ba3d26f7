package explore_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/explore"
)

// graph has all that graphs are made of, and a function that knows a part of it.
type graph struct {
	n     int
	names map[string]int
	parts map[*part]part
	list  []part
	refs  []*part
	any   fmt.Stringer
	array [2]*part
	named map[string]*part
	first *part // of whole: at the same address
	whole *whole
	self  *graph
	fixed *fixed
	tell  func() int
}

type whole struct {
	part
	n int
}

type part struct {
	n    int
	next *part
	in   map[int][]string
}

// fixed is not followed.
type fixed struct{ n int }

func (p *part) String() string { return fmt.Sprint(p.n) }

func newGraph() *graph {
	p := &part{n: 1, in: map[int][]string{1: {"one"}}}
	g := &graph{names: map[string]int{"a": 1}, list: []part{{n: 2}, {n: 3}}, refs: []*part{p},
		any: p, array: [2]*part{p}, fixed: &fixed{1}}
	g.parts = map[*part]part{p: {n: 4, next: p}}
	g.named = map[string]*part{"c": p, "d": {n: 7}}
	g.whole = &whole{n: 6}
	g.first = &g.whole.part
	g.self, g.tell = g, func() int { return p.n + g.n }
	return g
}

// changes are what may happen to a graph.
var changes = []struct {
	name string
	how  func(*graph, int)
}{
	{"a number", func(g *graph, n int) { g.n += n }},
	{"what a function knows", func(g *graph, n int) { g.refs[0].n += n }},
	{"a new entry", func(g *graph, n int) { g.names[fmt.Sprint(n)] = n }},
	{"an entry gone", func(g *graph, n int) {
		delete(g.names, fmt.Sprint(n))
		delete(g.names, "a")
	}},
	{"another map", func(g *graph, n int) { g.names = map[string]int{"b": n} }},
	{"an element", func(g *graph, n int) { g.list[0].n = n }},
	{"a longer list", func(g *graph, n int) { g.list = append(g.list, part{n: n}) }},
	{"another list", func(g *graph, n int) { g.list = []part{{n: n}} }},
	{"the front gone", func(g *graph, _ int) { g.list = g.list[min(1, len(g.list)-1):] }},
	{"a new part", func(g *graph, n int) { g.refs[0] = &part{n: n, in: map[int][]string{}} }},
	{"another self", func(g *graph, _ int) { g.self = newGraph() }},
	{"deep inside", func(g *graph, n int) {
		g.any.(*part).in[1] = append(g.any.(*part).in[1], "x")
	}},
	{"another element under a name", func(g *graph, n int) { g.named["d"] = &part{n: n} }},
	{"an element under another name", func(g *graph, n int) {
		g.named["e"] = g.named["d"]
		delete(g.named, "d")
	}},
	{"what begins at the same address", func(g *graph, n int) { g.whole.n = n }},
	{"inside an array", func(g *graph, n int) { g.array[1] = &part{n: n} }},
	{"a key's part", func(g *graph, n int) {
		for p := range g.parts {
			p.next = &part{n: n}
			g.parts[p] = part{n: n}
		}
	}},
}

// text writes all that a graph holds.
func text(g *graph) string {
	s := fmt.Sprint(g.n, g.names, len(g.list), len(g.refs), g.any, g.tell(), g.self.n, g.refs[0])
	for p := range g.list {
		s += fmt.Sprint(g.list[p])
	}
	for p, q := range g.parts {
		s += fmt.Sprint(p == g.any, p.n, p.in, p.next, q.n, q.next == p)
	}
	s += fmt.Sprint(g.whole.n, g.first, g.named["c"], g.named["d"], g.named["e"])
	for _, p := range g.array {
		s += fmt.Sprint(p)
	}
	return s
}

// Whatever happens to a graph, in whatever order images are made and restored, each
// brings back what it was made of.
func TestImagesBringBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, k := newGraph(), explore.NewSnapshots("explore_test.fixed")
		type kept struct {
			image *explore.Image
			text  string
		}
		var images []kept
		var spare *explore.Image
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch what := rapid.IntRange(-3, len(changes)-1).Draw(t, "what"); {
			case what >= 0:
				changes[what].how(g, rapid.IntRange(1, 9).Draw(t, "n"))
			case what == -1 || len(images) == 0:
				images = append(images, kept{k.Take(g, spare), text(g)})
				spare = nil
			default:
				n := rapid.IntRange(0, len(images)-1).Draw(t, "image")
				if images[n].image.Restore(); text(g) != images[n].text {
					t.Fatalf("restored %s\nwant %s", text(g), images[n].text)
				}
				if spare == nil && what == -3 {
					spare = images[n].image
					images = append(images[:n], images[n+1:]...)
				}
			}
		}
	})
}

// Every kind of change is undone, and what is fixed is left alone.
func TestEveryChangeIsUndone(t *testing.T) {
	for _, c := range changes {
		g, k := newGraph(), explore.NewSnapshots("explore_test.fixed")
		before, image := text(g), k.Take(g, nil)
		c.how(g, 5)
		g.fixed.n = 2
		if reflect.DeepEqual(text(g), before) && c.name != "another self" {
			t.Errorf("%s changes nothing", c.name)
		}
		if image.Restore(); text(g) != before || g.self != g {
			t.Errorf("%s is not undone: %s\nwant %s", c.name, text(g), before)
		}
		if g.fixed.n != 2 {
			t.Errorf("%s: what is fixed was restored", c.name)
		}
	}
}
