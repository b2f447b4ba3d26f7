package explore

import (
	"reflect"
	"time"
	"unsafe"
)

// plan says how values of a type are kept, and has memory for them.
type plan struct {
	of       reflect.Type
	kind     reflect.Kind
	pointer  any  // of the type of pointers to values, nil
	leaf     bool // nothing that may change can be reached from it
	named    bool // a map from texts to pointers
	key      *plan
	element  *plan
	fields   []field
	contents []content // what interfaces of the type were seen to hold

	values []unsafe.Pointer // for copies
	lists  []header         // for copies of elements
	spare  []entries        // for those of maps
}

type field struct {
	plan   *plan
	offset uintptr
}

type content struct {
	word unsafe.Pointer // the first of the interface
	plan *plan
}

// at returns the value at a place, as [reflect.NewAt] does, which looks up the type of the
// pointer every time.
func (p *plan) at(at unsafe.Pointer) reflect.Value {
	pointer := p.pointer
	(*[2]unsafe.Pointer)(unsafe.Pointer(&pointer))[1] = at // as every interface is laid out
	return reflect.ValueOf(pointer).Elem()
}

// planOf returns the plan of a type. While it is made it counts as one behind which
// something can be reached, which is right for a type that contains itself.
func (k *Snapshots) planOf(t reflect.Type) *plan {
	if p := k.plans[t]; p != nil {
		return p
	}
	p := &plan{of: t, kind: t.Kind(), pointer: reflect.Zero(reflect.PointerTo(t)).Interface()}
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
		p.named = p.key.kind == reflect.String && p.element.kind == reflect.Pointer
	case reflect.Interface:
	case reflect.Struct:
		k.planStruct(p)
	default:
		p.leaf = true
	}
	return p
}

func (k *Snapshots) planStruct(p *plan) {
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
