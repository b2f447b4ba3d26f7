package fake

import "slices"

// An alike keeps values so that those that come one after the other and are the same are one.
// The zero value is ready.
type alike[T comparable] struct{ last *T }

// Keep returns where v is kept. It is not to be changed there.
func (a *alike[T]) Keep(v T) *T {
	if a.last == nil || *a.last != v {
		a.last = new(v)
	}
	return a.last
}

// A news is what has come up since it was last taken. The zero value is nothing.
type news[E any] struct {
	fresh, told []E
}

// Add adds what has come up.
func (n *news[E]) Add(e E) {
	if len(n.fresh) == cap(n.fresh) { // there may be very many at first
		n.fresh = slices.Grow(n.fresh, len(n.fresh)+1)
	}
	n.fresh = append(n.fresh, e)
}

// Take returns all of it, oldest first; it is valid until the next call that finds something.
func (n *news[E]) Take() []E {
	if len(n.fresh) == 0 {
		return nil
	}
	n.told, n.fresh = n.fresh, reuse(n.told, len(n.fresh))
	return n.told
}

// insertAt is slices.Insert of one, for the many lists that are long and change little: it keeps
// room for an eighth more, not for as much again.
func insertAt[E any](list []E, i int, e E) []E {
	if n := len(list); n == cap(list) {
		list = append(make([]E, 0, n+n/8+4), list...)
	}
	return slices.Insert(list, i, e)
}

// roomier returns a list with room for another, and half as many more if there was none: for
// lists to which, as a rule, many come one after the other.
func roomier[E any](list []E) []E {
	if n := len(list); n == cap(list) {
		return append(make([]E, 0, n+n/2+4), list...)
	}
	return list
}

// deleteAt is slices.Delete of one, which gives room back when less than half of it is used.
func deleteAt[E any](list []E, i int) []E {
	list = slices.Delete(list, i, i+1)
	if n := len(list); cap(list) > 2*n+8 {
		return append(make([]E, 0, n), list...)
	}
	return list
}

// reuse returns a list that was read, empty, to be filled again, unless a burst once filled it
// that was far longer than the n that were needed now. What it refers to it may keep for a while.
func reuse[E any](list []E, n int) []E {
	if cap(list) > 8*n+1024 {
		return nil
	}
	return list[:0]
}
