package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// protection says which VMs must be restarted, and what fails at once.
type protection struct {
	racks    bool
	domain   string
	protect  string
	priority int
	effort   int
}

func (p *protection) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&p.racks, "racks", false, "whole racks fail instead of hosts: the label rack")
	flags.StringVar(&p.domain, "domain", "",
		"hosts with the same value of this `LABEL` fail together")
	flags.StringVar(&p.protect, "protect", "", "the VMs that must be restarted: a `SELECTOR` of\n"+
		"labels; default: all that run")
	flags.IntVar(&p.priority, "priority", 0,
		"only VMs whose label priority is at least this `NUMBER`")
	flags.IntVar(&p.effort, "effort", plan.DefaultEffort, "examine at most this many `PLACEMENTS`")
}

// question asks about a fleet.
func (p *protection) question(c *cobra.Command, all *inventory.Fleet, f *plan.Fleet, k int) (
	plan.FailoverQuestion, error) {
	q := plan.FailoverQuestion{Fleet: f, Failures: k, Domain: p.domain, Effort: p.effort}
	switch {
	case p.racks && p.domain != "":
		return q, errors.New("--racks and --domain exclude each other: use one of them")
	case p.racks:
		q.Domain = rack
	}
	if err := labelled(f, q.Domain); err != nil {
		return q, err
	}
	wants, err := selector(p.protect)
	if err != nil {
		return q, fmt.Errorf("--protect: %w", err)
	}
	if c.Flags().Changed("priority") {
		wants = append(wants, placement.Requirement{Key: "priority", Operator: placement.Gt,
			Values: []string{strconv.Itoa(p.priority - 1)}})
	}
	if p.effort < 1 {
		return q, fmt.Errorf("--effort %d: use 1 or more", p.effort)
	}
	if len(wants) == 0 {
		return q, nil
	}
	q.Protected = map[hypervisor.VMID]bool{}
	for i := range all.VMs {
		if v := &all.VMs[i]; holds(wants, v.Labels) {
			q.Protected[v.ID] = true
		}
	}
	if len(q.Protected) == 0 {
		return q, fmt.Errorf("none of %s is protected: no labels match",
			humanize.Count(len(all.VMs), "VM"))
	}
	return q, nil
}

// errLost is [ErrPlanNotDone] in other words.
var errLost error = lost{}

type lost struct{}

func (lost) Error() string { return "it is not proven that every failure is survived: see above" }

func (lost) Is(target error) bool { return target == ErrPlanNotDone }

type failoverFlags struct {
	fleet FleetFlags
	protection
	failures int
	admit    []string
	json     bool
}

const failoverHelp = `Check that all protected VMs can be restarted after any k host failures, in any
order, when each failure's VMs are restarted before the next host fails. VMs on healthy hosts, and
VMs that were restarted, do not move. Restarts obey the placement rules of production.

The answer is yes, with a proof; or no, with the hosts that fail and the VMs that no host takes; or,
where --effort was not enough to prove either, how many failures are survived in any case and how
many may be. A SELECTOR is a list of conditions on labels, all of which must hold:
app=db,tier!=test,priority>5,gold,!test.

It also prints how much free capacity is stranded (too fragmented for VMs of the most frequent
sizes), and how many more VMs of the most frequent size can be admitted without surviving fewer
failures; or of the sizes that --admit names, such as 8GiB/4 (memory and CPUs).

VMs on hosts that are down already are not looked at, neither where they are restarted nor what room is
left after that; how many they are is said.

--json prints one object: verdict (yes, no, open), failures, units, vms, proof, lower and upper
(how many failures are survived in any case, and at most), searched, probes, counterexample (why,
failed, vms, resource, unit, need, have, refused), down (VMs on hosts that are down), domain; stranded and admission, by size.

Exit status: 0 yes, 2 bad input, 3 no, or not proven.`

func failoverCommand() *cobra.Command {
	var f failoverFlags
	c := &cobra.Command{
		Use:   "failover FLEET -k N",
		Short: "Check that all VMs can be restarted after any k host failures, in any order",
		Long:  failoverHelp,
		Args:  cobra.ExactArgs(1),
	}
	c.RunE = func(_ *cobra.Command, args []string) error { return f.run(c, args[0]) }
	flags := c.Flags()
	flags.IntVarP(&f.failures, "failures", "k", 1, "survive this `NUMBER` of failures")
	flags.StringSliceVar(&f.admit, "admit", nil, "`SIZES` of VMs to be admitted: 8GiB/4")
	flags.BoolVar(&f.json, "json", false, "print one JSON object instead of a page")
	f.protection.add(c)
	f.fleet.Add(c)
	return c
}

// failoverAnswer is what --json prints.
type failoverAnswer struct {
	plan.FailoverResult
	Down      int              `json:"down"` // protected VMs on hosts that are down, which it is not about
	Domain    string           `json:"domain"`
	Stranded  []plan.Stranded  `json:"stranded"`
	Admission []plan.Admission `json:"admission"`
}

func (f *failoverFlags) run(c *cobra.Command, path string) error {
	if f.failures < 1 {
		return fmt.Errorf("--failures %d: ask for 1 or more", f.failures)
	}
	s, err := f.fleet.Read(path, c.ErrOrStderr())
	if err != nil {
		return err
	}
	q, err := f.question(c, s.Fleet, plan.FromInventory(s.Fleet), f.failures)
	if err != nil {
		return err
	}
	if err := q.Validate(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	shapes, err := shapesOf(q.Fleet, f.admit)
	if err != nil {
		return err
	}
	a := failoverAnswer{FailoverResult: plan.Failover(q),
		Down: plan.OnDownHosts(q.Fleet, q.Protected), Domain: q.Domain, Stranded: []plan.Stranded{},
		Admission: []plan.Admission{}}
	for i, s := range shapes {
		a.Stranded = append(a.Stranded, plan.Strand(q.Fleet, s))
		if i == 0 || len(f.admit) > 0 {
			a.Admission = append(a.Admission, plan.Admit(q, s))
		}
	}
	if err := printed(c.OutOrStdout(), f.json, a, a.print); err != nil {
		return err
	}
	if a.Verdict != plan.Yes {
		return errLost
	}
	return nil
}

// mostCPUs is more than any machine has.
const mostCPUs = 1 << 20

// shapesOf reads sizes; without any it takes the most frequent ones.
func shapesOf(f *plan.Fleet, texts []string) ([]plan.Flavor, error) {
	if len(texts) == 0 {
		return plan.Flavors(f, 3), nil
	}
	var all []plan.Flavor
	for _, text := range texts {
		memory, cpus, _ := strings.Cut(text, "/")
		bytes, err := inventory.ParseBytes(memory)
		n, wrong := strconv.Atoi(cpus)
		if err = errors.Join(err, wrong); err != nil || bytes < 1 || n < 1 || n > mostCPUs {
			return nil, fmt.Errorf("--admit: %q is no size of a VM; write 8GiB/4", text)
		}
		all = append(all, plan.Flavor{Memory: bytes, CPUs: n})
	}
	return all, nil
}
