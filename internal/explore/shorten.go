package explore

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// A stretch is a line of a transcript: a step, or so many of those that are usual.
type stretch struct {
	usual int // 0 is the step
	step  step
}

// steps yields the steps of a stretch until something is violated. The caller takes them
// one by one: what is usual depends on where the last has led.
func (s stretch) steps(w *World) iter.Seq[step] {
	return func(yield func(step) bool) {
		for range max(1, s.usual) {
			next, some := s.step, true
			if s.usual > 0 {
				next, some = w.Usual()
			}
			if !some || w.Broken != nil || !yield(next) {
				return
			}
		}
	}
}

// usualWord begins the line of a stretch of usual steps, and mostUsual is how many it may
// have.
const (
	usualWord = "usual"
	mostUsual = 10_000
)

// write writes a stretch as a line of the transcript of a scene.
func (s stretch) write(set *Scene) string {
	if s.usual > 0 {
		return fmt.Sprintf("%s %d", usualWord, s.usual)
	}
	return s.step.Write(set)
}

// readStretch reads a line that write wrote. The error says what is wrong with it.
func readStretch(set *Scene, line string) (stretch, error) {
	word, number, _ := strings.Cut(line, " ")
	if word != usualWord {
		s, err := Read(set, line)
		return stretch{step: s}, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || n < 1 || n > mostUsual {
		return stretch{}, fmt.Errorf("%q: write %s and how many steps, 1 to %d", line, usualWord,
			mostUsual)
	}
	return stretch{usual: n}, nil
}

// stretches writes steps with those as one that are the usual ones, one after the other.
func stretches(set *Scene, list []step) []stretch {
	var way []stretch
	w := newModel(set, len(list))
	for _, s := range list {
		s.Odd = false
		line := stretch{step: s}
		if usual, some := w.Usual(); some && s == usual {
			line = stretch{usual: 1}
		}
		way = append(way, line)
		w.apply(s)
	}
	return joined(way)
}

// joined writes stretches of usual steps that follow each other as one.
func joined(way []stretch) []stretch {
	var list []stretch
	for _, s := range way {
		if n := len(list); s.usual > 0 && n > 0 && list[n-1].usual > 0 {
			list[n-1].usual += s.usual
			continue
		}
		list = append(list, s)
	}
	return list
}

// shorten leaves out of a way to a violation everything without which the same is violated.
func shorten(c Config, list []step) *Counterexample {
	set := *c.Scene
	way := stretches(&set, list)
	broken := play(&set, way)
	if broken == nil { // what is played again is the same, if only godwit decides
		broken = &Violation{Invariant: "replay", Detail: "a violation was not met again: " +
			"something decides by more than its arguments"}
		return &Counterexample{*broken, set, way}
	}
	s := shortener{way, func(way []stretch) bool {
		v := play(&set, way)
		if v == nil || v.Invariant != broken.Invariant {
			return false
		}
		broken = v
		return true
	}}
	s.shorten()
	return &Counterexample{*broken, set, s.way}
}

// A shortener makes a way short that stays good.
type shortener struct {
	way  []stretch
	good func([]stretch) bool
}

// shorten ends when there is no line that could be left out, be usual, or be less.
func (s *shortener) shorten() {
	for before := []stretch(nil); !slices.Equal(before, s.way); {
		before = s.way
		s.leaveOut()
		s.makeUsual()
		s.takeFewer()
	}
}

// try takes a way if it is good.
func (s *shortener) try(way []stretch) bool {
	way = joined(way)
	if !s.good(way) {
		return false
	}
	s.way = way
	return true
}

// replace tries other lines instead of some.
func (s *shortener) replace(at, size int, others ...stretch) bool {
	return s.try(slices.Concat(s.way[:at], others, s.way[at+size:]))
}

// leaveOut leaves out lines: many at once first.
func (s *shortener) leaveOut() {
	for size := max(1, len(s.way)/2); size >= 1; size /= 2 {
		for at := 0; at+size <= len(s.way); {
			if !s.replace(at, size) {
				at++
			}
		}
	}
}

// makeUsual takes what is usual instead of a step.
func (s *shortener) makeUsual() {
	for at := 0; at < len(s.way); {
		if s.way[at].usual > 0 || !s.replace(at, 1, stretch{usual: 1}) {
			at++
		}
	}
}

// takeFewer takes fewer of the usual steps: half of them first.
func (s *shortener) takeFewer() {
	for at := range s.way {
		for by := s.way[at].usual / 2; by >= 1; by /= 2 {
			for n := s.way[at].usual - by; n >= 1; n -= by {
				if !s.replace(at, 1, stretch{usual: n}) {
					break
				}
			}
		}
	}
}
