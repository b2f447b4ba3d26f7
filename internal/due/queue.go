package due

import "slices"

// A set alarm has its time beside it: many are compared for each that is looked at. It counts
// as long as the alarm has its number.
type set[T any] struct {
	at    instant
	seq   int
	alarm *Alarm[T]
}

func (a *set[T]) before(b *set[T]) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (a *set[T]) counts() bool { return a.alarm.seq == a.seq }

// queue is a heap, of which each has four below it. It may hold what no longer counts.
type queue[T any] []set[T]

func (q *queue[T]) push(a set[T]) {
	*q = append(*q, a)
	i := len(*q) - 1
	for ; i > 0 && a.before(&(*q)[(i-1)/4]); i = (i - 1) / 4 {
		(*q)[i] = (*q)[(i-1)/4]
	}
	(*q)[i] = a
}

// clean reports whether an alarm counts, and has the next that does at the front.
func (q *queue[T]) clean() bool {
	for len(*q) > 0 {
		if (*q)[0].counts() {
			return true
		}
		q.shift()
	}
	return false
}

// shift removes the first.
func (q *queue[T]) shift() {
	end := len(*q) - 1
	last := (*q)[end]
	(*q)[end] = set[T]{}
	if *q = (*q)[:end]; end > 0 {
		q.sink(0, last)
	}
}

// sweep removes what no longer counts. The memory of a crowd is not kept.
func (q *queue[T]) sweep() {
	*q = slices.DeleteFunc(*q, func(e set[T]) bool { return !e.counts() })
	if cap(*q) > crowd && len(*q) < cap(*q)/4 {
		*q = slices.Clone(*q)
	}
	for i := (len(*q) - 2) / 4; i >= 0 && len(*q) > 0; i-- {
		q.sink(i, (*q)[i])
	}
}

// sink puts what belongs at a place, or behind it, where it belongs.
func (q *queue[T]) sink(i int, a set[T]) {
	all := *q
	for first := 4*i + 1; first < len(all); first = 4*i + 1 {
		child := first
		for other := first + 1; other < min(first+4, len(all)); other++ {
			if all[other].before(&all[child]) {
				child = other
			}
		}
		if !all[child].before(&a) {
			break
		}
		all[i] = all[child]
		i = child
	}
	all[i] = a
}
