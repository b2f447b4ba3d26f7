package workqueue

// A set alarm has its time beside it: many are compared for each that is looked at. It counts
// as long as the alarm has its number.
type set[T any] struct {
	at    instant
	seq   int
	alarm *Alarm[T]
}

// Before implements [Item].
func (a set[T]) Before(b set[T]) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (a set[T]) counts() bool { return a.alarm.seq == a.seq }

// queue may have what no longer counts.
type queue[T any] struct{ Heap[set[T]] }

// clean reports whether an alarm counts, and has the next that does at the front.
func (q *queue[T]) clean() bool {
	for q.Len() > 0 {
		if q.First().counts() {
			return true
		}
		q.Pop()
	}
	return false
}

// sweep removes what no longer counts.
func (q *queue[T]) sweep() { q.Delete(func(e set[T]) bool { return !e.counts() }) }
