package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
)

const vmRenameHelp = `Give a VM that is stopped another name, in its namespace. The agent of its host carries
that out: until godwit vm list shows the new name nothing else can be asked of the VM.

Its guest sees another machine UUID, which follows from the name. A VM with a local disk is refused: the
disk is kept under the VM's name.`

func vmRenameCommand(f *sessionFlags) *cobra.Command {
	return &cobra.Command{Use: "rename VM NAME", Short: "Rename a VM that is stopped", Long: vmRenameHelp,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return f.once(c, func(ctx context.Context, d *session) error {
				v, err := d.RenameVM(ctx, client.ID(args[0]), hypervisor.VMID(args[1]))
				return d.said(ctx, v, err)
			})
		}}
}
