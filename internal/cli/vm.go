package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/store"
)

const vmHelp = `Create, start, stop, pause, resize and delete VMs, and change their disks
and snapshots. A command returns when the request is
stored; controller and agents then carry it out, and godwit status shows their progress. A VM is
named namespace/name, or name alone in the namespace default.`

func vmCommand() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{Use: "vm", Short: "Add, list, start, stop, resize and delete VMs",
		Long: vmHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	f.add(c)
	c.PersistentFlags().StringVar(&f.by, "by", "", "`NAME` of the operator, for the audit log;\n"+
		"default: the current user")
	c.AddCommand(vmAddCommand(&f), vmListCommand(&f), vmShowCommand(&f), vmResizeCommand(&f),
		vmStopCommand(&f), vmDeleteCommand(&f), vmReleaseCommand(&f),
		vmVerb(&f, "start", "Start a VM", (*client.Client).StartVM),
		vmAttachCommand(&f), vmDetachCommand(&f), vmMoveDiskCommand(&f), vmSnapshotCommand(&f), vmConsoleCommand(&f), vmRenameCommand(&f),
		vmLabelCommand(&f),
		vmVerb(&f, "pause", "Pause a VM's guest, which keeps its memory", (*client.Client).PauseVM),
		vmVerb(&f, "resume", "Resume a VM's guest that was paused", (*client.Client).ResumeVM),
		vmVerb(&f, "reboot", "Reboot a VM's guest", (*client.Client).RebootVM),
		vmVerb(&f, "evict", "Evict a VM from its host", (*client.Client).Evict))
	return c
}

const vmAddHelp = `Add the VMs of a file, or one VM from flags:

  vms:
  - {name: "web-[1-3]", memory: 4GiB, cpus: 2, labels: {app: web}}
  - {name: db, host: n1, memory: 16GiB, cpus: 8, hardware: {disks: [{name: root, path: /nfs/db}]}}

The format is that of godwit simulate's scenarios. Without a host the controller chooses one.
If one VM of the file is invalid, none is added. The command prints the VMs that were added.`

func vmAddCommand(f *sessionFlags) *cobra.Command {
	var v client.NewVM
	c := &cobra.Command{Use: "add FILE | NAME --memory SIZE", Short: "Add VMs", Long: vmAddHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				v.Name = args[0]
				added, err := d.Add(ctx, v)
				if err != nil && len(added) == 0 {
					return err
				}
				return errors.Join(d.saidVMs(ctx, added), err)
			})
		}}
	flags := c.Flags()
	flags.StringVar(&v.Memory, "memory", "", "`SIZE` of its memory: 4GiB; without it the argument is a file")
	flags.IntVar(&v.CPUs, "cpus", 1, "`N` virtual CPUs")
	flags.StringVar(&v.MaxMemory, "max-memory", "", "`SIZE` that its memory can grow to while it runs;\n"+
		"default: it does not")
	flags.IntVar(&v.MaxCPUs, "max-cpus", 0, "`N` CPUs that it can grow to while it runs; default: it\n"+
		"does not")
	flags.StringVar(&v.Host, "host", "", "the `HOST` where it is started")
	flags.StringVar(&v.Firmware, "firmware", "", "`FILE` of its firmware, on the hosts")
	flags.StringVar(&v.Machine, "machine", "", "its machine `TYPE`: q35, pc")
	flags.StringVar(&v.Disk, "disk", "", "`PATH` of its disk, on all hosts; PATH,format=qcow2\n"+
		"or PATH,format=raw declares its format; default: raw")
	flags.StringVar(&v.Strategy, "strategy", "", "its eviction strategy: None,\n"+
		"LiveMigrate, LiveMigrateIfPossible or External; default: the cluster's")
	return c
}

// vmVerb is a command that changes one VM.
func vmVerb(f *sessionFlags, verb, short string,
	do func(*client.Client, context.Context, vmid) (*store.VM, error)) *cobra.Command {
	return &cobra.Command{Use: verb + " VM", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := do(&d.Client, ctx, client.ID(args[0]))
				return d.said(ctx, v, err)
			})
		}}
}

// said prints a VM that was changed.
func (d *session) said(ctx context.Context, v *store.VM, err error) error {
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
func (d *session) saidVMs(ctx context.Context, all []*store.VM) error {
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

// deleted is what --json prints of a deleted VM.
type deleted struct {
	Name  vmid   `json:"name"`
	State string `json:"state"` // "deleted"
}

func vmStopCommand(f *sessionFlags) *cobra.Command {
	var kill bool
	c := &cobra.Command{Use: "stop VM", Short: "Shut a VM down", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.StopVM(ctx, client.ID(args[0]), kill)
				return d.said(ctx, v, err)
			})
		}}
	c.Flags().BoolVar(&kill, "kill", false, "power off at once, without a guest shutdown")
	return c
}

const vmReleaseHelp = `Release a VM that is claimed by a migration which no longer exists: the
migration's record was deleted, or lost when the store was restored. Until then the VM is neither
migrated, stopped nor restarted.

The command is refused while the migration exists: use godwit cancel. It takes effect when the VM's
host has confirmed that the VM runs there and that no transfer of that name is running; so it is
refused while that host is lost, too. The audit log has the name of the operator.`

func vmReleaseCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "release VM [--by NAME]",
		Short: "Release a VM claimed by a migration that no longer exists",
		Long:  vmReleaseHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.ReleaseVM(ctx, client.ID(args[0]), d.By)
				return d.said(ctx, v, err)
			})
		}}
}

