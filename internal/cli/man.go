package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManCommand returns the command that writes the manual pages, for packages.
func ManCommand() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write the manual pages to a directory", Hidden: true,
		Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writePages(args[0], c.Root())
		}}
}

// writePages writes the page of a command, and those of the commands below it.
func writePages(dir string, c *cobra.Command) error {
	path := filepath.Join(dir, pageName(c)+".1")
	all := []error{os.WriteFile(path, []byte(manPage(c)), 0o644)}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, writePages(dir, below))
		}
	}
	return errors.Join(all...)
}

// pageName is the name of a command's page: godwit-host-cordon.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns a command's manual page.
// Source: man(7), groff_man(7) of groff 1.22.4.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"godwit %s\" \"godwit\"\n.nh\n.ad l\n",
		roff(strings.ToUpper(pageName(c))), Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fR\n", roff(c.UseLine()))
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n" + paragraphs(c.Long))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR(1)\n%s.\n", roff(pageName(below)), roff(below.Short))
			}
		}
	}
	c.InitDefaultHelpFlag()
	options(&b, "OPTIONS", c.LocalFlags())
	options(&b, "OPTIONS OF ALL COMMANDS ABOVE", c.InheritedFlags())
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n\\fB%s\\fR(1)\n", roff(pageName(c.Parent())))
	}
	return b.String()
}

// options writes a section of flags.
func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", roff(f.Shorthand))
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", roff(f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
		}
		usage = strings.ToUpper(usage[:1]) + usage[1:]
		fmt.Fprintf(b, "\n%s.\n", roff(strings.Join(strings.Fields(usage), " ")))
	})
}

// paragraphs sets a help text: what is indented stays as it is.
func paragraphs(text string) string {
	var b strings.Builder
	verbatim := false
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(part, " ") || strings.HasPrefix(part, "\t")
		switch {
		case part == "" && verbatim:
			b.WriteString("\n")
			continue
		case part == "":
			b.WriteString(".PP\n")
			continue
		case indented && !verbatim:
			b.WriteString(".PP\n.nf\n")
		case !indented && verbatim:
			b.WriteString(".fi\n.PP\n")
		}
		verbatim = indented
		b.WriteString(roff(part) + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
	return strings.ReplaceAll(b.String(), ".PP\n.PP\n", ".PP\n")
}

// roff is a text that troff prints as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "“", `"`, "”", `"`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
