package explore

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/sim"
)

// A Counterexample is a way to a violation, without what is not needed for it.
type Counterexample struct {
	Violation Violation
	scene     Scene
	way       []stretch
}

// Steps returns how many steps it takes.
func (c *Counterexample) Steps() int {
	n := 0
	for _, s := range c.way {
		n += max(1, s.usual)
	}
	return n
}

// Commands returns how many lines of the transcript are no comments.
func (c *Counterexample) Commands() int {
	return strings.Count(c.scene.String(), "\n") + len(c.way)
}

// Transcript writes the scene and the steps as [Replay] reads them, with what happened
// and what was violated as comments.
func (c *Counterexample) Transcript() string {
	var b strings.Builder
	what := strings.ReplaceAll(c.Violation.String(), "\n", "\n# ")
	b.WriteString("# " + what + "\n" + c.scene.String() + "\n")
	w := newModel(&c.scene, len(c.way))
	w.Tell = func(what string) {
		if w.Broken != nil {
			return
		}
		fmt.Fprintf(&b, "#   %s %s\n", sim.Clock(w.Now.Sub(Epoch)), what)
	}
	for _, s := range c.way {
		b.WriteString(s.write(w.Scene) + "\n")
		for next := range s.steps(w) {
			if s.usual > 0 {
				b.WriteString("# " + next.Write(w.Scene) + "\n")
			}
			w.apply(next)
		}
	}
	if w.Broken == nil {
		b.WriteString("# and then, until nothing more happens:\n")
		w.Rest(true)
	}
	return b.String()
}

// Replay plays a transcript. It returns the first violation, nil when there is none, and
// an error when the text is no transcript. A step that cannot happen is left out. After
// the last step the world is led to rest, and what then must hold is checked.
func Replay(text string) (*Violation, error) { return ReplayWith(text, nil) }

// ReplayWith plays a transcript of a scene that had policies of one's own: configure is its
// [Scene.Configure].
func ReplayWith(text string, configure Configure) (*Violation, error) {
	head, lines, ok := strings.Cut(text, "\n\n")
	if !ok {
		return nil, fmt.Errorf("an empty line between scene and steps is missing")
	}
	set, err := parse(head)
	if err != nil {
		return nil, err
	}
	set.Configure = configure
	var way []stretch
	for line := range strings.Lines(lines) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if line == "" {
			continue
		}
		s, err := readStretch(set, line)
		if err != nil {
			return nil, err
		}
		way = append(way, s)
	}
	return play(set, way), nil
}

// play takes a way and returns the first violation: on the way, or at rest, with or
// without the hosts that have no power.
func play(set *Scene, way []stretch) *Violation {
	for _, back := range []bool{true, false} {
		w := newModel(set, len(way))
		for _, s := range way {
			for next := range s.steps(w) {
				w.apply(next)
			}
		}
		if w.Broken == nil {
			w.Rest(back)
		}
		if w.Broken != nil {
			return w.Broken
		}
	}
	return nil
}
