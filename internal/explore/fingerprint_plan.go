package explore

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"unsafe"
)

// of returns the visit of a type met somewhere: in full unless it is named. Plans refer
// to each other through the table, since types may contain themselves.
func (m *Hasher) of(t reflect.Type) fingerprintVisit {
	if name := t.String(); t.Kind() == reflect.Struct {
		if field, named := m.rules.Named[name]; named {
			m.met[name] = true
			return m.byName(t, field)
		}
	}
	return m.full(t)
}

func (m *Hasher) full(t reflect.Type) fingerprintVisit {
	if v := m.plans[t]; v != nil {
		return v
	}
	m.plans[t] = func(at unsafe.Pointer, path uint64) { m.plans[t](at, path) }
	m.plans[t] = m.plan(t)
	return m.plans[t]
}

func (m *Hasher) plan(t reflect.Type) fingerprintVisit {
	switch t.Kind() {
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
		return m.planSlice(t, m.of)
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

func (m *Hasher) planPointer(t reflect.Type, of func(reflect.Type) fingerprintVisit) fingerprintVisit {
	element := t.Elem()
	if m.has(element.String(), "held") {
		return func(at unsafe.Pointer, path uint64) {
			if to := *(*unsafe.Pointer)(at); to != nil {
				m.held = append(m.held, Held{path, to, element})
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

func (m *Hasher) planSlice(t reflect.Type, of func(reflect.Type) fingerprintVisit) fingerprintVisit {
	element, size := of(t.Elem()), t.Elem().Size()
	return func(at unsafe.Pointer, path uint64) {
		s := *(*[]struct{})(at) // only its header is used
		m.add(path, uint64(len(s)))
		first := *(*unsafe.Pointer)(at)
		for i := range len(s) {
			element(unsafe.Add(first, uintptr(i)*size), Mix(path, uint64(i)+1))
		}
	}
}

func (m *Hasher) planArray(t reflect.Type) fingerprintVisit {
	element, size, n := m.of(t.Elem()), t.Elem().Size(), t.Len()
	return func(at unsafe.Pointer, path uint64) {
		for i := range n {
			element(unsafe.Add(at, uintptr(i)*size), Mix(path, uint64(i)+1))
		}
	}
}

// planMap gives every entry a path that follows from its key.
func (m *Hasher) planMap(t reflect.Type, of func(reflect.Type) fingerprintVisit) fingerprintVisit {
	element := of(t.Elem())
	if t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.Pointer {
		return m.planNames(element)
	}
	key := m.of(t.Key())
	spareKey, spare, busy := reflect.New(t.Key()), reflect.New(t.Elem()), false
	return func(at unsafe.Pointer, path uint64) {
		if size(at) == 0 {
			return
		}
		v := reflect.NewAt(t, at).Elem()
		m.add(path, uint64(v.Len()))
		k, e, nested := spareKey, spare, busy
		if nested { // in a map of the same type
			k, e = reflect.New(t.Key()), reflect.New(t.Elem())
		}
		busy = true
		defer func() { busy = nested }()
		for iter := v.MapRange(); iter.Next(); {
			k.Elem().SetIterKey(iter)
			outer := m.print
			m.print = Print{}
			key(k.UnsafePointer(), 5)
			entry := Mix(path, m.print.Sum+m.print.times)
			m.print = outer
			e.Elem().SetIterValue(iter)
			m.add(entry, 1)
			element(e.UnsafePointer(), entry)
		}
	}
}

// size returns how many entries the map at a place has, whatever they are.
func size(at unsafe.Pointer) int { return len(*(*map[int]int)(at)) } // only its header is used

// planNames is for maps from texts to pointers, which most are: whatever the texts and the
// pointers are for, such maps are all alike.
func (m *Hasher) planNames(element fingerprintVisit) fingerprintVisit {
	return func(at unsafe.Pointer, path uint64) {
		if size(at) == 0 {
			return
		}
		entries := *(*map[string]unsafe.Pointer)(at)
		m.add(path, uint64(len(entries)))
		for name, to := range entries {
			entry := Mix(path, String(name)+5)
			m.add(entry, 1)
			n := len(m.spare)
			m.spare = append(m.spare, to)
			element(unsafe.Pointer(&m.spare[n]), entry)
			m.spare = m.spare[:n]
		}
	}
}

// A content is what interfaces of a type were seen to hold.
type fingerprintContent struct {
	word  unsafe.Pointer // the first of the interface
	salt  uint64
	visit fingerprintVisit // of the second
}

func (m *Hasher) planInterface(t reflect.Type) fingerprintVisit {
	var known []fingerprintContent
	return func(at unsafe.Pointer, path uint64) {
		word := *(*unsafe.Pointer)(at)
		if word == nil {
			return
		}
		i := slices.IndexFunc(known, func(c fingerprintContent) bool { return c.word == word })
		if i < 0 {
			i = len(known)
			held := reflect.NewAt(t, at).Elem().Elem().Type()
			known = append(known, fingerprintContent{word, String(held.String()), m.planWord(held)})
		}
		c := &known[i]
		m.add(path, c.salt)
		c.visit(unsafe.Add(at, unsafe.Sizeof(word)), Mix(path, 4))
	}
}

// planWord is for the second word of an interface: a pointer itself, or one to the value.
func (m *Hasher) planWord(t reflect.Type) fingerprintVisit {
	inner := m.of(t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Map:
		return inner
	case reflect.Struct, reflect.Array:
		if t.Size() == unsafe.Sizeof(uintptr(0)) {
			panic(fmt.Sprintf("fingerprint: an interface holds a %s; it may be a pointer", t))
		}
	}
	return func(at unsafe.Pointer, path uint64) { inner(*(*unsafe.Pointer)(at), path) }
}
