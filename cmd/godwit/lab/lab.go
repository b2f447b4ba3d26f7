// Package lab is the commands that put the model to the test: flags and wiring, no
// decisions. Each command is a file of its own.
package lab

import "github.com/spf13/cobra"

// Command returns godwit lab with the commands below it.
func Command() *cobra.Command {
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
