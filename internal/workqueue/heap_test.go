package workqueue_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// An entry is an item with a number that tells equal keys apart.
type entry struct{ key, n int }

func (a entry) Before(b entry) bool { return a.key < b.key || a.key == b.key && a.n < b.n }

// A queue answers what a sorted list answers.
func TestItemsComeInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h workqueue.Heap[entry]
		var want []entry
		for n := range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				odd := func(e entry) bool { return e.key%2 == 1 }
				h.Delete(odd)
				want = slices.DeleteFunc(want, odd)
			case 1, 2, 3:
				if len(want) > 0 {
					if first := *h.First(); first != want[0] || h.Pop() != want[0] {
						t.Fatalf("%v, want %v", first, want[0])
					}
					want = want[1:]
				}
			default:
				e := entry{rapid.IntRange(0, 20).Draw(t, "key"), n}
				h.Push(e)
				at, _ := slices.BinarySearchFunc(want, e, func(a, b entry) int {
					if a.Before(b) {
						return -1
					}
					return 1
				})
				want = slices.Insert(want, at, e)
			}
			if h.Len() != len(want) {
				t.Fatalf("%d items, want %d", h.Len(), len(want))
			}
		}
		for _, w := range want {
			if got := h.Pop(); got != w {
				t.Fatalf("%v, want %v", got, w)
			}
		}
	})
}
