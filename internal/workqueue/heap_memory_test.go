package workqueue

import "testing"

type number int

func (a number) Before(b number) bool { return a < b }

func TestACrowdGivesItsMemoryBack(t *testing.T) {
	var h Heap[number]
	for i := range number(1 << 16) {
		h.Push(1<<16 - i)
	}
	h.Delete(func(n number) bool { return n > 10 })
	if cap(h.items) > 1<<12 {
		t.Errorf("10 items have room for %d", cap(h.items))
	}
	for want := number(1); want <= 10; want++ {
		if got := h.Pop(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
