package explore

import "unsafe"

// visits is a set of what was met: values at places. It is emptied without being touched.
type visits struct {
	table []visit // open, its length a power of two
	used  int
	round uint // of what is in it now; zero is none
}

type visit struct {
	at    unsafe.Pointer
	plan  *plan
	round uint
}

func (s *visits) clear() { s.round, s.used = s.round+1, 0 }

// add reports whether a value is new.
func (s *visits) add(at unsafe.Pointer, p *plan) bool {
	if 2*s.used >= len(s.table) {
		s.grow()
	}
	mask := uintptr(len(s.table) - 1)
	for n := uintptr(at) >> 3 * 0x9e3779b1 >> 7 & mask; ; n = (n + 1) & mask {
		switch v := &s.table[n]; {
		case v.round != s.round:
			*v = visit{at, p, s.round}
			s.used++
			return true
		case v.at == at && v.plan == p:
			return false
		}
	}
}

func (s *visits) grow() {
	old := s.table
	s.table, s.used = make([]visit, max(256, 2*len(old))), 0
	for _, v := range old {
		if v.round == s.round {
			s.add(v.at, v.plan)
		}
	}
}
