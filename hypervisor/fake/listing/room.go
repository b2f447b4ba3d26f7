package listing

import "slices"

// Insert is slices.Insert of one, for the many lists that are long and change little: it keeps
// room for an eighth more, not for as much again.
func Insert[E any](list []E, i int, e E) []E {
	if n := len(list); n == cap(list) {
		list = append(make([]E, 0, n+n/8+4), list...)
	}
	return slices.Insert(list, i, e)
}

// Delete is slices.Delete of one, which gives room back when less than half of it is used.
func Delete[E any](list []E, i int) []E {
	list = slices.Delete(list, i, i+1)
	if n := len(list); cap(list) > 2*n+8 {
		return append(make([]E, 0, n), list...)
	}
	return list
}

// Again returns a list that was read, empty, to be filled again, unless a burst once filled it
// that was far longer than the n that were needed now.
func Again[E any](list []E, n int) []E {
	if cap(list) > 8*n+1024 {
		return nil
	}
	clear(list)
	return list[:0]
}
