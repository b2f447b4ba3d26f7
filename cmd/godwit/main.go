// Command godwit plans and simulates live migrations and host evacuations.
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
)

// The exit statuses.
const (
	exitViolated    = 1 // an invariant did not hold
	exitBadInput    = 2
	exitNoTarget    = 3   // no host takes the VM
	exitInterrupted = 130 // 128 + SIGINT, as shells say it
)

// errViolated says that a run broke an invariant; it has been reported.
var errViolated = errors.New("an invariant was violated")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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
	root.AddCommand(simulateCommand(), explainCommand())
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "godwit:", err)
	}
	if ctx.Err() != nil {
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
	case errors.Is(err, errNoTarget):
		return exitNoTarget
	}
	return exitBadInput
}
