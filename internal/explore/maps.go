package explore

import (
	"reflect"
	"unsafe"
)

// names is a map from texts to pointers, as most are, and its entries. Whatever the texts
// and the pointers are for, such maps are all alike.
type names struct {
	at      map[string]unsafe.Pointer
	entries []entry
}

type entry struct {
	name string
	to   unsafe.Pointer
}

// restore leaves a map alone that is what it was.
func (m *names) restore() {
	same := len(m.at) == len(m.entries)
	for n := 0; same && n < len(m.entries); n++ {
		to, there := m.at[m.entries[n].name]
		same = there && to == m.entries[n].to
	}
	if same {
		return
	}
	clear(m.at)
	for _, e := range m.entries {
		m.at[e.name] = e.to
	}
}

// names keeps a map from texts to pointers.
func (k *Snapshots) names(i *Image, p *plan, at map[string]unsafe.Pointer) {
	n := len(i.names)
	if n < cap(i.names) {
		i.names = i.names[:n+1] // with the entries of earlier ones
	} else {
		i.names = append(i.names, names{})
	}
	kept := i.names[n].entries[:0]
	for name, to := range at {
		kept = append(kept, entry{name, to})
	}
	i.names[n] = names{at, kept}
	if p.element.leaf {
		return
	}
	for _, e := range kept {
		k.follow(i, p.element.element, e.to)
	}
}

// table is any other map and its entries.
type table struct {
	plan *plan
	at   unsafe.Pointer // the map, not a variable that refers to it
	entries
}

// entries are the keys of a map, a slice, and the elements; there are none in the zero value.
type entries struct{ keys, elements reflect.Value }

func (t *table) restore() {
	at := t.plan.at(unsafe.Pointer(&t.at))
	if at.Len() > 0 {
		at.Clear()
	}
	if !t.keys.IsValid() {
		return
	}
	for n := range t.keys.Len() {
		at.SetMapIndex(t.keys.Index(n), t.elements.Index(n))
	}
}

// table keeps a map.
func (k *Snapshots) table(i *Image, p *plan, at unsafe.Pointer) {
	to := *(*unsafe.Pointer)(at)
	if to == nil || !k.met.add(to, p) {
		return
	}
	if p.named {
		k.names(i, p, *(*map[string]unsafe.Pointer)(at))
		return
	}
	v := p.at(at)
	n := v.Len()
	i.tables = append(i.tables, table{plan: p, at: to})
	if n == 0 {
		return
	}
	t := p.room(n)
	i.tables[len(i.tables)-1].entries = t
	k.iter.Reset(v)
	for e := 0; k.iter.Next(); e++ {
		t.keys.Index(e).SetIterKey(&k.iter)
		t.elements.Index(e).SetIterValue(&k.iter)
	}
	k.iter.Reset(reflect.Value{})
	for e := range n {
		k.within(i, p.key, t.keys.Index(e).Addr().UnsafePointer())
		k.within(i, p.element, t.elements.Index(e).Addr().UnsafePointer())
	}
}

// room returns memory for n entries.
func (p *plan) room(n int) (e entries) {
	if last := len(p.spare) - 1; last >= 0 {
		e, p.spare = p.spare[last], p.spare[:last]
	}
	if !e.keys.IsValid() || e.keys.Cap() < n {
		e.keys = reflect.MakeSlice(reflect.SliceOf(p.of.Key()), n, max(n, 4))
		e.elements = reflect.MakeSlice(reflect.SliceOf(p.of.Elem()), n, max(n, 4))
	}
	if e.keys.Len() != n {
		e.keys, e.elements = e.keys.Slice(0, n), e.elements.Slice(0, n)
	}
	return e
}
