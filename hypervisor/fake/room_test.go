package fake_test

import (
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// A list that grows and shrinks has what was put into it, little room besides, and is seldom
// copied.
func TestAListHasLittleRoom(t *testing.T) {
	const most = 1000
	var list, want []int
	copies, room := 0, 0
	check := func(allowed int) {
		t.Helper()
		if !slices.Equal(list, want) {
			t.Fatalf("the list is %v, not %v", list, want)
		}
		if cap(list) > allowed {
			t.Fatalf("%d have room for %d", len(list), cap(list))
		}
		if cap(list) != room {
			room = cap(list)
			copies++
		}
	}
	for i := range most {
		list, want = fake.Insert(list, i/2, i), slices.Insert(want, i/2, i)
		check(i + i/8 + 4)
	}
	for i := most - 1; i >= 0; i-- {
		list, want = fake.Delete(list, i/2), slices.Delete(want, i/2, i/2+1)
		check(2*i + 8)
	}
	if cap(list) > 8 || copies > 50 {
		t.Errorf("after %d copies nothing has room for %d", copies, cap(list))
	}
}
