package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
)

const policyHelp = `Explain which migration policy a VM gets, and why.
The inventory is a fleet in any format that godwit help convert lists, the URL of a store, or a scenario.

Of the policies that match, the one with the most labels wins; then the one with more labels on the
VM; then the smaller name. A policy can select on the VM's host and on the target of its migration,
kubevirt.io/nodeName and kubevirt.io/migrationTargetNodeName: --to names a target.

--json prints one object:

  vm, source, target    the VM, the host that it is on, and --to
  labels                those of the VM that policies select on
  namespaceLabels       those of its namespace
  policy                the policy that wins; "" when none matches
  policies              policy, outcome (won, lost, labels-differ, no-selectors), onVM and
                        onNamespace (labels that matched), against (the policy that it lost to,
                        or won over), by (the comparison that decided), differences (field, need,
                        have); the best first, then those that do not match
  options               option, value, from: what a migration is done with, and the policy that
                        says it, or "cluster"

Exit status: 0 explained, 2 bad input.`

// policyFlags are the flags of godwit explain policy.
type policyFlags struct {
	fleet             cli.FleetFlags
	inventory, vm, to string
	json              bool
}

func policyCommand() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use:   "policy --inventory FILE --vm VM [--to HOST]",
		Short: "Explain which migration policy a VM gets, and why",
		Long:  policyHelp,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := orStore(c, &f.inventory); err != nil {
				return err
			}
			return f.explain(c.OutOrStdout())
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.inventory, "inventory", "", "the `FILE`, or the URL of a store, that describes VMs and policies;\n"+
		"default: the store of --store")
	flags.StringVar(&f.vm, "vm", "", "the `VM`: name, or namespace/name")
	flags.StringVar(&f.to, "to", "", "the target `HOST` of its migration")
	flags.BoolVar(&f.json, "json", false, "print one JSON object instead of a table")
	f.fleet.Add(c)
	return c
}

// explain reads an inventory and prints which policy a VM gets.
func (f *policyFlags) explain(out io.Writer) error {
	if f.inventory == "" || f.vm == "" {
		return errors.New("--vm, and --inventory or --store, are required: see godwit help explain policy")
	}
	s, err := f.fleet.Read(f.inventory, os.Stderr)
	if err != nil {
		return err
	}
	vm, err := f.find(s.Fleet)
	if err != nil {
		return err
	}
	e := explainPolicy(s, vm, hypervisor.HostName(f.to))
	if f.json {
		return json.NewEncoder(out).Encode(e)
	}
	return e.table(out)
}

