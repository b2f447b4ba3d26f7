// Package planner is the commands that answer questions of those who plan: flags and
// wiring, no decisions. Each command is a file of its own.
package planner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim/scenario"
)

// ErrNotDone says that what was asked for cannot be done; it has been reported.
var ErrNotDone = errors.New("it cannot be done: the reasons are above")

// ErrViolated says that a simulated run broke an invariant; it has been reported.
var ErrViolated = errors.New("an invariant was violated")

// Command returns godwit plan with the commands below it.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan what happens to hosts and their VMs, and change nothing",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands()...)
	return c
}

// commands lists the questions, one line each.
func commands() []*cobra.Command {
	return []*cobra.Command{
		drainCommand(),
		surviveCommand(),
		maintenanceCommand(),
	}
}

// own are fields at the beginning of a line that godwit's own files have: a fleet, or
// a scenario, which may name a file with the fleet.
var own = regexp.MustCompile(`(?m)^(hosts|inventory|events|limits|vary):`)

// load reads a scenario, or a fleet in whatever format, and prints what is odd about it.
func load(path string) (*scenario.Scenario, error) {
	s, err := open(path)
	if err != nil {
		return nil, err
	}
	for _, p := range s.Fleet.Warnings {
		fmt.Fprintln(os.Stderr, "warning:", p.Error())
	}
	return s, nil
}

func open(path string) (*scenario.Scenario, error) {
	mine, err := isOwn(path)
	switch {
	case err != nil:
		return nil, err
	case mine:
		return scenario.ReadFile(path)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return scenario.Parse(path, fmt.Appendf(nil, "inventory: %q\n", whole))
}

// isOwn reports whether a file begins as godwit's own do; a folder does not.
func isOwn(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if at, err := f.Stat(); err != nil || at.IsDir() {
		return false, err
	}
	head, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return own.Match(head), err
}

// read reads a fleet as load does.
func read(path string) (*inventory.Fleet, error) {
	s, err := load(path)
	if err != nil {
		return nil, err
	}
	return s.Fleet, nil
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
