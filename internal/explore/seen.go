package explore

import "sync"

// shards is a power of two: so many callers rarely wait for each other.
const shards = 64

// seen is the numbers of the states that were met. It is safe for concurrent use.
type seen struct {
	shards [shards]struct {
		sync.Mutex
		numbers
	}
}

// add reports whether a number is new.
func (s *seen) add(n uint64) bool {
	shard := &s.shards[n%shards]
	shard.Lock()
	defer shard.Unlock()
	return shard.add(n)
}

// numbers is a set of numbers: an open table, a fifth of the size of a map.
type numbers struct {
	table []uint64 // 0 is free; zero itself is stored as 1
	used  int
}

func (s *numbers) add(n uint64) bool {
	if n == 0 {
		n = 1
	}
	if 4*(s.used+1) > 3*len(s.table) {
		old := s.table
		s.table, s.used = make([]uint64, max(64, 2*len(old))), 0
		for _, o := range old {
			if o != 0 {
				s.add(o)
			}
		}
	}
	mask := uint64(len(s.table) - 1)
	for i := n / shards & mask; ; i = (i + 1) & mask {
		switch s.table[i] {
		case n:
			return false
		case 0:
			s.table[i] = n
			s.used++
			return true
		}
	}
}