// find returns the VM that was asked about, and refuses a target that is not there.
func (f *policyFlags) find(fleet *inventory.Fleet) (*inventory.VM, error) {
	id := client.ID(f.vm)
	at := slices.IndexFunc(fleet.VMs, func(v inventory.VM) bool { return v.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("%s: there is no VM %q among %d: give its name, and its namespace "+
			"unless that is default", f.inventory, id, len(fleet.VMs))
	}
	if err := known(fleet, f.inventory, "--to", f.to); err != nil {
		return nil, err
	}
	return &fleet.VMs[at], nil
}

// policyExplanation is what --json prints: see policyHelp.
type policyExplanation struct {
	VM              hypervisor.VMID     `json:"vm"`
	Source          hypervisor.HostName `json:"source"`
	Target          hypervisor.HostName `json:"target"`
	Labels          migration.Labels    `json:"labels"`
	NamespaceLabels migration.Labels    `json:"namespaceLabels"`
	Policy          string              `json:"policy"`
	Policies        []policyVerdict     `json:"policies"`
	Options         []policyOption      `json:"options"`
	lines           []string            // the policies, for people
}

type policyVerdict struct {
	Policy      string                  `json:"policy"`
	Outcome     migration.PolicyOutcome `json:"outcome"`
	OnVM        int                     `json:"onVM"`
	OnNamespace int                     `json:"onNamespace"`
	Against     string                  `json:"against"`
	By          migration.PolicyRule    `json:"by"`
	Differences []policyDifference      `json:"differences"`
}

type policyDifference struct {
	Field string `json:"field"`
	Need  string `json:"need"`
	Have  string `json:"have"`
}

// A policyOption is one option of the migration, and the policy that sets it.
type policyOption struct {
	Option string `json:"option"`
	Value  string `json:"value"`
	From   string `json:"from"`
}

// explainPolicy says which policy a VM gets when it moves to a target.
func explainPolicy(s *config.Scenario, vm *inventory.VM, to hypervisor.HostName) *policyExplanation {
	c := &s.Controller
	m := migration.PolicyMatcher{Compatible: c.Migration.Compatible}
	labels := migration.PolicyLabels(migration.Labels(vm.Labels), vm.Host, to)
	namespace := migration.Labels(c.Namespaces[vm.Namespace])
	e := &policyExplanation{VM: vm.ID, Source: vm.Host, Target: to, Labels: labels,
		NamespaceLabels: namespace, Policies: []policyVerdict{}}
	if namespace == nil {
		e.NamespaceLabels = migration.Labels{}
	}
	verdicts := m.Explain(c.Policies, labels, namespace)
	e.Policy = verdicts.Winner
	for _, v := range verdicts.Results {
		p := policyVerdict{v.Policy, v.Outcome, v.OnVM, v.OnNamespace, v.Against, v.By,
			[]policyDifference{}}
		for _, d := range v.Differences {
			p.Differences = append(p.Differences, policyDifference(d))
		}
		e.Policies = append(e.Policies, p)
		e.lines = append(e.lines, v.String())
	}
	options, _ := m.Resolve(*c.Cluster, c.Policies, labels, namespace)
	e.Options = optionsOf(&options, m.Match(c.Policies, labels, namespace))
	return e
}

// optionsOf lists options, and the policy that sets each of them.
func optionsOf(o *migration.Options, winner *migration.Policy) []policyOption {
	by := migration.OptionsOverrides{}
	name := ""
	if winner != nil {
		by, name = winner.OptionsOverrides, winner.Name
	}
	experimental := migration.Experimental{}
	if by.Experimental != nil {
		experimental = *by.Experimental
	}
	from := func(set bool) string {
		if set {
			return name
		}
		return "cluster"
	}
	compression := o.Compression
	if compression == "" {
		compression = migration.CompressionNone
	}
	return []policyOption{
		{"allowAutoConverge", fmt.Sprint(o.AllowAutoConverge), from(by.AllowAutoConverge != nil)},
		{"allowPostCopy", fmt.Sprint(o.AllowPostCopy), from(by.AllowPostCopy != nil)},
		{"allowWorkloadDisruption", fmt.Sprint(o.AllowWorkloadDisruption),
			from(by.AllowWorkloadDisruption != nil || by.AllowPostCopy != nil)},
		{"bandwidthPerMigration", orNone(o.Bandwidth > 0, o.Bandwidth),
			from(by.BandwidthPerMigration != nil)},
		{"completionTimeoutPerGiB", orNone(o.CompletionTimeoutPerGiB > 0, o.CompletionTimeoutPerGiB),
			from(by.CompletionTimeoutPerGiB != nil)},
		{"progressTimeout", orNone(o.ProgressTimeout > 0, o.ProgressTimeout), from(false)},
		{"maxDowntimeMs", fmt.Sprint(int64(o.MaxDowntime / time.Millisecond)), from(by.MaxDowntime != nil)},
		{"convergence", o.Method().String(), from(by.Convergence != nil || experimental.StallDetector != nil)},
		{"encryption", o.Encryption.String(), from(by.Encryption != nil)},
		{"downtimeTuning", onOff(o.DowntimeTuning != nil), from(experimental.DowntimeTuning != nil)},
		{"compression", string(compression), from(experimental.Compression != nil)},
	}
}

func orNone(some bool, value any) string {
	if !some {
		return "none"
	}
	return fmt.Sprint(value)
}

func onOff(on bool) string { return map[bool]string{true: "on", false: "off"}[on] }

// table prints the explanation for people.
func (e *policyExplanation) table(out io.Writer) error {
	p := &page{}
	on := "on no host"
	if e.Source != "" {
		on = "on " + string(e.Source)
	}
	if e.Target != "" {
		on += ", to " + string(e.Target)
	}
	switch {
	case e.Policy != "":
		p.line(0, "%s %s: policy %s", e.VM, on, e.Policy)
	case len(e.Policies) == 0:
		p.line(0, "%s %s: no policy, there are none", e.VM, on)
	default:
		p.line(0, "%s %s: no policy, none of %d matches", e.VM, on, len(e.Policies))
	}
	if len(e.lines) > 0 {
		p.line(0, "")
	}
	for _, line := range e.lines {
		p.line(4, "  %s", line)
	}
	p.line(0, "")
	if _, err := io.WriteString(out, p.String()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "OPTION\tVALUE\tFROM")
	for _, o := range e.Options {
		fmt.Fprintf(t, "%s\t%s\t%s\n", o.Option, plain(o.Value), plain(o.From))
	}
	return t.Flush()
}
