package simtest

import (
	"fmt"
	"math"
	"reflect"

	"github.com/godwit-vm/godwit/migration/placement"
)

// CheckFilter guards a condition on hosts.
func CheckFilter(b *PolicyCheck, f placement.Filter) placement.Filter {
	refuses, explain, idle := f.Refuses, f.Explain, f.Idle
	r := &candidate{policyCheck: b, name: "filter " + f.Name}
	guarded := f
	guarded.Refuses = func(vm *placement.VM, h *placement.Host, o placement.Options) bool {
		return guardTwice(r, vm, h, o, refuses)
	}
	if explain != nil {
		guarded.Explain = func(vm *placement.VM, h *placement.Host, o placement.Options,
		) (need, have string) {
			words := guardTwice(r, vm, h, o, func(vm *placement.VM, h *placement.Host,
				o placement.Options) [2]string {
				need, have := explain(vm, h, o)
				return [2]string{need, have}
			})
			return words[0], words[1]
		}
	}
	if idle != nil {
		guarded.Idle = func(vm *placement.VM, o placement.Options) bool {
			return guardTwice(r, vm, nil, o, func(vm *placement.VM, _ *placement.Host,
				o placement.Options) bool {
				return idle(vm, o)
			})
		}
	}
	return guarded
}

// CheckWeigher guards a preference among hosts: its numbers must be finite.
func CheckWeigher(b *PolicyCheck, w placement.Weigher) placement.Weigher {
	of := w.Of
	r := &candidate{policyCheck: b, name: "weigher " + w.Name}
	guarded := w
	guarded.Of = func(vm *placement.VM, h *placement.Host, o placement.Options) float64 {
		x := guardTwice(r, vm, h, o, func(vm *placement.VM, h *placement.Host, o placement.Options,
		) number {
			return number(math.Float64bits(of(vm, h, o)))
		}).float()
		if math.IsNaN(x) || math.IsInf(x, 0) {
			b.note(r.name, Nonsense, r, "%v is no number to compare hosts by", x)
			return 0
		}
		return x
	}
	return guarded
}

// number is a float64 by its bits: one that is no number is equal to itself.
type number uint64

func (n number) float() float64 { return math.Float64frombits(uint64(n)) }

// String writes the number.
func (n number) String() string { return fmt.Sprint(n.float()) }

// candidate is the question: what about this host for that VM?
type candidate struct {
	policyCheck *PolicyCheck
	name        string
	vm          *placement.VM
	host        *placement.Host
	o           placement.Options
	asked       int
}

func (c *candidate) String() string {
	if c.host == nil {
		return fmt.Sprintf("%s(%s, %s)", c.name, words(c.vm), words(c.o))
	}
	return fmt.Sprintf("%s(%s, %s, %s)", c.name, words(c.vm), words(c.host), words(c.o))
}

// guardTwice asks the same about a host twice.
func guardTwice[T comparable](c *candidate, vm *placement.VM, h *placement.Host, o placement.Options,
	of func(*placement.VM, *placement.Host, placement.Options) T) T {
	var first, again T
	b := c.policyCheck
	if b.found != nil {
		return first
	}
	c.vm, c.host, c.o = vm, h, o
	var shown *candidate
	if c.asked++; sampled(c.asked) {
		shown = &candidate{name: c.name, vm: copied(vm), host: copied(h), o: copied(o)}
	}
	if !b.ask(c.name, c, func() { first = of(vm, h, o) }) ||
		!b.ask(c.name, c, func() { again = of(vm, h, o) }) {
		return *new(T)
	}
	if shown != nil && !(reflect.DeepEqual(shown.vm, vm) && reflect.DeepEqual(shown.host, h) &&
		reflect.DeepEqual(shown.o, o)) {
		b.note(c.name, Meddles, shown, "it may look at the VM and the host, and change nothing")
	}
	if first != again {
		b.note(c.name, Fickle, c, "first %v, then %v", first, again)
	}
	return first
}
