package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

const vmConsoleHelp = `Connect the terminal to the first serial port of a VM. ^] ends that; the VM runs on.

The command runs on the VM's host, as the user of its agent: elsewhere, use ssh -t HOST godwit vm console
VM. A VM has one console at a time. What the guest wrote before is not shown. The console ends when the
VM stops or moves to another host. The agent's audit log says who opened it.`

func vmConsoleCommand(f *sessionFlags) *cobra.Command {
	var locks string
	c := &cobra.Command{Use: "console VM", Short: "Connect to the serial console of a VM on this machine",
		Long: vmConsoleHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id := client.ID(args[0])
			var host hypervisor.HostName
			err := f.once(c, func(ctx context.Context, d *session) (err error) {
				host, err = hostOf(ctx, d, id)
				return err
			})
			if err != nil {
				return err
			}
			return useConsole(c, id, host, daemon.ConsolePath(locks, host))
		}}
	c.Flags().StringVar(&locks, "locks", os.Getenv(locksVariable), "`DIR` of the locks of the host's agent; "+
		"default: $"+locksVariable+",\nor /run/godwit")
	return c
}

const locksVariable = "GODWIT_LOCKS" // The directory of the locks of agents, where --locks is not given.

// hostOf returns the host of a VM.
func hostOf(ctx context.Context, d *session, id vmid) (hypervisor.HostName, error) {
	v, err := store.VMNamed(ctx, d.Store, id)
	switch {
	case err != nil:
		return "", err
	case v == nil:
		return "", d.Missing(ctx, store.Key{Kind: store.VMKind, Name: string(id)})
	case v.Host == "":
		return "", fmt.Errorf("vm %s has no host yet, and no console", id)
	}
	return v.Host, nil
}

// useConsole connects the command's input and output to a console.
func useConsole(c *cobra.Command, id vmid, host hypervisor.HostName, path string) error {
	con, err := daemon.DialConsole(c.Context(), path, id)
	if refused, is := errors.AsType[*daemon.ConsoleRefusedError](err); is {
		return fmt.Errorf("console of vm %s: refused: %s", id, client.Plain(refused.Why))
	}
	if err != nil {
		return fmt.Errorf("console of vm %s: no agent of host %s can be reached on this machine (%w): run this "+
			"there, as the agent's user: ssh -t %s godwit vm console %s", id, host, err, host, id)
	}
	fmt.Fprintf(c.ErrOrStderr(), "connected to %s on %s; ^] ends\n", id, host)
	restore, err := raw(c.InOrStdin())
	if err != nil {
		return errors.Join(err, con.Close())
	}
	stop := context.AfterFunc(c.Context(), func() { _ = con.Close() })
	escaped, err := daemon.AttachConsole(con, c.InOrStdin(), c.OutOrStdout())
	stop()
	err = errors.Join(err, restore())
	if !escaped && err == nil && c.Context().Err() == nil {
		fmt.Fprintf(c.ErrOrStderr(), "\nthe console of %s has ended: it has stopped, or moved: see godwit vm list\n", id)
	}
	return err
}

// raw has a terminal pass on each key at once, and returns what undoes that.
func raw(in io.Reader) (restore func() error, err error) {
	f, is := in.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return func() error { return nil }, nil
	}
	was, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	return func() error { return term.Restore(int(f.Fd()), was) }, nil
}
