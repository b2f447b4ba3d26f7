package simtest

import (
	"slices"
	"strings"
)

// ShrinkWorld returns the smallest world that it finds for which fails is true, as it is for w, which
// is not changed.
func ShrinkWorld(w *World, fails func(*World) bool) *World {
	s := &shrinker{best: w, fails: fails}
	for before := (*World)(nil); before != s.best; {
		before = s.best
		s.events()
		s.vms()
		s.hosts()
		s.settings()
		s.plain()
		s.seed()
	}
	return s.best
}

type shrinker struct {
	best  *World
	fails func(*World) bool
}

// seeds are tried beside a world's own.
var seeds = []uint64{1, 2, 3}

// try takes a world for the best if it fails, too.
func (s *shrinker) try(w *World) bool {
	for i, seed := range append([]uint64{w.Seed}, seeds...) {
		c := w.Clone()
		c.Seed = seed
		if again := i > 0 && seed == w.Seed; !again && s.fails(c) {
			s.best = c
			return true
		}
	}
	return false
}

// seed gives the world one of the first seeds.
func (s *shrinker) seed() {
	for _, seed := range seeds {
		c := s.best.Clone()
		if c.Seed = seed; slices.Contains(seeds, s.best.Seed) || !s.fails(c) {
			continue
		}
		s.best = c
	}
}

// change tries the best world with a change.
func (s *shrinker) change(how func(*World)) bool {
	w := s.best.Clone()
	how(w)
	return s.try(w)
}

// drop leaves out as many of a list as it can: half of them, a quarter, …, one.
func (s *shrinker) drop(length func() int, without func(w *World, from, to int)) {
	for size := length(); size > 0; size /= 2 {
		for from := 0; from < length(); {
			to := min(from+size, length())
			if !s.change(func(w *World) { without(w, from, to) }) {
				from = to
			}
		}
	}
}

func (s *shrinker) events() {
	s.drop(func() int { return len(s.best.Events) }, func(w *World, from, to int) {
		w.Events = slices.Delete(w.Events, from, to)
	})
}

func (s *shrinker) vms() {
	s.drop(func() int { return len(s.best.VMs) }, func(w *World, from, to int) {
		for i := from; i < to; i++ {
			forget(w, w.VMs[i].Name)
		}
		w.VMs = slices.Delete(w.VMs, from, to)
	})
}

// hosts leaves out hosts, each with its VMs; or else its VMs go to the first host.
func (s *shrinker) hosts() {
	count := func() int { return len(s.best.Hosts) }
	s.drop(count, func(w *World, from, to int) {
		for i := from; i < to; i++ {
			name := w.Hosts[i].Name
			for _, v := range w.VMs {
				if v.Host == name {
					forget(w, v.Name)
				}
			}
			forget(w, name)
		}
		gone := w.HostNames()[from:to]
		w.Hosts = slices.Delete(w.Hosts, from, to)
		for i := len(w.VMs) - 1; i >= 0; i-- {
			if slices.Contains(gone, w.VMs[i].Host) {
				w.VMs = slices.Delete(w.VMs, i, i+1)
			}
		}
	})
	for i := count() - 1; i > 0; i-- {
		s.change(func(w *World) {
			name := w.Hosts[i].Name
			forget(w, name)
			w.Hosts = slices.Delete(w.Hosts, i, i+1)
			for k := range w.VMs {
				if w.VMs[k].Host == name {
					w.VMs[k].Host = w.Hosts[0].Name
				}
			}
		})
	}
}

// forget leaves out the events that name a host or VM.
func forget(w *World, name string) {
	w.Events = slices.DeleteFunc(w.Events, func(e string) bool {
		return slices.Contains(strings.FieldsFunc(e, func(r rune) bool {
			return r == ' ' || r == '='
		}), name)
	})
}
