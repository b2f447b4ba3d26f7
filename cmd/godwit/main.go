// Command godwit plans, simulates and carries out live migrations and host evacuations.
//
// This package is flags and wiring: what is decided, is decided elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/cmd/godwit/desk"
)

// The exit statuses.
const (
	exitViolated    = 1 // an invariant did not hold
	exitBadInput    = 2
	exitNoTarget    = 3   // no host takes the VM, or what was waited for has not come about
	exitInterrupted = 130 // 128 + SIGINT, as shells say it
)

// isDaemon marks the commands that run until they are told to end.
const isDaemon = "daemon"

// errViolated says that a run broke an invariant; it has been reported.
var errViolated = errors.New("an invariant was violated")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // whoever is told twice ends at once
	os.Exit(run(ctx, os.Args[1:]))
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string) int {
	root := &cobra.Command{
		Use:           "godwit",
		Short:         "Live migration and host evacuation of virtual machines",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	explain := desk.Explain()
	explain.AddCommand(targetCommand())
	root.AddCommand(simulateCommand(), controllerCommand(), agentCommand(), explain)
	root.AddCommand(desk.Commands()...)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "godwit:", err)
	}
	if ctx.Err() != nil && c.Annotations[isDaemon] == "" {
		return exitInterrupted
	}
	return exitStatus(err)
}

// exitStatus returns what a command that ended with err tells the shell.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errViolated):
		return exitViolated
	case errors.Is(err, errNoTarget), errors.Is(err, desk.ErrNotDone):
		return exitNoTarget
	}
	return exitBadInput
}
