package sim_test

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/sim"
)

// decisions lists what was decided about targets that were asked for.
func (w *transcript) decisions() string {
	var b strings.Builder
	for _, v := range w.scenario.Fleet.VMs {
		for _, m := range w.world.Migrations(v.ID) {
			d := m.Decision
			if d == nil {
				continue
			}
			fmt.Fprintf(&b, "%s  %s", sim.Short(v.ID)+string(m.Spec.ID[len(v.ID):]), d.Outcome)
			for _, word := range []string{string(d.Host), string(d.Code), string(d.Action)} {
				if word != "" {
					b.WriteString("  " + word)
				}
			}
			b.WriteByte('\n')
			for _, r := range d.Why {
				fmt.Fprintf(&b, "  %s\n", r)
			}
		}
	}
	return b.String()
}

// debts lists who was forced where, and what that violates.
func (w *transcript) debts() string {
	var b strings.Builder
	for _, id := range w.world.VMs() {
		f := w.world.VM(id).Forced
		if f == nil {
			continue
		}
		fmt.Fprintf(&b, "%s  %s to %s\n", sim.Short(id), f.Action, f.Host)
		for _, d := range f.Debts {
			fmt.Fprintf(&b, "  %s\n", d.Reason)
		}
	}
	return b.String()
}
