package explore

import (
	"reflect"
	"unsafe"
)

// Rules say what of a graph counts. Types and fields are named as reflect writes them:
// "agent.Agent.resync". A name that is not met is found by [Hasher.Unused].
type Rules struct {
	Skip []string // fields that do not count
	// Times are integer fields that count nanoseconds of the clock; Epoch, in such
	// nanoseconds since 1970, is when it began. Below zero they are plain numbers.
	Times []string
	Epoch int64
	// Named are types that count in full only where a field in Own refers to them;
	// elsewhere only their named field counts, or, without one, that they are there.
	Named map[string]string
	Own   []string
	// Held are types to which pointers are handed to the caller instead.
	Held []string
	// Over is for types that keep what no longer counts.
	Over map[string]Over
}

// Over says of which fields of a struct count when another field has a value.
type Over struct {
	Field string
	Is    int64
	Only  []string
}

// A Print is what a graph comes to.
type Print struct {
	Sum   uint64
	times uint64 // Σ weight·time
	moves uint64 // Σ weight
}

// Held is a pointer that was found on the way.
type Held struct {
	Path uint64 // where
	To   unsafe.Pointer
	Type reflect.Type // what it points to
}

// At returns the fingerprint as seen at a moment, in nanoseconds since 1970.
func (p *Print) At(now int64) uint64 { return p.Sum + Mix(p.times-p.moves*uint64(now), 7) }

// Add makes another graph, found at a path, a part of the one that was printed. Mark tells
// apart what there is to say about it besides.
func (p *Print) Add(path, mark uint64, part *Print) {
	weight := Mix(path, 9) | 1
	p.Sum += Mix(path^mark, part.Sum)
	p.times += weight * part.times
	p.moves += weight * part.moves
}

// Mix combines two numbers into one; their order matters.
func Mix(a, b uint64) uint64 {
	x := (a ^ 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	x ^= x >> 32
	x = (x ^ b) * 0xc4ceb9fe1a85ec53
	x ^= x >> 29
	x *= 0x94d049bb133111eb
	return x ^ x>>32
}

// String returns a number for a text.
func String(s string) uint64 {
	x := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		x = Mix(x, word)
	}
	word := uint64(0)
	for i := range len(s) {
		word |= uint64(s[i]) << (8 * i)
	}
	return Mix(x, word)
}

// A Hasher makes fingerprints. It belongs to one caller at a time.
type Hasher struct {
	rules Rules
	names map[string]string // what a name is for
	met   map[string]bool
	plans map[reflect.Type]fingerprintVisit
	print Print
	held  []Held
	spare []unsafe.Pointer // what maps have as elements
	depth int
}

// fingerprintVisit adds what is at a place to the print.
type fingerprintVisit func(at unsafe.Pointer, path uint64)

// NewHasher returns a Hasher.
func NewHasher(r Rules) *Hasher {
	m := &Hasher{rules: r, names: map[string]string{}, met: map[string]bool{},
		plans: map[reflect.Type]fingerprintVisit{}}
	for what, list := range map[string][]string{"skip": r.Skip, "time": r.Times, "own": r.Own,
		"held": r.Held} {
		for _, name := range list {
			m.names[name] = what
		}
	}
	return m
}

// Unused lists the names in the rules that no graph had so far.
func (m *Hasher) Unused() []string {
	var list []string
	for name := range m.names {
		if !m.met[name] {
			list = append(list, name)
		}
	}
	for name := range m.rules.Named {
		if !m.met[name] {
			list = append(list, name)
		}
	}
	for name := range m.rules.Over {
		if !m.met[name] {
			list = append(list, name)
		}
	}
	return list
}

// Of returns the print of what root, a pointer, points to, and what is held in it, in no
// particular order, appended to a list.
func (m *Hasher) Of(root any, held []Held) (Print, []Held) {
	m.print, m.held = Print{}, held
	v := reflect.ValueOf(root)
	m.full(v.Type().Elem())(v.UnsafePointer(), 1)
	held, m.held = m.held, nil
	return m.print, held
}

// has reports what a name is for.
func (m *Hasher) has(name, what string) bool {
	if m.names[name] != what {
		return false
	}
	m.met[name] = true
	return true
}

// add counts a number found at a path; zero is as if nothing were there.
func (m *Hasher) add(path, n uint64) {
	if n != 0 {
		m.print.Sum += Mix(path, n)
	}
}

// addTime counts a time in nanoseconds since 1970.
func (m *Hasher) addTime(path uint64, ns int64) {
	weight := Mix(path, 3) | 1
	m.print.Sum += weight
	m.print.times += weight * uint64(ns)
	m.print.moves += weight
}
