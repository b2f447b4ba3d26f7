// Package fingerprint sums up what a graph of Go values holds in a few numbers that two
// graphs share when they hold the same.
//
// The order of a map's entries does not matter, nor do addresses, nor whether what is
// empty is nil. Times count by their distance from a moment that is named later: the
// sum of their products with numbers that depend on where they are found is kept, so
// that the moment can move and the graph need not be looked at again.
//
// A fingerprint has 64 bits. Of a hundred million graphs that differ, two have the same
// one with a probability of less than one in three thousand.
package fingerprint

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unsafe"
)

// Rules say what of a graph counts. Types and fields are named as reflect writes them:
// "agent.Agent.resync". A name that is not met is found by [Maker.Unused].
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
	Held  []Held // in no particular order
}

// Held is a pointer that was found on the way.
type Held struct {
	Path uint64 // where
	To   unsafe.Pointer
	Type reflect.Type // what it points to
}

// At returns the fingerprint as seen at a moment, in nanoseconds since 1970.
func (p *Print) At(now int64) uint64 { return p.Sum + Mix(p.times-p.moves*uint64(now), 7) }

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

// A Maker makes fingerprints. It belongs to one caller at a time.
type Maker struct {
	rules Rules
	names map[string]string // what a name is for
	met   map[string]bool
	plans map[reflect.Type]visit
	print *Print
	depth int
}

// visit adds what is at a place to the print.
type visit func(at unsafe.Pointer, path uint64)

// New returns a Maker.
func New(r Rules) *Maker {
	m := &Maker{rules: r, names: map[string]string{}, met: map[string]bool{},
		plans: map[reflect.Type]visit{}}
	for what, list := range map[string][]string{"skip": r.Skip, "time": r.Times, "own": r.Own,
		"held": r.Held} {
		for _, name := range list {
			m.names[name] = what
		}
	}
	return m
}

// Unused lists the names in the rules that no graph had so far.
func (m *Maker) Unused() []string {
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

// Of returns the print of what root, a pointer, points to. The list of what is held
// takes the memory of held.
func (m *Maker) Of(root any, held []Held) Print {
	p := Print{Held: held[:0]}
	m.print = &p
	v := reflect.ValueOf(root)
	m.full(v.Type().Elem())(v.UnsafePointer(), 1)
	m.print = nil
	return p
}

// has reports what a name is for.
func (m *Maker) has(name, what string) bool {
	if m.names[name] != what {
		return false
	}
	m.met[name] = true
	return true
}

// add counts a number found at a path; zero is as if nothing were there.
func (m *Maker) add(path, n uint64) {
	if n != 0 {
		m.print.Sum += Mix(path, n)
	}
}

// addTime counts a time in nanoseconds since 1970.
func (m *Maker) addTime(path uint64, ns int64) {
	weight := Mix(path, 3) | 1
	m.print.Sum += weight
	m.print.times += weight * uint64(ns)
	m.print.moves += weight
}

// of returns the visit of a type met somewhere: in full unless it is named. Plans refer
// to each other through the table, since types may contain themselves.
func (m *Maker) of(t reflect.Type) visit {
	if name := t.String(); t.Kind() == reflect.Struct {
		if field, named := m.rules.Named[name]; named {
			m.met[name] = true
			return m.byName(t, field)
		}
	}
	return m.full(t)
}

func (m *Maker) full(t reflect.Type) visit {
	if v := m.plans[t]; v != nil {
		return v
	}
	m.plans[t] = func(at unsafe.Pointer, path uint64) { m.plans[t](at, path) }
	m.plans[t] = m.plan(t)
	return m.plans[t]
}

func (m *Maker) plan(t reflect.Type) visit {
	switch t.Kind() {
	case reflect.Bool:
		return func(at unsafe.Pointer, path uint64) {
			if *(*bool)(at) {
				m.add(path, 1)
			}
		}
	case reflect.String:
		return func(at unsafe.Pointer, path uint64) {
			if s := *(*string)(at); s != "" {
				m.add(path, String(s))
			}
		}
	case reflect.Float64:
		return func(at unsafe.Pointer, path uint64) {
			m.add(path, math.Float64bits(*(*float64)(at)))
		}
	case reflect.Struct:
		return m.planStruct(t)
	case reflect.Pointer:
		return m.planPointer(t, m.of)
	case reflect.Slice:
		return m.planSlice(t)
	case reflect.Array:
		return m.planArray(t)
	case reflect.Map:
		return m.planMap(t, m.of)
	case reflect.Interface:
		return m.planInterface(t)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		panic(fmt.Sprintf("fingerprint: a %s has no content; skip the field", t))
	}
	size := t.Size()
	return func(at unsafe.Pointer, path uint64) { m.add(path, integer(at, size)) }
}

func integer(at unsafe.Pointer, size uintptr) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(at))
	case 2:
		return uint64(*(*uint16)(at))
	case 4:
		return uint64(*(*uint32)(at))
	}
	return *(*uint64)(at)
}

