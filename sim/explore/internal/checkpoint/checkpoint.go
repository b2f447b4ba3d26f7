// Package checkpoint keeps what a graph of Go values holds, and brings it back in
// place: every value keeps its address, so that pointers into the graph, and functions
// that have captured some, stay true. What is allocated later is simply forgotten.
//
// It follows pointers, slices, maps and interfaces, through fields that are not
// exported too. It does not look behind types that it was told are fixed: what nobody
// changes, and what belongs to another graph. A slice is kept up to its length.
//
// Whoever restores a graph owns all of it: nothing else may read it meanwhile.
package checkpoint

import (
	"reflect"
	"time"
	"unsafe"
)

// A Keeper makes checkpoints of graphs. It belongs to one caller at a time.
type Keeper struct {
	fixed map[string]bool
	plans map[reflect.Type]*plan
	seen  map[visit]bool
}

// New returns a Keeper that does not follow pointers to the named types, which are
// written as reflect writes them: "record.VM".
func New(fixed ...string) *Keeper {
	k := &Keeper{fixed: map[string]bool{}, plans: map[reflect.Type]*plan{}, seen: map[visit]bool{}}
	for _, name := range fixed {
		k.fixed[name] = true
	}
	return k
}

// An Image is what a graph held. It can be restored any number of times.
type Image struct {
	values []value
	slices []value
	maps   []table
}

// value is a piece of memory and its copy.
type value struct {
	plan     *plan
	at, copy reflect.Value
}

// table is a map and its entries.
type table struct {
	plan     *plan
	at       reflect.Value
	keys     reflect.Value // a slice
	elements reflect.Value // a slice
}

type visit struct {
	at   unsafe.Pointer
	plan *plan
}

// Keep returns an image of all that can be reached from root, a pointer. It uses the
// memory of old, an image that is no longer wanted; nil is none.
func (k *Keeper) Keep(root any, old *Image) *Image {
	if old != nil {
		k.recycle(old)
	} else {
		old = &Image{}
	}
	clear(k.seen)
	v := reflect.ValueOf(root)
	k.follow(old, k.planOf(v.Type().Elem()), v.UnsafePointer())
	return old
}

// Restore brings back what the graph held when the image was made.
func (i *Image) Restore() {
	for n := range i.values {
		i.values[n].at.Set(i.values[n].copy)
	}
	for n := range i.slices {
		reflect.Copy(i.slices[n].at, i.slices[n].copy)
	}
	for n := range i.maps {
		i.maps[n].restore()
	}
}

func (t *table) restore() {
	t.at.Clear()
	for n := range t.keys.Len() {
		t.at.SetMapIndex(t.keys.Index(n), t.elements.Index(n))
	}
}

// recycle empties an image, and keeps its memory for the next.
func (k *Keeper) recycle(i *Image) {
	for n := range i.values {
		v := &i.values[n]
		v.plan.values.put(v.copy)
	}
	for n := range i.slices {
		v := &i.slices[n]
		v.plan.lists.put(v.copy)
	}
	for n := range i.maps {
		t := &i.maps[n]
		t.plan.lists.put(t.keys, t.elements)
	}
	i.values, i.slices, i.maps = i.values[:0], i.slices[:0], i.maps[:0]
}

// follow keeps the value at a pointer, and what can be reached from it.
func (k *Keeper) follow(i *Image, p *plan, at unsafe.Pointer) {
	if at == nil || k.seen[visit{at, p}] {
		return
	}
	k.seen[visit{at, p}] = true
	v := reflect.NewAt(p.of, at).Elem()
	c, ok := p.values.take()
	if !ok {
		c = reflect.New(p.of).Elem()
	}
	c.Set(v)
	i.values = append(i.values, value{p, v, c})
	k.within(i, p, at)
}

// within follows the pointers in a value that is kept as a part of another.
func (k *Keeper) within(i *Image, p *plan, at unsafe.Pointer) {
	if p.leaf {
		return
	}
	switch p.kind {
	case reflect.Struct:
		for n := range p.fields {
			f := &p.fields[n]
			k.within(i, f.plan, unsafe.Add(at, f.offset))
		}
	case reflect.Array:
		for n := range p.of.Len() {
			k.within(i, p.element, unsafe.Add(at, uintptr(n)*p.element.of.Size()))
		}
	case reflect.Pointer:
		k.follow(i, p.element, *(*unsafe.Pointer)(at))
	case reflect.Slice:
		k.slice(i, p, at)
	case reflect.Map:
		k.table(i, p, at)
	case reflect.Interface:
		if v := reflect.NewAt(p.of, at).Elem().Elem(); v.Kind() == reflect.Pointer {
			if held := k.planOf(v.Type()); !held.leaf {
				k.follow(i, held.element, v.UnsafePointer())
			}
		}
	}
}

