package simtest

import (
	"reflect"
	"testing"
	"time"
)

// nest has all that a value may refer to something with, at any depth.
type nest struct {
	Pointer *nest
	Slice   []nest
	Map     map[string]nest
	Words   []string
	Deep    struct{ Numbers [][]int }
	At      time.Time
	Plain   struct{ A, B int }
}

func filled(depth int) nest {
	if depth == 0 {
		return nest{}
	}
	inner := filled(depth - 1)
	n := nest{Pointer: &inner, Slice: []nest{filled(depth - 1), {}}, Words: []string{"a", "b"},
		Map: map[string]nest{"x": filled(depth - 1)}, At: time.Unix(1, 2).UTC()}
	n.Deep.Numbers, n.Plain.B = [][]int{{1}, {2, 3}}, 4
	return n
}

// spoil writes all that is there, at any depth.
func (n *nest) spoil() {
	if n.Pointer != nil {
		n.Pointer.spoil()
	}
	for i := range n.Slice {
		n.Slice[i].spoil()
	}
	for k, v := range n.Map {
		v.spoil() // what it shares
		delete(n.Map, k)
	}
	for i := range n.Words {
		n.Words[i] = "spoilt"
	}
	for _, numbers := range n.Deep.Numbers {
		numbers[0] = -1
	}
	n.Plain.A = -1
}

func TestACopyIsEqualAndSharesNothing(t *testing.T) {
	original := filled(3)
	copy, of := copied(original), copied(&original)
	if !reflect.DeepEqual(copy, original) || !reflect.DeepEqual(of, &original) {
		t.Fatalf("it is another: %+v", copy)
	}
	original.spoil()
	if want := filled(3); !reflect.DeepEqual(copy, want) || !reflect.DeepEqual(of, &want) {
		t.Errorf("it changes with what it is a copy of: %+v", copy)
	}
	if reflect.DeepEqual(copied(nest{Words: []string{}}), nest{}) {
		t.Error("what is empty is not what is not there")
	}
}
