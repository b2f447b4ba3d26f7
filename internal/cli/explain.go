package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
)

const explainVMHelp = `Explain why a VM is where it is: the results of its migrations, with every
reason, and what a controller would decide now. The command changes nothing. If the controller has
a configuration file, name it with --config. docs/failed-migrations.md says what the reasons mean.

For a fleet that a file describes, without a store: godwit explain destination explains a placement,
godwit explain policy which migration policy a VM gets.`

// ExplainCommand returns the command that explains why a VM is where it is.
func ExplainCommand() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{Use: "explain VM|MIGRATION",
		Short: "Explain a decision, without changing anything", Long: explainVMHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return f.once(c, func(ctx context.Context, d *session) error {
				return d.explain(ctx, args[0])
			})
		}}
	f.add(c)
	return c
}

// explain prints why a VM, or that of a migration, is where it is.
func (d *session) explain(ctx context.Context, name string) error {
	vm, err := d.VMOf(ctx, name)
	if err != nil {
		return err
	}
	e, err := client.Explain(ctx, d.Store, d.settings.Controller, vm, d.Now())
	if err != nil {
		return err
	}
	return d.print(e, func(w io.Writer) error { return e.Table(w, d.Now()) })
}
