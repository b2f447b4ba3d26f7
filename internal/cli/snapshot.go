package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

const vmSnapshotHelp = `Create, list, delete and revert snapshots of a VM's disks. A snapshot keeps
the contents of one qcow2 disk under a name, inside of its image; the VM's memory is not in it. A disk
of a VM that runs is kept as after a power failure.

A command returns when the request is stored, and prints its id. The agent of the VM's host carries it
out once: a request that is refused is not tried again, and godwit vm snapshot list says why. A VM
whose local disk has a snapshot cannot migrate, because the migration would lose it.

libvirt keeps a snapshot of one disk only while the VM is stopped, and of a VM with one disk.`

func vmSnapshotCommand(f *sessionFlags) *cobra.Command {
	c := &cobra.Command{Use: "snapshot", Short: "Create, list, delete and revert snapshots of disks",
		Long: vmSnapshotHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(vmSnapshotVerb(f, store.CreateSnapshot, "Keep the contents of a disk under a name"),
		vmSnapshotVerb(f, store.DeleteSnapshot, "Delete a snapshot"),
		vmSnapshotVerb(f, store.RevertSnapshot, "Give a disk of a stopped VM its contents back"),
		vmSnapshotListCommand(f))
	return c
}

// requested is what --json prints of a request about a snapshot.
type requested struct {
	Request string `json:"request"` // its id
	VM      vmid   `json:"vm"`
}

func vmSnapshotVerb(f *sessionFlags, what, short string) *cobra.Command {
	return &cobra.Command{Use: what + " VM DISK NAME", Short: short, Args: cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				id := client.ID(args[0])
				request, err := d.AskSnapshot(ctx, id, what, args[1], args[2])
				if err != nil {
					return err
				}
				return d.print(requested{request, id}, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "requested %s: %s snapshot %s of disk %s of %s\n", request, what,
						args[2], args[1], id)
					return err
				})
			})
		}}
}

func vmSnapshotListCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "list VM", Short: "List the snapshots that godwit has made, and open requests",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				all, err := d.Snapshots(ctx, client.ID(args[0]))
				if err != nil {
					return err
				}
				return d.print(all, func(w io.Writer) error { return client.SnapshotTable(w, all) })
			})
		}}
}
