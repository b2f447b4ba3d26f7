package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

// print prints the answer for people.
func (a failoverAnswer) print(out io.Writer) error {
	fmt.Fprintln(out, a.head())
	notLookedAt(out, a.Down)
	counterexample(out, a.Counterexample)
	if len(a.Stranded) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(t, "\nSIZE\tVMS\tFIT NOW\tADMITTED\tSTRANDED MEMORY\tSTRANDED CPUS\t"+
		"FULL BY MEMORY\tFULL BY CPUS\tREFUSED BY RULES\n")
	for i, s := range a.Stranded {
		fmt.Fprintf(t, "%v/%d\t%d\t%d\t%s\t%v of %v\t%d of %d\t%d\t%d\t%d\n", s.Flavor.Memory,
			s.Flavor.CPUs, s.VMs, s.Fit, a.admitted(i), s.Memory, s.FreeMemory, s.CPUs,
			s.FreeCPUs, s.ByMemory, s.ByCPUs, s.Refusing)
	}
	return t.Flush()
}

// notLookedAt says how many VMs the answer is not about.
func notLookedAt(out io.Writer, down int) {
	if down > 0 {
		fmt.Fprintf(out, "not looked at: %s of hosts that are down; they take room, too, when they are restarted\n",
			humanize.Count(down, "protected VM"))
	}
}

func (a failoverAnswer) head() string {
	unit := "host"
	if a.Domain != "" {
		unit = "domain"
	}
	asked := fmt.Sprintf("%s out of %s, %s protected", humanize.Count(a.Failures, "failure"),
		humanize.Count(a.Units, unit), humanize.Count(a.VMs, "VM"))
	switch {
	case a.Proof == plan.AnyPlacement:
		return "yes: " + asked + "; every placement of the restarts leaves room"
	case a.Verdict == plan.Yes:
		return fmt.Sprintf("yes: %s; %s examined, each with a placement that leaves room", asked,
			humanize.Count(a.Searched, "case"))
	case a.Verdict == plan.No && a.Upper == a.Lower:
		return fmt.Sprintf("no: %s; it survives %d", asked, a.Lower)
	}
	return fmt.Sprintf("%s: %s; it survives at least %d and at most %d", a.Verdict, asked, a.Lower,
		a.Upper)
}

// counterexample prints which failures leave no room, and why.
func counterexample(out io.Writer, c *plan.Counterexample) {
	if c == nil {
		return
	}
	switch len(c.Failed) {
	case 0:
	case 1:
		fmt.Fprintf(out, "if %s fails: no room for %s\n", c.Failed[0], humanize.List(short(c.VMs)))
	default:
		fmt.Fprintf(out, "if %s fail: no room for %s\n", humanize.List(c.Failed),
			humanize.List(short(c.VMs)))
	}
	switch {
	case c.Unit > 0:
		fmt.Fprintf(out, "why: %s: %s of %s or more, and room for %d\n", c.Why,
			humanize.Count(int(c.Need), "VM"), amount(c.Resource, c.Unit), c.Have)
	case c.Resource != "":
		need, have := amounts(c.Resource, c.Need, c.Have)
		fmt.Fprintf(out, "why: %s: they need %s, and %s is free where they could go\n", c.Why, need,
			have)
	default:
		fmt.Fprintf(out, "why: %s\n", c.Why)
	}
	for _, n := range c.Counts {
		fmt.Fprintf(out, "  %s refuses it on %s\n", n.Check, humanize.Count(n.Hosts, "host"))
	}
}

// admitted returns how many more VMs of a size can be admitted, if that was asked.
func (a failoverAnswer) admitted(i int) string {
	switch {
	case i >= len(a.Admission):
		return ""
	case a.Admission[i].AtLeast == a.Admission[i].AtMost:
		return fmt.Sprint(a.Admission[i].AtLeast)
	}
	return fmt.Sprintf("%d to %d", a.Admission[i].AtLeast, a.Admission[i].AtMost)
}

// amount formats an amount of memory or CPUs.
func amount(resource string, n int64) string {
	if resource == "memory" {
		return hypervisor.Bytes(n).String()
	}
	return humanize.Count(int(n), "CPU")
}

// amounts formats two amounts so that they differ as texts.
func amounts(resource string, need, have int64) (string, string) {
	if resource == "memory" {
		return hypervisor.Apart(hypervisor.Bytes(need), hypervisor.Bytes(have))
	}
	return amount(resource, need), amount(resource, have)
}

// short leaves the default namespace out of names.
func short(vms []hypervisor.VMID) []string {
	all := make([]string, len(vms))
	for i, vm := range vms {
		all[i] = sim.Short(vm)
	}
	return all
}