func (m *Maker) planPointer(t reflect.Type, of func(reflect.Type) visit) visit {
	element := t.Elem()
	if m.has(element.String(), "held") {
		return func(at unsafe.Pointer, path uint64) {
			if to := *(*unsafe.Pointer)(at); to != nil {
				m.print.Held = append(m.print.Held, Held{path, to, element})
			}
		}
	}
	inner := of(element)
	return func(at unsafe.Pointer, path uint64) {
		to := *(*unsafe.Pointer)(at)
		if to == nil {
			return
		}
		if m.depth++; m.depth > 200 {
			panic(fmt.Sprintf("fingerprint: %s refers to itself; name it", element))
		}
		m.add(path, 1)
		inner(to, Mix(path, 2))
		m.depth--
	}
}

func (m *Maker) planSlice(t reflect.Type) visit {
	element, size := m.of(t.Elem()), t.Elem().Size()
	return func(at unsafe.Pointer, path uint64) {
		s := *(*[]struct{})(at) // only its header is used
		m.add(path, uint64(len(s)))
		first := *(*unsafe.Pointer)(at)
		for i := range len(s) {
			element(unsafe.Add(first, uintptr(i)*size), Mix(path, uint64(i)+1))
		}
	}
}

func (m *Maker) planArray(t reflect.Type) visit {
	element, size, n := m.of(t.Elem()), t.Elem().Size(), t.Len()
	return func(at unsafe.Pointer, path uint64) {
		for i := range n {
			element(unsafe.Add(at, uintptr(i)*size), Mix(path, uint64(i)+1))
		}
	}
}

// planMap gives every entry a path that follows from its key.
func (m *Maker) planMap(t reflect.Type, of func(reflect.Type) visit) visit {
	key, element := m.of(t.Key()), of(t.Elem())
	spareKey, spare, busy := reflect.New(t.Key()), reflect.New(t.Elem()), false
	return func(at unsafe.Pointer, path uint64) {
		v := reflect.NewAt(t, at).Elem()
		if v.Len() == 0 {
			return
		}
		m.add(path, uint64(v.Len()))
		k, e, nested := spareKey, spare, busy
		if nested { // in a map of the same type
			k, e = reflect.New(t.Key()), reflect.New(t.Elem())
		}
		busy = true
		defer func() { busy = nested }()
		for iter := v.MapRange(); iter.Next(); {
			k.Elem().SetIterKey(iter)
			outer := *m.print
			*m.print = Print{Held: outer.Held}
			key(k.UnsafePointer(), 5)
			entry := Mix(path, m.print.Sum+m.print.times)
			outer.Held, *m.print = m.print.Held, outer
			e.Elem().SetIterValue(iter)
			m.add(entry, 1)
			element(e.UnsafePointer(), entry)
		}
	}
}

func (m *Maker) planInterface(t reflect.Type) visit {
	return func(at unsafe.Pointer, path uint64) {
		v := reflect.NewAt(t, at).Elem().Elem()
		if !v.IsValid() {
			return
		}
		m.add(path, String(v.Type().String()))
		if v.Kind() == reflect.Pointer { // the second word is the pointer itself
			m.of(v.Type())(unsafe.Add(at, unsafe.Sizeof(uintptr(0))), Mix(path, 4))
			return
		}
		box := reflect.New(v.Type())
		box.Elem().Set(v)
		m.of(v.Type())(box.UnsafePointer(), Mix(path, 4))
	}
}

