package simtest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/sim"
)

// A Part adds something to a world that is being made.
type Part struct {
	// Name says what it guarantees, or adds.
	Name string
	// Add adds it.
	Add func(*Builder)
	// Holds returns how a world lacks what the part guarantees. nil: it guarantees nothing.
	Holds func(*World) error
}

// A Generator makes worlds. Make one with [Of]; the zero value makes empty ones, which are
// none.
type Generator struct{ parts []Part }

// Of puts a generator together. The parts add to each world in their order, the fleet first.
func Of(parts ...Part) Generator { return Generator{parts} }

// And returns a generator that does all that g does, and then more.
func (g Generator) And(parts ...Part) Generator {
	return Generator{append(g.parts[:len(g.parts):len(g.parts)], parts...)}
}

// String lists the parts.
func (g Generator) String() string {
	names := make([]string, len(g.parts))
	for i, p := range g.parts {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// worldsSeeds is how many seeds a world's own choices are drawn from.
const worldsSeeds = 1 << 16

// Make makes a world out of choices: the same choices make the same world.
func (g Generator) Make(c sim.Chooser) *World {
	m := &Builder{Chooser: c, World: &World{}}
	m.World.Seed = uint64(1 + c.Choose("seed", worldsSeeds))
	for _, p := range g.parts {
		p.Add(m)
	}
	return m.World
}

// Rapid returns a generator of rapid's, for property tests that draw worlds themselves.
func (g Generator) Rapid() *rapid.Generator[*World] {
	return rapid.Custom(func(t *rapid.T) *World { return g.Make(Drawn(t)) })
}

// Holds returns the first guarantee that a world lacks; nil when it has all.
func (g Generator) Holds(w *World) error {
	for _, p := range g.parts {
		if p.Holds == nil {
			continue
		}
		if err := p.Holds(w); err != nil {
			return fmt.Errorf("this world is not %s: %w", p.Name, err)
		}
	}
	return nil
}
