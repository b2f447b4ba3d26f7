package names

import "maps"

// A Register finds values by their names. There may be very many, of which the few that are
// busy now are asked for again and again: they are found without a look into all, where each
// look is several waits for memory. The zero value is empty and ready.
type Register[N ~string, V any] struct {
	all  map[N]*V
	busy [64]entry[N, V]
}

type entry[N ~string, V any] struct {
	name  N
	value *V
}

// Grow makes room for so many, if there is nothing yet.
func (r *Register[N, V]) Grow(n int) {
	if r.all == nil {
		r.all = make(map[N]*V, n)
	}
}

// Put enters a value, which is not nil, instead of the one that has its name.
func (r *Register[N, V]) Put(name N, v *V) {
	if r.all == nil {
		r.all = map[N]*V{}
	}
	r.all[name] = v
	*r.place(name) = entry[N, V]{name, v}
}

// Get returns the value of a name; nil is that it has none.
func (r *Register[N, V]) Get(name N) *V {
	e := r.place(name)
	if e.value != nil && e.name == name {
		return e.value
	}
	v := r.all[name]
	if v != nil {
		*e = entry[N, V]{name, v}
	}
	return v
}

// Drop forgets the value of a name, if it has one.
func (r *Register[N, V]) Drop(name N) {
	delete(r.all, name)
	if e := r.place(name); e.name == name {
		*e = entry[N, V]{}
	}
}

// Len returns how many there are.
func (r *Register[N, V]) Len() int { return len(r.all) }

// All lists them, in no order.
func (r *Register[N, V]) All() func(yield func(N, *V) bool) { return maps.All(r.all) }

// place returns where a name is among the busy: by its end, in which names differ most.
func (r *Register[N, V]) place(name N) *entry[N, V] {
	if len(name) < 6 {
		return &r.busy[short(string(name))]
	}
	end := name[len(name)-6:]
	sum := end[0] + 3*end[1] + 5*end[2] + 7*end[3] + 9*end[4] + 11*end[5]
	return &r.busy[sum%64]
}

// short is the place of a name of less than six letters.
func short(name string) (sum byte) {
	for i := range len(name) {
		sum = 3*sum + name[i]
	}
	return sum % 64
}
