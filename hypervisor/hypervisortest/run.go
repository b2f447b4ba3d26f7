package hypervisortest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/harm"
	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/life"
	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/move"
	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/stage"
)

// groups are all cases, in the order in which they run.
func groups() []stage.Group {
	return slices.Concat(life.Groups(), move.Groups(), harm.Groups())
}

// Run runs every case in a Lab of its own, which open makes, as a subtest. At its
// end it logs how many ran, on what, and what was skipped why.
func Run(t *testing.T, open func(t *testing.T) *Lab) {
	r := &report{skipped: map[string]int{}}
	for _, g := range groups() {
		t.Run(g.Name, func(t *testing.T) {
			for _, c := range g.Trials {
				t.Run(c.Name, func(t *testing.T) { r.try(t, c, open(t)) })
			}
		})
	}
	t.Log(r.String())
}

// A report counts what became of the cases.
type report struct {
	ran, failed int
	skipped     map[string]int // by reason
	mirrors     int            // that say what is right where an ability is lacking
	hosts       [2]hypervisor.Host
}

// try runs one case, or says why it does not.
func (r *report) try(t *testing.T, c stage.Trial, lab *Lab) {
	w := stage.New(t, (*stage.Lab)(lab))
	r.hosts = w.Hosts
	skip := func(reason string) {
		r.skipped[reason]++
		t.Skip(reason)
	}
	if has := c.Unable & (r.hosts[0].Abilities | r.hosts[1].Abilities); has != 0 {
		r.mirrors++ // no gap: the hosts have what it is a substitute for
		t.Skip("it is about hosts that lack " + strings.Join(has.Names(), ", "))
	}
	if reason := w.Lacks(c.Needs); reason != "" {
		skip(reason)
	}
	for _, s := range [...]stage.Side{stage.Source, stage.Target} {
		if missing := c.Able &^ w.Hosts[s].Abilities; missing != 0 {
			life.AnswersUnsupported(w, s, missing)
			skip("a host lacks " + strings.Join(missing.Names(), ", "))
		}
	}
	w.Skip = skip
	r.ran++
	t.Cleanup(func() {
		if t.Failed() {
			r.failed++
		}
		if t.Skipped() {
			r.ran--
		}
	})
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
	fmt.Fprintf(&b, "%d cases ran, %d of them failed, %d were skipped", r.ran, r.failed, skipped)
	if r.mirrors > 0 {
		fmt.Fprintf(&b, ", %d are about hosts that can do less", r.mirrors)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(&b, "\n  %3d because %s", r.skipped[reason], reason)
	}
	return b.String()
}
