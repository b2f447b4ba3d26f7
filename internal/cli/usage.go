package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExplainUsage lets a program's commands say so. Their Use names every argument: words in
// brackets may be left out, and one that ends in … may be repeated.
func ExplainUsage(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.SetFlagErrorFunc(flagError)
	explain(root)
}

func explain(c *cobra.Command) {
	switch valid := c.Args; {
	case c.Name() == "help":
		c.Args = topic
	case valid != nil:
		c.Args = func(c *cobra.Command, args []string) error {
			if valid(c, args) == nil {
				return nil
			}
			return argsError(c, args)
		}
	}
	for _, below := range c.Commands() {
		explain(below)
	}
}

// alike is how many letters may differ in what was meant.
const alike = 2

// argsError says what is wrong with arguments, of which there are too few or too many.
func argsError(c *cobra.Command, args []string) error {
	if len(arguments(c.Use)) == 0 && c.HasAvailableSubCommands() {
		return unknown(c, args[0])
	}
	wanted, line := arguments(c.Use), strings.TrimSuffix(c.CommandPath(), c.Name())+c.Use
	if len(args) < len(wanted) {
		return fmt.Errorf("%s is missing: write %s", strings.Join(wanted[len(args):], " "), line)
	}
	return fmt.Errorf("%q is too much: write %s", strings.Join(args[len(wanted):], " "), line)
}

// topic refuses what help is not about.
func topic(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err != nil || len(rest) == 0 {
		return err
	}
	return unknown(found, rest[0])
}

// unknown says that there is no such command below one.
func unknown(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = alike
	return fmt.Errorf("there is no command %q: %s%s", c.CommandPath()+" "+name,
		meant(c.SuggestionsFor(name)), usageHelp(c))
}

// usageHelp says where a command is described.
func usageHelp(c *cobra.Command) string {
	return "see " + strings.Replace(c.CommandPath(), c.Root().Name(), c.Root().Name()+" help", 1)
}

// arguments returns the words of a Use that stand for arguments.
func arguments(use string) []string {
	words := strings.Fields(strings.ReplaceAll(use, " | ", "|"))[1:]
	for i, word := range words {
		if strings.HasPrefix(strings.TrimPrefix(word, "["), "-") {
			return words[:i]
		}
	}
	return words
}

// kinds says what the values of a flag are, by their type.
var kinds = map[string]string{"int": "a whole number", "uint64": "a whole number of 0 or more",
	"bool": "true or false", "duration": "a time such as 30s"}

// flagError says what is wrong with a flag.
func flagError(c *cobra.Command, err error) error {
	if e, is := errors.AsType[*pflag.NotExistError](err); is {
		if short := e.GetSpecifiedShortnames(); short != "" {
			return fmt.Errorf("%s has no flag -%s: %s", c.CommandPath(), short, usageHelp(c))
		}
		name := e.GetSpecifiedName()
		return fmt.Errorf("%s has no flag --%s: %s%s", c.CommandPath(), name,
			meant(similar(c.Flags(), name)), usageHelp(c))
	}
	if e, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Errorf("--%s has no value: write --%[1]s %s", e.GetFlag().Name, what)
	}
	if e, is := errors.AsType[*pflag.InvalidValueError](err); is {
		if e.GetFlag().Value.Type() == "uint64" && e.GetValue() != "" && strings.Trim(e.GetValue(), "0123456789") == "" {
			return fmt.Errorf("--%s needs a whole number up to %d, has %s", e.GetFlag().Name, uint64(math.MaxUint64), e.GetValue())
		}
		if kind := kinds[e.GetFlag().Value.Type()]; kind != "" {
			return fmt.Errorf("--%s needs %s, has %q", e.GetFlag().Name, kind, e.GetValue())
		}
	}
	return fmt.Errorf("%w: %s", err, usageHelp(c))
}

// similar returns the flags whose names are like one. How alike names are is known to the
// library, of commands.
func similar(flags *pflag.FlagSet, name string) []string {
	as := &cobra.Command{SuggestionsMinimumDistance: alike}
	flags.VisitAll(func(f *pflag.Flag) {
		as.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	names := as.SuggestionsFor(name)
	for i := range names {
		names[i] = "--" + names[i]
	}
	return names
}

// meant asks whether one of the names was meant.
func meant(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(names, " or ") + "? "
}
