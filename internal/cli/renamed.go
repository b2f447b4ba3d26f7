package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// formerly gives a command, and those below it, an old name. It works as before, is not listed,
// and prints the new name on standard error.
func formerly(old string, c *cobra.Command, path string) *cobra.Command {
	c.Use = old + c.Use[len(c.Name()):]
	c.Deprecated = `use "godwit ` + path + `"`
	for _, below := range c.Commands() {
		below.Deprecated = `use "godwit ` + path + " " + below.Name() + `"`
	}
	return c
}

// FormerFlag gives a flag an old name. It works as before, is not listed, and prints the new
// name on standard error.
func FormerFlag(flags *pflag.FlagSet, old, name string) {
	f := *flags.Lookup(name)
	f.Name, f.Deprecated, f.Hidden = old, "use --"+name, true
	flags.AddFlag(&f)
}
