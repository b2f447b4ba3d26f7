package main

import (
	"fmt"
	"io"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
)

// table prints the explanation as text.
func (e *explanation) table(out io.Writer, vm *placement.VM) error {
	p := &page{}
	p.line(0, "%s", e.headline(vm))
	for _, note := range e.Notes {
		p.line(0, "note: %s", note)
	}
	if r := e.Predicted; r != nil {
		p.line(0, "predicted: %s", r)
	}
	p.hosts(e.Hosts)
	if e.Request.Host == "" {
		p.histogram(e.Histogram)
	}
	if e.Outcome != placement.Accepted {
		p.nearest(e.Nearest)
	}
	if len(e.Quota) > 0 {
		p.quota(e.Quota)
	}
	_, err := io.WriteString(out, p.String())
	return err
}

// headline returns the request and its outcome in one line.
func (e *explanation) headline(vm *placement.VM) string {
	from := ""
	if e.Source != "" {
		from = " on " + string(e.Source)
	}
	to := "any host"
	if e.Request.Host != "" {
		to = string(e.Request.Host)
	}
	text := fmt.Sprintf("%s (%v, %s)%s, to %s: ", sim.Short(e.VM), vm.Demand(),
		humanize.Count(vm.CPUs, "CPU"), from, to)
	switch e.Outcome {
	case placement.Accepted:
		text += "accepted"
		if e.Request.Host == "" {
			text += ", " + string(e.Target)
		}
		if e.NotMigratable != "" {
			text += ", but only if it is shut down"
		}
	case placement.NoHost:
		text += "no host takes it"
	default:
		text += string(e.Outcome)
	}
	if e.Code != "" {
		text += fmt.Sprintf(" (%s)", e.Code)
	}
	if e.Action != "" {
		text += fmt.Sprintf(" by force, recorded as %s with %s", e.Action,
			humanize.Count(len(e.Debts), "debt"))
	}
	return text
}
