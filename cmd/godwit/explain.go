package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// errNoTarget: no host takes the VM, or not the requested one; the reasons have been printed.
var errNoTarget = errors.New("no target: the reasons are above")

// explainFlags are the flags of godwit explain destination.
type explainFlags struct {
	fleet     cli.FleetFlags
	inventory string
	vm        string
	host      string
	force     bool
	forced    bool // --force was written, with whatever value
	compat    bool
	filters   []string
	filtered  bool // --filters was written
	weighers  []string
	json      bool
}

const explainHelp = `Explain which host takes a VM, and why no other, without changing anything. The
inventory is a fleet in any format that godwit help convert lists, the URL of a store, or a scenario, whose
events are ignored.

With --host the request names that host: the answer is accepted, or a conflict with every reason.
--force overrides soft constraints (policy and capacity) but not hard constraints; the overridden
constraints are recorded as debts. --compat is for legacy clients: a request with a host but without
--force counts as forced, while --force=false does not.

An accepted VM that can be migrated gets a prediction: how long its migration takes alone and how
long the guest is paused, p10 to p90 as measured migrations of its class tell: see docs/prediction.md.

--filters names the constraints that are checked (default: all); hard constraints are always checked.
--weighers changes the weight of a preference: memory=2,busy=-3.

--json prints one object:

  vm, source          the VM, and the host that it is on, or ""
  request             what was asked: host, force (absent, no, yes), compat
  outcome             accepted, conflict, no-host or bad-request
  target              the host, when accepted; "" otherwise
  notMigratable       why the VM cannot be moved while it runs; "" if it can, or does not run
  code                kind of the obstacle: bad-input, incompatible, policy, capacity, or ""
  action              ForcedMigrate, ForcedRebuild, Bypassed, or ""
  reasons             check, need, have: against the host that was asked for, or the request; of
                      no-host, how many hosts each check refused; or why the quotas of the VM's
                      namespace admit no second copy, which force does not override
  debts               soft constraints that force overrode
  hosts               host, verdict (chosen, fits, refuses), score (null unless it takes the
                      VM), reasons: the target first, then by score, by the number of reasons,
                      by name; only the host that was asked for, if one was
  histogram           check, hosts: how many hosts each check refuses
  nearest             host, memoryBytes, cpus, diskBytes that it lacks, reasons that more
                      capacity does not remove, orMoved (a VM whose departure would do, or ""), text
  predicted           class, measured (migrations of the class), seconds and downtimeMilliseconds,
                      each with p10, p50 and p90, and note; null when it is not accepted, does
                      not run on another host, or does not converge: then notes says so
  notes               caveats

Exit status: 0 accepted, 2 bad input, 3 conflict or no host.`

func targetCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "destination --inventory FILE --vm VM [--host HOST]",
		Short: "Explain which host takes a VM, and why no other",
		Long:  explainHelp,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := orStore(c, &f.inventory); err != nil {
				return err
			}
			f.forced, f.filtered = c.Flags().Changed("force"), c.Flags().Changed("filters")
			return explain(c.Context(), c.OutOrStdout(), &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.inventory, "inventory", "", "the `FILE`, or the URL of a store, that describes hosts and VMs;\n"+
		"default: the store of --store")
	flags.StringVar(&f.vm, "vm", "", "the `VM`: name, or namespace/name")
	flags.StringVar(&f.host, "host", "", "request this `HOST`")
	flags.BoolVar(&f.force, "force", false, "override soft constraints: policy and capacity")
	flags.BoolVar(&f.compat, "compat", false, "treat a missing force flag as force (legacy clients)")
	flags.StringSliceVar(&f.filters, "filters", nil, "check only these `CONSTRAINTS`: a,b")
	flags.StringSliceVar(&f.weighers, "weighers", nil, "`PREFERENCES` with their weights: a=1,b=-1")
	flags.BoolVar(&f.json, "json", false, "print one JSON object instead of a table")
	f.fleet.Add(c)
	return c
}

// orStore takes the store that --store or $GODWIT_STORE names where --inventory names none.
func orStore(c *cobra.Command, inventory *string) error {
	switch store := c.Flags().Lookup("store"); {
	case *inventory == "":
		*inventory = store.Value.String()
	case store.Changed:
		return errors.New("--inventory and --store both name a fleet: give one of them")
	}
	return nil
}

// explain reads an inventory, asks about one VM, and prints the answer.
func explain(ctx context.Context, out io.Writer, f *explainFlags) error {
	if f.inventory == "" || f.vm == "" {
		return errors.New("--vm, and --inventory or --store, are required: see godwit help explain destination")
	}
	config, err := f.config()
	if err != nil {
		return err
	}
	s, err := f.fleet.Read(f.inventory, os.Stderr)
	if err != nil {
		return err
	}
	id := client.ID(f.vm)
	q, found := inventory.Ask(s.Fleet, id)
	if !found {
		return fmt.Errorf("%s: there is no VM %q among %d: give its name, and its namespace "+
			"unless that is default", f.inventory, id, len(s.Fleet.VMs))
	}
	if err := known(s.Fleet, f.inventory, "--host", f.host); err != nil {
		return err
	}
	q.Request.Host, q.Request.Compat = hypervisor.HostName(f.host), f.compat
	if f.forced {
		q.Request.Force = placement.ForceOf(&f.force)
	}
	e := explained(&q, q.Explain(config))
	if e.Outcome == placement.Conflict {
		e.force(q, config)
	}
	at := slices.IndexFunc(s.Fleet.VMs, func(v inventory.VM) bool { return v.ID == id })
	if err := e.predict(ctx, s, &s.Fleet.VMs[at]); err != nil {
		return err
	}
	if f.json {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(e)
	} else if e.Outcome != placement.BadRequest {
		err = e.table(out, q.Request.VM)
	}
	return errors.Join(err, e.verdict())
}

// known refuses a host that a flag names and the inventory does not have. "" is none.
func known(fleet *inventory.Fleet, file, flag, host string) error {
	if host == "" || slices.ContainsFunc(fleet.Hosts, func(h inventory.Host) bool { return string(h.Name) == host }) {
		return nil
	}
	return fmt.Errorf("%s: %s: there is no host %q among %d", file, flag, host, len(fleet.Hosts))
}

// config returns the enabled filters and the weighers.
func (f *explainFlags) config() (*placement.Config, error) {
	config := &placement.Config{}
	if f.filtered {
		var err error
		if config.Filters, err = placement.SelectFilters(f.filters); err != nil {
			return nil, fmt.Errorf("--filters: %w", err)
		}
	}
	multipliers := map[string]float64{}
	for _, text := range f.weighers {
		name, number, _ := strings.Cut(text, "=")
		m, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("--weighers: %q is not a preference with a weight: write memory=2",
				text)
		}
		multipliers[name] = m
	}
	var err error
	if config.Weighers, err = placement.SelectWeighers(multipliers); err != nil {
		return nil, fmt.Errorf("--weighers: %w", err)
	}
	return config, nil
}
