package cli

import "github.com/spf13/cobra"

// BenchCommands returns godwit bench with the commands below it, and the same under its old name.
func BenchCommands() []*cobra.Command {
	return []*cobra.Command{benchCommand(), formerly("lab", benchCommand(), "bench")}
}

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Compare policies, and the model of migrations with measurements",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands()...)
	return c
}

// commands lists the experiments, one line each.
func commands() []*cobra.Command {
	return []*cobra.Command{accuracyCommand(), benchPlansCommand(), convergenceCommand(), evacuationCommand()}
}
