package explore

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unsafe"
)

// A part is one field.
type part struct {
	name   string
	visit  fingerprintVisit // nil for a plain number
	offset uintptr
	size   uintptr // of a number
	salt   uint64
}

func (m *Hasher) planStruct(t reflect.Type) fingerprintVisit {
	if t == reflect.TypeFor[time.Time]() {
		return func(at unsafe.Pointer, path uint64) {
			if when := (*time.Time)(at); !when.IsZero() {
				m.addTime(path, when.UnixNano())
			}
		}
	}
	parts := m.parts(t)
	if over, some := m.rules.Over[t.String()]; some {
		m.met[t.String()] = true
		return m.planOver(t, over, parts)
	}
	return func(at unsafe.Pointer, path uint64) { m.visitAll(parts, at, path) }
}

// parts lists the fields of a struct that count. Those of a struct within it come in its
// place, unless the rules say something about it: that makes no difference to the print.
func (m *Hasher) parts(t reflect.Type) []part {
	var list []part
	for i := range t.NumField() {
		f := t.Field(i)
		name := t.String() + "." + f.Name
		if f.Type.Size() == 0 || m.has(name, "skip") {
			continue
		}
		if m.plain(f.Type) && m.names[name] == "" {
			for _, p := range m.parts(f.Type) {
				p.name, p.offset, p.salt = f.Name, p.offset+f.Offset, p.salt+String(name)
				list = append(list, p)
			}
			continue
		}
		p := part{f.Name, nil, f.Offset, f.Type.Size(), String(name)}
		if m.names[name] != "" || !integral(f.Type.Kind()) {
			p.visit = m.field(t, f)
		}
		list = append(list, p)
	}
	return list
}

// plain reports whether a type is a struct that is no more than its fields.
func (m *Hasher) plain(t reflect.Type) bool {
	_, named := m.rules.Named[t.String()]
	_, over := m.rules.Over[t.String()]
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() && !named && !over
}

func integral(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Uintptr
}

func (m *Hasher) visitAll(parts []part, at unsafe.Pointer, path uint64) {
	for i := range parts {
		p := &parts[i]
		if p.visit != nil {
			p.visit(unsafe.Add(at, p.offset), path+p.salt)
		} else {
			m.add(path+p.salt, integer(unsafe.Add(at, p.offset), p.size))
		}
	}
}

// planOver is for a struct of which not everything counts all the time.
func (m *Hasher) planOver(t reflect.Type, over Over, parts []part) fingerprintVisit {
	decides, ok := t.FieldByName(over.Field)
	if !ok {
		panic(fmt.Sprintf("fingerprint: %s has no field %s", t, over.Field))
	}
	var few []part
	for _, name := range over.Only {
		n := len(few)
		for _, p := range parts {
			if p.name == name {
				few = append(few, p)
			}
		}
		if len(few) == n {
			panic(fmt.Sprintf("fingerprint: %s lacks the field %s", t, name))
		}
	}
	return func(at unsafe.Pointer, path uint64) {
		if integer(unsafe.Add(at, decides.Offset), decides.Type.Size()) == uint64(over.Is) {
			m.visitAll(few, at, path)
			return
		}
		m.visitAll(parts, at, path)
	}
}

// field returns the visit of a field, by what the rules say about it.
func (m *Hasher) field(t reflect.Type, f reflect.StructField) fingerprintVisit {
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
		return m.planMap(f.Type, m.owned)
	case m.has(name, "own") && f.Type.Kind() == reflect.Slice:
		return m.planSlice(f.Type, m.owned)
	case m.has(name, "own"):
		return m.planPointer(f.Type, m.full)
	}
	return m.of(f.Type)
}

// owned visits what an element that is a pointer refers to in full.
func (m *Hasher) owned(element reflect.Type) fingerprintVisit { return m.planPointer(element, m.full) }

// byName visits only the field that names a struct: "rec.Spec.ID" goes through pointers.
func (m *Hasher) byName(t reflect.Type, path string) fingerprintVisit {
	if path == "" {
		return func(unsafe.Pointer, uint64) {}
	}
	name, rest, more := strings.Cut(path, ".")
	f, ok := t.FieldByName(name)
	if !ok || len(f.Index) > 1 {
		panic(fmt.Sprintf("fingerprint: %s has no field %s of its own", t, name))
	}
	var inner fingerprintVisit
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