const vmAttachHelp = `Attach a disk to a VM, running or not. With --path it is a shared disk, whose file
is at that path on every host; without, it is a local disk, which the VM's host makes in the size that
is given and which a migration copies. Repeated, the command changes nothing.

A file that looks like qcow2 is refused unless --format declares what it is. godwit vm list says why
a disk is not attached yet; godwit vm detach takes the request back.`

func vmAttachCommand(f *sessionFlags) *cobra.Command {
	var disk hypervisor.Disk
	var size string
	c := &cobra.Command{Use: "attach VM DISK [--path PATH] [--size SIZE]", Short: "Attach a disk to a VM",
		Long: vmAttachHelp, Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if size != "" {
				if disk.Size, err = inventory.ParseBytes(size); err != nil {
					return fmt.Errorf("--size: %w", err)
				}
			}
			disk.Name = args[1]
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.AttachDisk(ctx, client.ID(args[0]), disk)
				return d.said(ctx, v, err)
			})
		}}
	flags := c.Flags()
	flags.StringVar(&disk.Path, "path", "", "`PATH` of its file, on all hosts; default: a local disk")
	flags.StringVar(&disk.Format, "format", "", "its `FORMAT`: raw or qcow2; default: raw")
	flags.StringVar(&size, "size", "", "`SIZE` of a local disk: 8GiB")
	flags.BoolVar(&disk.ReadOnly, "read-only", false, "the guest may not write to it")
	return c
}

func vmDetachCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "detach VM DISK", Short: "Detach a disk from a VM; its file stays",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.DetachDisk(ctx, client.ID(args[0]), args[1])
				return d.said(ctx, v, err)
			})
		}}
}

const vmResizeHelp = `Resize a VM. One that runs grows at once, where it was started with room for that
(--max-memory and --max-cpus of godwit vm add) and its host can do it: memory in multiples of 128MiB,
CPUs one by one. Disks grow at once, too, and never shrink. Everything else takes effect at its next start
or reboot: less memory, fewer CPUs, and more than there is room for. godwit vm list says what a VM waits for.

With --max-memory and --max-cpus the VM has that room from its next start on.`

func vmResizeCommand(f *sessionFlags) *cobra.Command {
	var memory, most string
	var disks []string
	var size client.Size
	c := &cobra.Command{Use: "resize VM [--memory SIZE] [--cpus N] [--disk NAME=SIZE]",
		Short: "Resize a VM: at once where it has room to grow, else at its next start",
		Long:  vmResizeHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if memory != "" {
				if size.Memory, err = inventory.ParseBytes(memory); err != nil {
					return fmt.Errorf("--memory: %w", err)
				}
			}
			if most != "" {
				if size.MaxMemory, err = inventory.ParseBytes(most); err != nil {
					return fmt.Errorf("--max-memory: %w", err)
				}
			}
			if size.Disks, err = diskSizes(disks); err != nil {
				return err
			}
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.ResizeVM(ctx, client.ID(args[0]), size)
				return d.said(ctx, v, err)
			})
		}}
	c.Flags().StringVar(&memory, "memory", "", "`SIZE` of its memory: 4GiB")
	c.Flags().IntVar(&size.CPUs, "cpus", 0, "`N` virtual CPUs")
	c.Flags().StringVar(&most, "max-memory", "", "`SIZE` that its memory can grow to while it runs")
	c.Flags().IntVar(&size.MaxCPUs, "max-cpus", 0, "`N` CPUs that it can grow to while it runs")
	c.Flags().StringArrayVar(&disks, "disk", nil, "a disk and the size that it grows to, as `NAME=SIZE`: data=20GiB;\n"+
		"may be repeated")
	return c
}

// diskSizes reads sizes of disks: "data=20GiB".
func diskSizes(words []string) (map[string]hypervisor.Bytes, error) {
	sizes := map[string]hypervisor.Bytes{}
	for _, word := range words {
		name, text, _ := strings.Cut(word, "=")
		size, err := inventory.ParseBytes(text)
		if name == "" || err != nil {
			return nil, fmt.Errorf("--disk %s: want the name of a disk and a size, like data=20GiB: %w", word, err)
		}
		sizes[name] = size
	}
	return sizes, nil
}

const vmLabelHelp = `Set labels of a VM; KEY= removes one. Migration policies select VMs by their labels: godwit explain
policy says which policy a VM gets. A migration that has begun keeps the options that it has.`

func vmLabelCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "label VM KEY=VALUE…", Short: "Set labels; KEY= removes one",
		Long: vmLabelHelp, Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			labels, err := parseLabels(args[1:])
			if err != nil {
				return err
			}
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.LabelVM(ctx, client.ID(args[0]), labels)
				return d.said(ctx, v, err)
			})
		}}
}

func vmDeleteCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "delete VM", Short: "Delete the record of a stopped VM; its disks stay",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
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

func vmListCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the VMs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				c, err := d.look(ctx)
				if err != nil {
					return err
				}
				s, err := d.status(ctx, c, &placeless{})
				if err != nil {
					return err
				}
				return d.alarmed(s, d.print(s.VMs, func(w io.Writer) error {
					return client.VMs(w, s.VMs)
				}))
			})
		}}
}

func vmShowCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "show VM", Short: "Print all that is stored about a VM, as JSON",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				return d.show(ctx, store.Key{Kind: store.VMKind,
					Name: string(client.ID(args[0]))})
			})
		}}
}