// A part is one field.
type part struct {
	name   string
	visit  visit
	offset uintptr
	salt   uint64
}

func (m *Maker) planStruct(t reflect.Type) visit {
	if t == reflect.TypeFor[time.Time]() {
		return func(at unsafe.Pointer, path uint64) {
			if when := (*time.Time)(at); !when.IsZero() {
				m.addTime(path, when.UnixNano())
			}
		}
	}
	var parts []part
	for i := range t.NumField() {
		if f := t.Field(i); !m.has(t.String()+"."+f.Name, "skip") && f.Type.Size() > 0 {
			parts = append(parts, part{f.Name, m.field(t, f), f.Offset,
				String(t.String() + "." + f.Name)})
		}
	}
	all := func(at unsafe.Pointer, path uint64) { visitAll(parts, at, path) }
	over, some := m.rules.Over[t.String()]
	if !some {
		return all
	}
	m.met[t.String()] = true
	return m.planOver(t, over, parts)
}

func visitAll(parts []part, at unsafe.Pointer, path uint64) {
	for i := range parts {
		p := &parts[i]
		p.visit(unsafe.Add(at, p.offset), path+p.salt)
	}
}

// planOver is for a struct of which not everything counts all the time.
func (m *Maker) planOver(t reflect.Type, over Over, parts []part) visit {
	decides, ok := t.FieldByName(over.Field)
	if !ok {
		panic(fmt.Sprintf("fingerprint: %s has no field %s", t, over.Field))
	}
	var few []part
	for _, name := range over.Only {
		for _, p := range parts {
			if p.name == name {
				few = append(few, p)
			}
		}
	}
	if len(few) != len(over.Only) {
		panic(fmt.Sprintf("fingerprint: %s lacks one of the fields %v", t, over.Only))
	}
	return func(at unsafe.Pointer, path uint64) {
		if integer(unsafe.Add(at, decides.Offset), decides.Type.Size()) == uint64(over.Is) {
			visitAll(few, at, path)
			return
		}
		visitAll(parts, at, path)
	}
}

// field returns the visit of a field, by what the rules say about it.
func (m *Maker) field(t reflect.Type, f reflect.StructField) visit {
	name := t.String() + "." + f.Name
	switch {
	case m.has(name, "time"):
		return func(at unsafe.Pointer, path uint64) {
			switch ns := *(*int64)(at); {
			case ns < 0 || ns == math.MaxInt64:
				m.add(path, uint64(ns))
			case ns < m.rules.Epoch:
				m.addTime(path, m.rules.Epoch+ns)
			default:
				m.addTime(path, ns)
			}
		}
	case m.has(name, "own") && f.Type.Kind() == reflect.Map:
		return m.planMap(f.Type, func(e reflect.Type) visit { return m.planPointer(e, m.full) })
	case m.has(name, "own"):
		return m.planPointer(f.Type, m.full)
	}
	return m.of(f.Type)
}

// byName visits only the field that names a struct: "rec.Spec.ID" goes through pointers.
func (m *Maker) byName(t reflect.Type, path string) visit {
	if path == "" {
		return func(unsafe.Pointer, uint64) {}
	}
	name, rest, more := strings.Cut(path, ".")
	f, ok := t.FieldByName(name)
	if !ok || len(f.Index) > 1 {
		panic(fmt.Sprintf("fingerprint: %s has no field %s of its own", t, name))
	}
	var inner visit
	switch {
	case !more:
		inner = m.of(f.Type)
	case f.Type.Kind() == reflect.Pointer:
		behind := m.byName(f.Type.Elem(), rest)
		inner = func(at unsafe.Pointer, path uint64) {
			if to := *(*unsafe.Pointer)(at); to != nil {
				behind(to, path)
			}
		}
	default:
		inner = m.byName(f.Type, rest)
	}
	return func(at unsafe.Pointer, path uint64) { inner(unsafe.Add(at, f.Offset), path) }
}
