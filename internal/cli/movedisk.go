package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

const vmMoveDiskHelp = `Move a disk of a VM to another path, while the VM runs and stays on its host. The disk's
image is copied to a new file; nothing is overwritten. When the copy is complete the VM goes on with it, and the
old image is removed, unless --keep is given. A local disk becomes a shared one: to migrate the VM afterwards,
the path has to be there on the other hosts, too.

Until that is over the VM does not migrate. godwit vm list shows how much is copied, or why the disk does not
move yet: it is tried again. --cancel takes the request back and removes the copy, as long as the VM has not gone
over to it.`

func vmMoveDiskCommand(f *sessionFlags) *cobra.Command {
	var move store.DiskMove
	c := &cobra.Command{Use: "move-disk VM --disk NAME {--to PATH | --cancel}", Short: "Move a disk of a VM that runs to another path",
		Long: vmMoveDiskHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case move.Disk == "":
				return errors.New("--disk: write the name of the disk")
			case move.Cancel == (move.To != ""):
				return errors.New("--to: write the path that the disk moves to, or --cancel")
			}
			return f.once(c, func(ctx context.Context, d *session) error {
				if move.Cancel {
					v, err := d.CancelDiskMove(ctx, client.ID(args[0]), move.Disk)
					return d.said(ctx, v, err)
				}
				v, err := d.MoveDisk(ctx, client.ID(args[0]), move)
				return d.said(ctx, v, err)
			})
		}}
	flags := c.Flags()
	flags.StringVar(&move.Disk, "disk", "", "`NAME` of the disk")
	flags.StringVar(&move.To, "to", "", "`PATH` of its new image, which is not there yet")
	flags.BoolVar(&move.Keep, "keep", false, "keep the old image")
	flags.BoolVar(&move.Cancel, "cancel", false, "take the request back, and remove the copy")
	return c
}
