package explore

import (
	"reflect"
	"unsafe"
)

// Snapshots makes snapshots of graphs. It belongs to one caller at a time.
type Snapshots struct {
	fixed map[string]bool
	plans map[reflect.Type]*plan
	met   visits
	iter  reflect.MapIter
}

// NewSnapshots returns Snapshots that does not follow pointers to the named types, which are
// written as reflect writes them: "store.VM".
func NewSnapshots(fixed ...string) *Snapshots {
	k := &Snapshots{fixed: map[string]bool{}, plans: map[reflect.Type]*plan{}}
	for _, name := range fixed {
		k.fixed[name] = true
	}
	return k
}

// An Image is what a graph held. It can be restored any number of times.
type Image struct {
	values []value
	lists  []list
	names  []names
	tables []table
}

// value is a piece of memory and its copy.
type value struct {
	plan     *plan
	at, copy unsafe.Pointer
}

// list is the elements of a slice and their copies. The header of the slice belongs to
// its owner.
type list struct {
	plan     *plan
	at, copy header
}

// header is laid out as that of every slice.
type header struct {
	first    unsafe.Pointer
	len, cap int
}

// Take returns an image of all that can be reached from root, a pointer. It uses the
// memory of old, an image that is no longer wanted; nil is none.
func (k *Snapshots) Take(root any, old *Image) *Image {
	if old != nil {
		old.recycle()
	} else {
		old = &Image{}
	}
	k.met.clear()
	v := reflect.ValueOf(root)
	k.follow(old, k.planOf(v.Type().Elem()), v.UnsafePointer())
	return old
}

// Restore brings back what the graph held when the image was made.
func (i *Image) Restore() {
	for n := range i.values {
		v := &i.values[n]
		v.plan.at(v.at).Set(v.plan.at(v.copy))
	}
	for n := range i.lists {
		l := &i.lists[n]
		reflect.Copy(l.plan.at(unsafe.Pointer(&l.at)), l.plan.at(unsafe.Pointer(&l.copy)))
	}
	for n := range i.names {
		i.names[n].restore()
	}
	for n := range i.tables {
		i.tables[n].restore()
	}
}

// recycle empties an image, and keeps its memory for the next.
func (i *Image) recycle() {
	for n := range i.values {
		v := &i.values[n]
		v.plan.values = append(v.plan.values, v.copy)
	}
	for n := range i.lists {
		l := &i.lists[n]
		l.plan.lists = append(l.plan.lists, l.copy)
	}
	for n := range i.tables {
		if t := &i.tables[n]; t.keys.IsValid() {
			t.plan.spare = append(t.plan.spare, entries{t.keys, t.elements})
		}
	}
	i.values, i.lists, i.tables = i.values[:0], i.lists[:0], i.tables[:0]
	i.names = i.names[:0]
}

// follow keeps the value at a pointer, and what can be reached from it.
func (k *Snapshots) follow(i *Image, p *plan, at unsafe.Pointer) {
	if at == nil || !k.met.add(at, p) {
		return
	}
	var c unsafe.Pointer
	if n := len(p.values); n > 0 {
		c, p.values = p.values[n-1], p.values[:n-1]
	} else {
		c = reflect.New(p.of).UnsafePointer()
	}
	p.at(c).Set(p.at(at))
	i.values = append(i.values, value{p, at, c})
	k.within(i, p, at)
}

// within follows the pointers in a value that is kept as a part of another.
func (k *Snapshots) within(i *Image, p *plan, at unsafe.Pointer) {
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
		k.list(i, p, *(*header)(at))
	case reflect.Map:
		k.table(i, p, at)
	case reflect.Interface:
		word, held := *(*unsafe.Pointer)(at), unsafe.Add(at, unsafe.Sizeof(at))
		if word != nil {
			k.within(i, k.content(p, word, at), held)
		}
	}
}

// content returns the plan of what an interface holds: it is found by its first word. What
// is held and is no pointer was copied when it was put there: it is not changed.
func (k *Snapshots) content(p *plan, word, at unsafe.Pointer) *plan {
	for n := range p.contents {
		if p.contents[n].word == word {
			return p.contents[n].plan
		}
	}
	held := k.planOf(p.at(at).Elem().Type())
	if held.kind != reflect.Pointer {
		held = &plan{leaf: true}
	}
	p.contents = append(p.contents, content{word, held})
	return held
}

func (k *Snapshots) list(i *Image, p *plan, at header) {
	if at.len == 0 {
		return
	}
	at.cap = at.len
	var c header
	if n := len(p.lists); n > 0 {
		c, p.lists = p.lists[n-1], p.lists[:n-1]
	}
	if c.cap < at.len {
		c.cap = max(at.len, 8)
		c.first = reflect.MakeSlice(p.of, c.cap, c.cap).UnsafePointer()
	}
	c.len = at.len
	i.lists = append(i.lists, list{p, at, c})
	l := &i.lists[len(i.lists)-1]
	reflect.Copy(p.at(unsafe.Pointer(&l.copy)), p.at(unsafe.Pointer(&l.at)))
	for e := range at.len {
		if p.element.leaf {
			break
		}
		k.within(i, p.element, unsafe.Add(at.first, uintptr(e)*p.element.of.Size()))
	}
}
