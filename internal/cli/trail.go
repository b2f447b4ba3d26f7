package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/store"
)

const auditHelp = `Verify an audit log, and report lines that were removed, added or changed before its
last line. With --vm the command prints what was decided about one VM, and why, and what was noted of its
host and of the target of its migration meanwhile. Several files are read as one log, the oldest first: godwit audit FILE.2 FILE.1 FILE. Rows are counted across files.

--json prints one object: lines, torn (lines that a crash left unfinished), first and last (their
numbers), findings, each with row and what; with --vm the lines as they are, one object a line.

Exit status: 0 the log is complete, 2 bad input, 3 it is not.`

func auditCommand() *cobra.Command {
	var vm string
	var asJSON bool
	c := &cobra.Command{Use: "audit FILE…", Short: "Verify and search an audit log", Long: auditHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, done, err := joined(args)
			if err != nil {
				return err
			}
			defer done()
			if vm != "" {
				err = search(c.OutOrStdout(), f, vmid(client.ID(vm)), asJSON)
			} else {
				err = verifyCommand(c.OutOrStdout(), f, asJSON)
			}
			if err != nil && !errors.Is(err, ErrNotDone) {
				err = fmt.Errorf("%s: %w", strings.Join(args, ", "), err)
			}
			return err
		}}
	c.AddCommand(auditSealCommand(), auditVerifyCommand())
	c.Flags().StringVar(&vm, "vm", "", "print what was decided about this `VM`")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of text")
	return c
}

// joined concatenates files.
func joined(paths []string) (all io.Reader, done func(), err error) {
	var readers []io.Reader
	var files []*os.File
	done = func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			done()
			return nil, nil, err
		}
		files = append(files, f)
		readers = append(readers, f)
	}
	return io.MultiReader(readers...), done, nil
}

// verifyCommand checks a log.
func verifyCommand(out io.Writer, f io.Reader, asJSON bool) error {
	s, err := audit.Verify(f)
	switch {
	case err != nil:
		return err
	case s.Lines == 0:
		return notAuditLog(s.Torn)
	case asJSON:
		err = json.NewEncoder(out).Encode(s)
	default:
		err = tell(out, s)
	}
	if err == nil && len(s.Findings) > 0 {
		err = ErrNotDone
	}
	return err
}

// notAuditLog is the error of a file without a line of an audit log.
func notAuditLog(lines int) error {
	return fmt.Errorf("not an audit log: %s, and none has a number", humanize.Count(lines, "line"))
}

func tell(out io.Writer, s audit.Summary) error {
	_, err := fmt.Fprintf(out, "%s, numbers %d to %d, %d torn by crashes\n",
		humanize.Count(s.Lines, "line"), s.First, s.Last, s.Torn)
	for _, wrong := range s.Findings {
		fmt.Fprintln(out, wrong.Error())
	}
	return err
}

// concerned are the hosts whose notes matter to a VM, as its lines name them.
type concerned struct {
	vm           vmid
	home, target hypervisor.HostName
}

// take takes a line in, and reports whether it is about the VM, or is a note about a host that the VM is on or on
// its way to.
func (c *concerned) take(l *audit.Line) bool {
	switch {
	case l.VM == "":
		return l.Kind == audit.NoteKind && l.Host != "" && (l.Host == c.home || l.Host == c.target)
	case l.VM != c.vm:
		return false
	case strings.HasPrefix(l.Record, store.VMKind.String()+" "):
		if c.home = l.Host; l.Migration == "" {
			c.target = ""
		}
	case strings.HasPrefix(l.Record, store.MigrationKind.String()+" "):
		c.target = l.Host
	}
	return true
}

// search prints the lines about a VM.
func search(out io.Writer, f io.Reader, vm vmid, asJSON bool) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	found, about, lines := false, concerned{vm: vm}, 0
	torn, err := audit.Read(f, func(l audit.Line) error {
		lines++
		if !about.take(&l) {
			return nil
		}
		found = true
		if asJSON {
			return e.Encode(l)
		}
		by := l.By
		if l.Who != "" {
			by = l.Who
		}
		what := l.What
		if l.VM == "" {
			what = string(l.Host) + " " + what
		}
		fmt.Fprintf(out, "%s  %s  %s  %s\n", l.At.Format("2006-01-02 15:04:05.000"),
			client.Plain(by), l.Kind, client.Plain(what))
		for _, r := range l.Reasons {
			fmt.Fprintf(out, "    %s\n", client.Plain(humanize.Unmet(r.Check, r.Need, r.Have)))
		}
		return nil
	})
	switch {
	case err != nil:
	case lines == 0:
		err = notAuditLog(torn)
	case !found:
		err = fmt.Errorf("no line is about %s", vm)
	}
	return err
}
