package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

// ErrPlanNotDone says that what was asked for cannot be done; it has been reported.
var ErrPlanNotDone = errors.New("it cannot be done: the reasons are above")

// ErrViolated says that a simulated run broke an invariant; it has been reported.
var ErrViolated = errors.New("an invariant was violated")

// PlanCommand returns godwit plan with the commands below it.
func PlanCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan drains, maintenance, upgrades and failover, without changing anything",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(plannerCommands()...)
	return c
}

// plannerCommands lists the questions, one line each.
func plannerCommands() []*cobra.Command {
	return []*cobra.Command{
		plannerDrainCommand(),
		failoverCommand(),
		formerly("survive", failoverCommand(), "plan failover"),
		maintenanceCommand(),
		upgradeCommand(),
	}
}

// addWorkloads adds the flag for a file of measured workloads.
func addWorkloads(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "workloads", "", "apply measured workloads to the fleet, from this CSV "+
		"`FILE`;\nits first line: vm,dirty,workingSet,coldDirty,class")
}

// hostsOf returns the named hosts, each once. One that the fleet does not have is an
// error.
func hostsOf(fleet *inventory.Fleet, names []string) ([]hypervisor.HostName, error) {
	known := map[hypervisor.HostName]bool{}
	for i := range fleet.Hosts {
		known[fleet.Hosts[i].Name] = true
	}
	var hosts []hypervisor.HostName
	asked := map[hypervisor.HostName]bool{}
	for _, text := range names {
		expanded, err := inventory.ExpandNames(text, len(fleet.Hosts))
		if err != nil {
			return nil, fmt.Errorf("host %q: %w", text, err)
		}
		for _, name := range expanded {
			host := hypervisor.HostName(name)
			if !known[host] {
				return nil, fmt.Errorf("there is no host %q among %d", name, len(known))
			}
			if asked[host] {
				return nil, fmt.Errorf("host %s is named twice", name)
			}
			asked[host] = true
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// printed prints an answer as JSON or as a page.
func printed(out io.Writer, asJSON bool, answer any, page func(io.Writer) error) error {
	if !asJSON {
		return page(Plain(out))
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(answer)
}
