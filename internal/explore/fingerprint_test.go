package explore_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/explore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// node refers to others of its kind.
type node struct {
	Name  string
	Next  *node
	All   map[string]*node
	Peers []*node
	Any   any
	fires int64
	stage uint8
	spare int
	call  func()
}

var rules = explore.Rules{Skip: []string{"explore_test.node.call"},
	Times: []string{"explore_test.node.fires"}, Epoch: 1_000_000,
	Named: map[string]string{"explore_test.node": "Name"},
	Own:   []string{"explore_test.node.All", "explore_test.node.Next"},
	Over: map[string]explore.Over{"explore_test.node": {Field: "stage", Is: 7,
		Only: []string{"Name", "stage"}}}}

func print(n *node, now int64) uint64 {
	p, _ := explore.NewHasher(rules).Of(n, nil)
	return p.At(now)
}

// Graphs that differ in what counts differ, and no others.
func TestWhatCounts(t *testing.T) {
	base := func() *node {
		n := &node{Name: "a", fires: 500, Next: &node{Name: "b"},
			All: map[string]*node{"x": {Name: "x", spare: 1}, "y": {Name: "y"}},
			Any: &node{Name: "z"}}
		n.Peers = []*node{n.Next, n.All["x"], n}
		return n
	}
	tests := []struct {
		name   string
		change func(*node)
		same   bool
	}{
		{"nothing", func(*node) {}, true},
		{"a field that is skipped", func(n *node) { n.call = func() {} }, true},
		{"an empty map for none", func(n *node) { n.Next.All = map[string]*node{} }, true},
		{"another address", func(n *node) { c := *n.Next; n.Next = &c }, true},
		{"what is only named", func(n *node) { n.Any.(*node).spare = 4 }, true},
		{"a name", func(n *node) { n.Any.(*node).Name = "w" }, false},
		{"a field that is not exported", func(n *node) { n.spare = 2 }, false},
		{"something owned", func(n *node) { n.All["x"].spare = 2 }, false},
		{"what is behind a pointer", func(n *node) { n.Next.spare = 1 }, false},
		{"two entries exchanged", func(n *node) {
			n.All["x"], n.All["y"] = n.All["y"], n.All["x"]
		}, false},
		{"the order of a slice", func(n *node) { n.Peers[0], n.Peers[1] = n.Peers[1], n.Peers[0] },
			false},
		{"a shorter slice", func(n *node) { n.Peers = n.Peers[:2] }, false},
		{"no pointer", func(n *node) { n.Next = nil }, false},
		{"another type", func(n *node) { n.Any = "z" }, false},
		{"a time", func(n *node) { n.fires++ }, false},
		{"a time that is never", func(n *node) { n.fires = -1 }, false},
	}
	for _, test := range tests {
		n := base()
		test.change(n)
		if same := print(n, 7) == print(base(), 7); same != test.same {
			t.Errorf("%s: the same is %t, want %t", test.name, same, test.same)
		}
	}
	over, other := base(), base()
	over.stage, other.stage, other.spare, other.fires = 7, 7, 9, 9
	if print(over, 7) != print(other, 7) {
		t.Error("what is over differs in what counts no more")
	}
}

// Times count by their distance from now, those in fields of time.Time as others.
func TestTimesMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type clock struct{ A, B time.Time }
		at := rapid.Int64Range(1, 1<<60)
		a, b, now := at.Draw(t, "a"), at.Draw(t, "b"), at.Draw(t, "now")
		by := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "by")
		of := func(a, b int64) explore.Print {
			c := &clock{time.Unix(0, a), time.Unix(0, b)}
			p, _ := explore.NewHasher(explore.Rules{}).Of(c, nil)
			return p
		}
		one, moved, one2 := of(a, b), of(a+by, b+by), of(a+1, b)
		if one.At(now) != moved.At(now+by) {
			t.Errorf("moved by %d they differ", by)
		}
		if by != 0 && one.At(now) == moved.At(now) {
			t.Errorf("they do not differ by %d", by)
		}
		if one.At(now) == one2.At(now) {
			t.Error("one nanosecond does not count")
		}
	})
	never, _ := explore.NewHasher(explore.Rules{}).Of(&struct{ A time.Time }{}, nil)
	if never.At(1) != never.At(2) {
		t.Error("never comes closer")
	}
}

// Every field of every record counts, as deep as records go.
func TestEveryFieldOfRecordsCounts(t *testing.T) {
	for _, r := range []any{&store.Migration{}, &store.VM{}, &store.Host{},
		&store.Rebuild{}, &store.Lease{}, &store.Leader{}} {
		maker := explore.NewHasher(explore.Rules{})
		zero, _ := maker.Of(r, nil)
		seen := map[uint64]string{zero.At(0): "nothing"}
		fields := 0
		each(reflect.ValueOf(r).Elem(), reflect.TypeOf(r).String(), 0, func(path string) {
			fields++
			p, _ := maker.Of(r, nil)
			if other, known := seen[p.At(0)]; known {
				t.Errorf("%s counts as much as %s", path, other)
			}
			seen[p.At(0)] = path
		})
		if fields < 3 {
			t.Errorf("%T has only %d fields", r, fields)
		}
	}
}

// each sets the fields of v, one after the other, and calls f while each is set.
func each(v reflect.Value, path string, depth int, f func(string)) {
	if depth > 12 || !v.CanSet() {
		return
	}
	zero := reflect.Zero(v.Type())
	defer v.Set(zero)
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(77, 0)))
			f(path)
			return
		}
		for i := range v.NumField() {
			each(v.Field(i), path+"."+v.Type().Field(i).Name, depth+1, f)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f(path)
		each(v.Elem(), path+"*", depth+1, f)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f(path)
		each(v.Index(0), path+"[0]", depth+1, f)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		f(path)
	case reflect.Bool:
		v.SetBool(true)
		f(path)
	case reflect.String:
		v.SetString("x")
		f(path)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
		f(path)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
		f(path)
	case reflect.Float64:
		v.SetFloat(1)
		f(path)
	}
}

// Texts, paths and numbers spread: no two of many are the same.
func TestNumbersSpread(t *testing.T) {
	testutil.Unraced(t)
	seen := map[uint64]bool{}
	for i := range 200_000 {
		for _, n := range []uint64{explore.Mix(1, uint64(i)), explore.Mix(uint64(i)+2, 1),
			explore.String(fmt.Sprint("number ", i))} {
			if seen[n] {
				t.Fatalf("%d is met twice", i)
			}
			seen[n] = true
		}
	}
}

// What is held is handed over, with where it was found; names that are not met are told.
func TestHeldAndUnused(t *testing.T) {
	m := explore.NewHasher(explore.Rules{Held: []string{"explore_test.node", "no.such"}})
	one, two := &node{}, &node{}
	_, held := m.Of(&struct{ M map[string]*node }{map[string]*node{"a": one, "b": two, "c": one}},
		nil)
	paths := map[uint64]bool{}
	for _, h := range held {
		paths[h.Path] = true
	}
	if len(held) != 3 || len(paths) != 3 {
		t.Errorf("%d are held at %d places, want 3 at 3", len(held), len(paths))
	}
	if got := m.Unused(); len(got) != 1 || got[0] != "no.such" {
		t.Errorf("unused is %v, want [no.such]", got)
	}
}
