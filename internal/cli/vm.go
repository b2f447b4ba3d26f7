package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/store"
)

const vmHelp = `Vm changes what VMs there are and what they shall do. A command is done when it
is stored: controller and agents act on it then; godwit status tells how far they are. A VM is
named namespace/name, or name alone in the namespace default.`

func vmCommand() *cobra.Command {
	var f deskFlags
	c := &cobra.Command{Use: "vm", Short: "Add, list, start, stop, resize and delete VMs",
		Long: vmHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	f.add(c)
	c.AddCommand(vmAddCommand(&f), vmListCommand(&f), vmShowCommand(&f), vmResizeCommand(&f),
		vmStopCommand(&f), vmDeleteCommand(&f), vmReleaseCommand(&f),
		vmVerb(&f, "start", "Let a VM run that was stopped", (*client.Client).StartVM),
		vmVerb(&f, "reboot", "Ask a VM's guest to reboot", (*client.Client).RebootVM),
		vmVerb(&f, "evict", "Ask for a VM to leave its host", (*client.Client).Evict))
	return c
}

const vmAddHelp = `Add adds the VMs of a file, or one VM from flags:

  vms:
  - {name: "web-[1-3]", memory: 4GiB, cpus: 2, labels: {app: web}}
  - {name: db, host: n1, memory: 16GiB, cpus: 8, hardware: {disks: [{name: root, path: /nfs/db}]}}

The words are those of godwit simulate's scenarios. Without a host the controller chooses one.
Either all VMs of the file are sound, or none is added. It prints those that were added.`

func vmAddCommand(f *deskFlags) *cobra.Command {
	var v client.NewVM
	c := &cobra.Command{Use: "add FILE | NAME --memory SIZE", Short: "Add VMs", Long: vmAddHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				v.Name = args[0]
				added, err := d.Add(ctx, v)
				if err != nil && len(added) == 0 {
					return err
				}
				return errors.Join(d.saidVMs(ctx, added), err)
			})
		}}
	flags := c.Flags()
	flags.StringVar(&v.Memory, "memory", "", "`SIZE` of its memory: 4GiB; else it is a file")
	flags.IntVar(&v.CPUs, "cpus", 1, "`N` virtual CPUs")
	flags.StringVar(&v.Host, "host", "", "the `HOST` where it is to run at first")
	flags.StringVar(&v.Firmware, "firmware", "", "`FILE` of its firmware, on the hosts")
	flags.StringVar(&v.Machine, "machine", "", "its machine `TYPE`: q35, pc")
	flags.StringVar(&v.Disk, "disk", "", "`PATH` of its disk, on all hosts")
	flags.StringVar(&v.Strategy, "strategy", "", "what an eviction does to it: None,\n"+
		"LiveMigrate, LiveMigrateIfPossible or External; default: the cluster's")
	return c
}

// vmVerb is a command that changes one VM.
func vmVerb(f *deskFlags, verb, short string,
	do func(*client.Client, context.Context, vmid) (*store.VM, error)) *cobra.Command {
	return &cobra.Command{Use: verb + " VM", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				v, err := do(&d.Client, ctx, client.ID(args[0]))
				return d.said(ctx, v, err)
			})
		}}
}

// said prints a VM that was changed.
func (d *desk) said(ctx context.Context, v *store.VM, err error) error {
	if err != nil {
		return err
	}
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	now := client.OfVM(c, v)
	return d.print(now, func(w io.Writer) error { return client.VMs(w, []client.VM{now}) })
}

// saidVMs prints VMs that were added.
func (d *desk) saidVMs(ctx context.Context, all []*store.VM) error {
	c, err := d.look(ctx)
	if err != nil {
		return err
	}
	list := make([]client.VM, len(all))
	for i, v := range all {
		list[i] = client.OfVM(c, v)
	}
	return d.print(list, func(w io.Writer) error { return client.VMs(w, list) })
}

// deleted is what --json prints of a VM that is no more.
type deleted struct {
	Name  vmid   `json:"name"`
	State string `json:"state"` // "deleted"
}

func vmStopCommand(f *deskFlags) *cobra.Command {
	var kill bool
	c := &cobra.Command{Use: "stop VM", Short: "Shut a VM down", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				v, err := d.StopVM(ctx, client.ID(args[0]), kill)
				return d.said(ctx, v, err)
			})
		}}
	c.Flags().BoolVar(&kill, "kill", false, "at once, without asking its guest")
	return c
}

const vmReleaseHelp = `Release takes back the claim of a VM that is held by a migration which does not
exist any more: its record was deleted, or restored without it. Until then nothing moves the VM,
stops it, or starts it again.

It is refused while the migration is known: godwit cancel ends that. It takes effect when the VM's
host has confirmed that the VM is there and that no transfer of that name is under way; so it is
refused while that host is lost, too. Who has asked is in the audit log.`

func vmReleaseCommand(f *deskFlags) *cobra.Command {
	var by string
	c := &cobra.Command{Use: "release VM [--by NAME]",
		Short: "Take back a claim of a migration that does not exist any more",
		Long:  vmReleaseHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if by == "" {
				if u, err := user.Current(); err == nil {
					by = u.Username
				}
			}
			return f.once(c, func(ctx context.Context, d *desk) error {
				v, err := d.ReleaseVM(ctx, client.ID(args[0]), by)
				return d.said(ctx, v, err)
			})
		}}
	c.Flags().StringVar(&by, "by", "", "`NAME` of who asks; default: the user")
	return c
}

func vmResizeCommand(f *deskFlags) *cobra.Command {
	var memory string
	var size client.Size
	c := &cobra.Command{Use: "resize VM [--memory SIZE] [--cpus N]",
		Short: "Change a VM's size: it takes it when it starts the next time, or reboots",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if memory != "" {
				if size.Memory, err = inventory.ParseBytes(memory); err != nil {
					return fmt.Errorf("--memory: %w", err)
				}
			}
			return f.once(c, func(ctx context.Context, d *desk) error {
				v, err := d.ResizeVM(ctx, client.ID(args[0]), size)
				return d.said(ctx, v, err)
			})
		}}
	c.Flags().StringVar(&memory, "memory", "", "`SIZE` of its memory: 4GiB")
	c.Flags().IntVar(&size.CPUs, "cpus", 0, "`N` virtual CPUs")
	return c
}

func vmDeleteCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "delete VM", Short: "Forget a VM that is stopped; its disks stay",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				id := client.ID(args[0])
				if err := d.DeleteVM(ctx, id); err != nil {
					return err
				}
				return d.print(deleted{id, "deleted"}, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, "deleted", id)
					return err
				})
			})
		}}
}

func vmListCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the VMs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				c, err := d.look(ctx)
				if err != nil {
					return err
				}
				s := client.MakeStatus(c, d.Draining, d.Now())
				return d.alarmed(s, d.print(s.VMs, func(w io.Writer) error {
					return client.VMs(w, s.VMs)
				}))
			})
		}}
}

func vmShowCommand(f *deskFlags) *cobra.Command {
	return &cobra.Command{Use: "show VM", Short: "Print all that is stored about a VM, as JSON",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *desk) error {
				return d.show(ctx, store.Key{Kind: store.VMKind,
					Name: string(client.ID(args[0]))})
			})
		}}
}
