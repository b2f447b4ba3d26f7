package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

const upgradeHelp = `Say which VMs an upgrade of hosts strands, and in which order to upgrade the hosts,
without changing anything.

--with is a file with the hosts as they are afterwards, in any format of a fleet; VMs in it are ignored.
A host with the name of one in FLEET is what becomes of that host: another version of the
hypervisor, other machine types, another processor. Hosts with other names are added first. By
default the hosts that are in both files are upgraded, or, if none is, all hosts of FLEET are
drained and taken away. VMs that cannot be migrated are restarted elsewhere, shut down or kept, as
their eviction strategy says: see godwit help plan drain.

All checks are those that the controller makes when it places a VM:

  - cannot move: VMs that none of the new hosts takes, even if it is empty, and why;
  - cannot return: VMs that a new host takes, and that no old host takes from there, and why: the
    upgrade of their hosts cannot be undone without a restart of theirs;
  - the order: hosts that are drained one after the other, each of them upgraded before the next, such
    that every VM has a place at every step. VMs go to hosts that are upgraded already, so that they
    move once, where there is room.

--json prints one object:

  hosts, added      hosts that are drained; hosts that are added first
  cannotMove        vm, host, refusals (hosts, reasons with check, need, have)
  cannotReturn      the same, from the new host that takes it
  steps             host, moves, waves (as those of godwit plan drain), once (its VMs move once),
                    restarted, shutDown (VMs that cannot be migrated: those that are started elsewhere,
                    and those that stay off)
  stuck             hosts that are not upgraded after all steps: host, left (VMs), text (a proof)
  proven            no order upgrades all hosts; false with stuck: none was found

Exit status: 0 all hosts can be upgraded, 2 bad input, 3 some cannot.`

type upgradeFlags struct {
	fleet FleetFlags
	with  string
	json  bool
}

func upgradeCommand() *cobra.Command {
	var f upgradeFlags
	c := &cobra.Command{
		Use:   "upgrade FLEET [HOST…] --with NEW-HOSTS",
		Short: "Plan an upgrade: which VMs it strands, and the order of hosts",
		Long:  upgradeHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, args)
		},
	}
	c.Flags().StringVar(&f.with, "with", "", "the `FILE` with the hosts as they are afterwards")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of a page")
	f.fleet.Add(c)
	return c
}

func (f *upgradeFlags) run(c *cobra.Command, args []string) error {
	if f.with == "" {
		return errors.New("--with is required: a file with the hosts as they are after the upgrade")
	}
	fleet, with := f.fleet, f.fleet
	switch { // the flags are those of the store
	case isStore(args[0]) && !isStore(f.with):
		with = FleetFlags{}
	case isStore(f.with) && !isStore(args[0]):
		fleet = FleetFlags{}
	}
	s, err := fleet.Read(args[0], c.ErrOrStderr())
	if err != nil {
		return err
	}
	after, err := with.Read(f.with, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if len(after.Fleet.Hosts) == 0 {
		return fmt.Errorf("%s: there are no hosts in it", f.with)
	}
	hosts := bothHave(s, after)
	if len(args) > 1 {
		if hosts, err = hostsOf(s.Fleet, args[1:]); err != nil {
			return err
		}
	}
	p := plan.Upgrade(s.Fleet, after.Fleet.Hosts, hosts, s.Controller.Evacuation)
	err = printed(c.OutOrStdout(), f.json, p, upgradePage{&p}.print)
	if !p.Done() {
		err = errors.Join(err, ErrPlanNotDone)
	}
	return err
}

// bothHave returns the hosts that two fleets have, or else all of the first.
func bothHave(s, after *config.Scenario) (hosts []hypervisor.HostName) {
	all := make([]hypervisor.HostName, len(s.Fleet.Hosts))
	for i := range s.Fleet.Hosts {
		name := s.Fleet.Hosts[i].Name
		all[i] = name
		if slices.ContainsFunc(after.Fleet.Hosts, func(h inventory.Host) bool { return h.Name == name }) {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) == 0 {
		return all
	}
	return hosts
}

// An upgradePage is a plan for people.
type upgradePage struct{ *plan.UpgradePlan }

func (p upgradePage) print(out io.Writer) error {
	switch {
	case p.Done():
		fmt.Fprintf(out, "%s can be upgraded, one after the other\n", humanize.Count(len(p.Hosts), "host"))
	case p.Proven:
		fmt.Fprintf(out, "%d of %s can be upgraded; no order upgrades all\n", len(p.Steps),
			humanize.Count(len(p.Hosts), "host"))
	default:
		fmt.Fprintf(out, "%d of %s can be upgraded; no order was found that upgrades all, and no proof "+
			"that there is none\n", len(p.Steps), humanize.Count(len(p.Hosts), "host"))
	}
	if len(p.Added) > 0 {
		fmt.Fprintf(out, "added first: %s\n", humanize.List(p.Added))
	}
	if err := p.steps(out); err != nil {
		return err
	}
	for _, o := range p.Stuck {
		fmt.Fprintf(out, "\n%s is not upgraded; on it stay: %s\n", o.Host, humanize.List(short(o.Left)))
		if o.Text != "" {
			fmt.Fprintf(out, "Why: %s\n", o.Text)
		}
	}
	incompatible(out, "no new host takes", p.Forward)
	incompatible(out, "cannot return", p.Back)
	return nil
}

func (p upgradePage) steps(out io.Writer) error {
	if len(p.Steps) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nSTEP\tHOST\tMOVES\tTO")
	for i, s := range p.Steps {
		if i == mostRows {
			fmt.Fprintf(t, "… and %d more; --json lists them all\n", len(p.Steps)-i)
			break
		}
		to := "upgraded hosts"
		switch {
		case s.Moves == 0:
			to = ""
		case !s.Once:
			to = "also hosts that are upgraded later: some VMs move twice"
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%s\n", i+1, s.Host, s.Moves, to)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var restarted, off []hypervisor.VMID
	for _, s := range p.Steps {
		restarted, off = append(restarted, s.Restarted...), append(off, s.ShutDown...)
	}
	if len(restarted) > 0 {
		fmt.Fprintf(out, "\ncannot be migrated, shut down and started on another host: %s\n", humanize.List(short(once(restarted))))
	}
	if len(off) > 0 {
		fmt.Fprintf(out, "\nshut down when their host is drained, and off from then on: %s\n", humanize.List(short(once(off))))
	}
	return nil
}

// once returns each of some VMs once, by ID.
func once(vms []hypervisor.VMID) []hypervisor.VMID {
	slices.Sort(vms)
	return slices.Compact(vms)
}

// incompatible lists VMs that cannot be migrated, and why.
func incompatible(out io.Writer, what string, all []plan.Incompatible) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s: %s\n", what, humanize.Count(len(all), "VM"))
	few := humanize.Few(len(all))
	for _, i := range all[:few] {
		fmt.Fprintf(out, "  %s on %s\n", sim.Short(i.VM), i.Host)
		for _, r := range i.Refusals {
			for _, why := range r.Why {
				fmt.Fprintf(out, "    %s: %s\n", humanize.List(r.Hosts),
					humanize.Unmet(why.Check, why.Need, why.Have))
			}
		}
	}
	if more := len(all) - few; more > 0 {
		fmt.Fprintf(out, "  … and %d more; --json lists them all\n", more)
	}
}
