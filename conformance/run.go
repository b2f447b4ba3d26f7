package conformance

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// groups are all cases, in the order in which they run.
func groups() []group {
	return slices.Concat(lifecycleGroups(), migrationGroups(), failureGroups())
}

// Hypervisor runs every case in a Lab of its own, which open makes, as a subtest. At its
// end it logs how many ran, on what, and what was skipped why.
func Hypervisor(t *testing.T, open func(t *testing.T) *Lab) {
	r := &report{skipped: map[string]int{}}
	for _, g := range groups() {
		t.Run(g.Name, func(t *testing.T) {
			for _, c := range g.Trials {
				t.Run(c.Name, func(t *testing.T) { r.try(t, c, open) })
			}
		})
	}
	t.Log(r.String())
}

// A report counts what became of the cases.
type report struct {
	ran     int
	failed  []string
	skipped map[string]int // by reason
	mirrors int            // that say what is right where an ability is lacking
	hosts   [2]hypervisor.Host
}

// try plays one case in a goroutine of its own, so that a backend that panics, or that does not
// return, costs this case and no other. The test waits for it: it fails and is skipped as if
// the case were played in the test's own goroutine.
func (r *report) try(t *testing.T, c trial, open func(t *testing.T) *Lab) {
	t.Cleanup(func() {
		if t.Failed() {
			r.failed = append(r.failed, t.Name())
		}
	})
	w := openWorld(t, open(t))
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("%s\nthe port says: %s", panicked(v), w.Rule)
			}
		}()
		r.play(t, w, c)
	}()
	left := time.Duration(0)
	if end, has := t.Deadline(); has {
		left = time.Until(end)
	}
	if stuck := w.Watch(over, left); stuck != nil {
		t.Errorf("%s has not returned. No method of the port waits", stuck)
	}
}

// panicked describes a panic: one of the backend says its call and where.
func panicked(v any) string {
	if p, is := v.(backendPanic); is {
		return "the backend panicked in " + p.Error()
	}
	return fmt.Sprintf("panic outside of a call of the backend: %v\n%s", v, debug.Stack())
}

// play plays one case, or says why it does not.
func (r *report) play(t *testing.T, w *world, c trial) {
	w.Rule = rules[c.Name]
	r.ran++
	w.Meet()
	r.hosts = w.Hosts
	skip := func(reason string) {
		r.ran--
		r.skipped[reason]++
		t.Skip(reason)
	}
	if has := c.Unable & (r.hosts[0].Abilities | r.hosts[1].Abilities); has != 0 {
		r.ran--
		r.mirrors++ // no gap: the hosts have what it is a substitute for
		t.Skip("it is about hosts that lack " + strings.Join(has.Names(), ", "))
	}
	if reason := w.lacks(c.Needs); reason != "" {
		skip(reason)
	}
	for _, s := range [...]side{source, target} {
		if missing := c.Able &^ w.Hosts[s].Abilities; missing != 0 {
			answersUnsupported(w, s, missing)
			skip("a host lacks " + strings.Join(missing.Names(), ", "))
		}
	}
	w.Skip = skip
	c.Run(w)
	w.Once()
}

// String is the report for people.
func (r *report) String() string {
	var b strings.Builder
	for _, h := range r.hosts {
		fmt.Fprintf(&b, "%s: %s, with %s\n", h.Name, h.Software,
			strings.Join(h.Abilities.Names(), ", "))
	}
	skipped := 0
	for _, n := range r.skipped {
		skipped += n
	}
	fmt.Fprintf(&b, "%d cases ran, %d of them failed, %d were skipped", r.ran, len(r.failed), skipped)
	if r.mirrors > 0 {
		fmt.Fprintf(&b, ", %d are about hosts that can do less", r.mirrors)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(&b, "\n  %3d because %s", r.skipped[reason], reason)
	}
	for _, name := range r.failed {
		fmt.Fprintf(&b, "\n  failed: %s", name)
	}
	return b.String()
}
