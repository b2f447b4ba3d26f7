package desk

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/daemon/audit"
	"github.com/godwit-vm/godwit/daemon/operate"
	"github.com/godwit-vm/godwit/daemon/report"
)

const auditHelp = `Audit checks an audit log, and says what was taken out, put in or changed;
with --vm it prints what was decided about one VM, and why.

Exit status: 0 the log is whole, 2 bad input, 3 it is not.`

func auditCommand() *cobra.Command {
	var vm string
	var asJSON bool
	c := &cobra.Command{Use: "audit FILE", Short: "Check and search an audit log", Long: auditHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if vm != "" {
				return search(c.OutOrStdout(), f, vmid(operate.ID(vm)), asJSON)
			}
			return verify(c.OutOrStdout(), f)
		}}
	c.Flags().StringVar(&vm, "vm", "", "print what was decided about this `VM`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lines as they are")
	return c
}

// verify checks a log.
func verify(out io.Writer, f io.Reader) error {
	s, err := audit.Verify(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d lines, numbers %d to %d, %d torn by crashes\n", s.Lines, s.First, s.Last,
		s.Torn)
	for _, wrong := range s.Findings {
		fmt.Fprintln(out, wrong.Error())
	}
	if len(s.Findings) > 0 {
		return ErrNotDone
	}
	return nil
}

// search prints the lines about a VM.
func search(out io.Writer, f io.Reader, vm vmid, asJSON bool) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_, err := audit.Read(f, func(l audit.Line) error {
		switch {
		case l.VM != vm:
			return nil
		case asJSON:
			return e.Encode(l)
		}
		fmt.Fprintf(out, "%s  %s  %s  %s\n", l.At.Format("2006-01-02 15:04:05.000"),
			report.Plain(l.By), l.Kind, report.Plain(l.What))
		for _, r := range l.Reasons {
			fmt.Fprintf(out, "    %s: needs %s, has %s\n", report.Plain(r.Check),
				report.Plain(r.Need), report.Plain(r.Have))
		}
		return nil
	})
	return err
}