func (k *Keeper) slice(i *Image, p *plan, at unsafe.Pointer) {
	v := reflect.NewAt(p.of, at).Elem()
	n := v.Len()
	if n == 0 {
		return
	}
	c, ok := p.lists.take()
	if !ok || c.Cap() < n {
		c = reflect.MakeSlice(reflect.SliceOf(p.element.of), n, max(n, 8))
	}
	c = c.Slice(0, n)
	reflect.Copy(c, v)
	// The header is a copy: the slice may be another one when this is restored.
	first := v.Index(0).Addr().UnsafePointer()
	i.slices = append(i.slices, value{p, reflect.SliceAt(p.element.of, first, n), c})
	for e := range n {
		k.within(i, p.element, unsafe.Add(first, uintptr(e)*p.element.of.Size()))
	}
}

func (k *Keeper) table(i *Image, p *plan, at unsafe.Pointer) {
	v := reflect.ValueOf(reflect.NewAt(p.of, at).Elem().Interface()) // the map, not its variable
	if v.IsNil() || k.seen[visit{v.UnsafePointer(), p}] {
		return
	}
	k.seen[visit{v.UnsafePointer(), p}] = true
	n := v.Len()
	elements, _ := p.lists.take()
	keys, ok := p.lists.take()
	if !ok || keys.Cap() < n || elements.Cap() < n {
		keys = reflect.MakeSlice(reflect.SliceOf(p.of.Key()), n, max(n, 4))
		elements = reflect.MakeSlice(reflect.SliceOf(p.of.Elem()), n, max(n, 4))
	}
	keys, elements = keys.Slice(0, n), elements.Slice(0, n)
	iter, e := v.MapRange(), 0
	for iter.Next() {
		keys.Index(e).SetIterKey(iter)
		elements.Index(e).SetIterValue(iter)
		e++
	}
	i.maps = append(i.maps, table{p, v, keys, elements})
	for e := range n {
		k.within(i, p.key, keys.Index(e).Addr().UnsafePointer())
		k.within(i, p.element, elements.Index(e).Addr().UnsafePointer())
	}
}

// plan says how values of a type are kept.
type plan struct {
	of      reflect.Type
	kind    reflect.Kind
	leaf    bool // nothing that may change can be reached from it
	key     *plan
	element *plan
	fields  []field
	values  pool // memory for copies of values
	lists   pool // memory for copies of elements, and of keys
}

type field struct {
	plan   *plan
	offset uintptr
}

// pool is memory that can be used again.
type pool []reflect.Value

func (p *pool) put(v ...reflect.Value) { *p = append(*p, v...) }

func (p *pool) take() (reflect.Value, bool) {
	n := len(*p)
	if n == 0 {
		return reflect.Value{}, false
	}
	v := (*p)[n-1]
	*p = (*p)[:n-1]
	return v, true
}

// planOf returns the plan of a type. While it is made it counts as one behind which
// something can be reached, which is right for a type that contains itself.
func (k *Keeper) planOf(t reflect.Type) *plan {
	if p := k.plans[t]; p != nil {
		return p
	}
	p := &plan{of: t, kind: t.Kind()}
	k.plans[t] = p
	switch p.kind {
	case reflect.Pointer:
		if p.leaf = k.fixed[t.Elem().String()]; !p.leaf {
			p.element = k.planOf(t.Elem())
		}
	case reflect.Slice, reflect.Array:
		p.element = k.planOf(t.Elem())
		p.leaf = p.kind == reflect.Array && p.element.leaf
	case reflect.Map:
		p.key, p.element = k.planOf(t.Key()), k.planOf(t.Elem())
	case reflect.Interface:
	case reflect.Struct:
		k.planStruct(p)
	default:
		p.leaf = true
	}
	return p
}

func (k *Keeper) planStruct(p *plan) {
	if p.leaf = p.of == reflect.TypeFor[time.Time]() || k.fixed[p.of.String()]; p.leaf {
		return
	}
	for n := range p.of.NumField() {
		f := p.of.Field(n)
		if held := k.planOf(f.Type); !held.leaf {
			p.fields = append(p.fields, field{held, f.Offset})
		}
	}
	p.leaf = len(p.fields) == 0
}
