package workqueue

import "slices"

// An Item goes before others. Of two different items just one goes before the other.
type Item[T any] interface {
	Before(other T) bool
}

// A Heap is a priority queue; container/heap would box every element. The zero value is empty and ready.
type Heap[T Item[T]] struct{ items []T }

// Len returns how many items are in the queue.
func (h *Heap[T]) Len() int { return len(h.items) }

// First returns the first item. The queue must not be empty, as for Pop.
func (h *Heap[T]) First() *T { return &h.items[0] }

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	all := h.items
	i := len(all) - 1
	for parent := (i - 1) / 2; i > 0 && item.Before(all[parent]); parent = (i - 1) / 2 {
		all[i] = all[parent]
		i = parent
	}
	all[i] = item
}

// Pop removes the first item and returns it.
func (h *Heap[T]) Pop() T {
	first, end := h.items[0], len(h.items)-1
	last := h.items[end]
	clear(h.items[end:])
	if h.items = h.items[:end]; end > 0 {
		h.sink(0, last)
	}
	return first
}

// Delete removes all items that del answers true for. It gives memory back that a crowd of items
// took.
func (h *Heap[T]) Delete(del func(T) bool) {
	const crowd = 1 << 12
	h.items = slices.DeleteFunc(h.items, del)
	if cap(h.items) > crowd && len(h.items) < cap(h.items)/4 {
		h.items = slices.Clone(h.items)
	}
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.sink(i, h.items[i])
	}
}

// sink puts an item at a place, or below it, where it belongs.
func (h *Heap[T]) sink(i int, item T) {
	all := h.items
	for child := 2*i + 1; child < len(all); child = 2*i + 1 {
		if other := child + 1; other < len(all) && all[other].Before(all[child]) {
			child = other
		}
		if !all[child].Before(item) {
			break
		}
		all[i] = all[child]
		i = child
	}
	all[i] = item
}
