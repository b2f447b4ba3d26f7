package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/explore/internal/scene"
	"github.com/godwit-vm/godwit/sim/explore/internal/stage"
	"github.com/godwit-vm/godwit/sim/explore/internal/steps"
)

// A Counterexample is a way to a violation, without what is not needed for it.
type Counterexample struct {
	Violation Violation
	scene     Scene
	steps     []step
}

// Steps returns how many steps it takes.
func (c *Counterexample) Steps() int { return len(c.steps) }

// Transcript writes the scene and the steps as [Replay] reads them, with what happened
// and what was violated as comments.
func (c *Counterexample) Transcript() string {
	var b strings.Builder
	what := strings.ReplaceAll(c.Violation.String(), "\n", "\n# ")
	b.WriteString("# " + what + "\n" + c.scene.String() + "\n")
	w := stage.New(&c.scene, len(c.steps))
	w.Tell = func(what string) {
		if w.Broken != nil {
			return
		}
		fmt.Fprintf(&b, "#   %s %s\n", sim.Clock(w.Now.Sub(stage.Epoch)), what)
	}
	for _, s := range c.steps {
		b.WriteString(s.Write(w.Scene) + "\n")
		w.Apply(s)
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
	set, err := scene.Parse(head)
	if err != nil {
		return nil, err
	}
	set.Configure = configure
	var way []step
	for line := range strings.Lines(lines) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if line == "" {
			continue
		}
		s, err := steps.Read(set, line)
		if err != nil {
			return nil, err
		}
		way = append(way, s)
	}
	return play(set, way), nil
}

// play takes steps and returns the first violation: on the way, or at rest, with or
// without the hosts that have no power.
func play(set *Scene, steps []step) *Violation {
	for _, back := range []bool{true, false} {
		w := stage.New(set, len(steps))
		for _, s := range steps {
			if w.Apply(s); w.Broken != nil {
				return w.Broken
			}
		}
		if w.Rest(back); w.Broken != nil {
			return w.Broken
		}
	}
	return nil
}

// shorten leaves out of a way to a violation every step without which it is violated
// all the same.
func shorten(c Config, steps []step) *Counterexample {
	set := *c.Scene
	broken := play(&set, steps)
	if broken == nil { // what is played again is the same, if only godwit decides
		lost := Violation{Invariant: "replay", Detail: "a violation was not met again: something " +
			"decides by more than its arguments"}
		return &Counterexample{lost, set, steps}
	}
	steps = shortenBy(steps, func(fewer []step) bool {
		v := play(&set, fewer)
		if v == nil || v.Invariant != broken.Invariant {
			return false
		}
		broken = v
		return true
	})
	return &Counterexample{*broken, set, steps}
}

// shortenBy leaves out every step without which a list is still good: many at once first.
func shortenBy(steps []step, good func([]step) bool) []step {
	for size := max(1, len(steps)/2); size >= 1; size /= 2 {
		for at := 0; at+size <= len(steps); {
			if fewer := slices.Delete(slices.Clone(steps), at, at+size); good(fewer) {
				steps = fewer
				continue
			}
			at++
		}
	}
	return steps
}
