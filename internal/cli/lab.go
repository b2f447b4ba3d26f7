package cli

import "github.com/spf13/cobra"

// LabCommand returns godwit lab with the commands below it.
func LabCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Put the model of migrations to the test",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands()...)
	return c
}

// commands lists the experiments, one line each.
func commands() []*cobra.Command {
	return []*cobra.Command{accuracyCommand(), convergenceCommand(), evacuationCommand()}
}
