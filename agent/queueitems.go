package agent

import (
	"slices"

	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// An item is what is kept about one record.
type item struct {
	key    store.Key
	alarm  workqueue.Alarm[*item]
	timed  bool // the alarm is set
	waits  bool // to be looked at now
	failed int  // how often looking at it has failed in a row
}

// items are those about which anything is kept, in the order of their keys: there are few at
// most times, and then a search is faster than a map.
type items struct {
	busy []*item
	free []*item // that may become another's
}

// spare is how many free items are kept.
const spare = 8

// search returns where the item of a record is, or belongs.
func (s *items) search(key store.Key) (at int, is bool) {
	low, high := 0, len(s.busy)
	for low < high {
		mid := int(uint(low+high) / 2)
		switch i := s.busy[mid]; {
		case i.key == key:
			return mid, true
		case i.key.Kind < key.Kind || i.key.Kind == key.Kind && i.key.Name < key.Name:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

// find returns the item of a record; nil is that nothing is kept about it.
func (s *items) find(key store.Key) *item {
	if at, is := s.search(key); is {
		return s.busy[at]
	}
	return nil
}

// of returns the item of a record, which the caller makes busy.
func (s *items) of(key store.Key) *item {
	at, is := s.search(key)
	if is {
		return s.busy[at]
	}
	var i *item
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = &item{}
		i.alarm.Of = i
	}
	i.key = key
	s.busy = slices.Insert(s.busy, at, i)
	return i
}

// settle lets an item go about which nothing is kept any more.
func (s *items) settle(i *item) {
	if i.timed || i.waits || i.failed > 0 {
		return
	}
	at, _ := s.search(i.key)
	s.busy = slices.Delete(s.busy, at, at+1)
	i.key = store.Key{}
	if len(s.free) < spare {
		s.free = append(s.free, i)
	}
}
