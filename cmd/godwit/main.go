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
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/cmd/godwit/calibrate"
	"github.com/godwit-vm/godwit/cmd/godwit/convert"
	"github.com/godwit-vm/godwit/cmd/godwit/desk"
	"github.com/godwit-vm/godwit/cmd/godwit/lab"
	"github.com/godwit-vm/godwit/cmd/godwit/output"
	"github.com/godwit-vm/godwit/cmd/godwit/planner"
	"github.com/godwit-vm/godwit/cmd/godwit/replay"
	"github.com/godwit-vm/godwit/cmd/godwit/sweep"
	"github.com/godwit-vm/godwit/cmd/godwit/usage"
	"github.com/godwit-vm/godwit/daemon/hosts"
	"github.com/godwit-vm/godwit/daemon/stores"
	"github.com/godwit-vm/godwit/internal/build"
	"github.com/godwit-vm/godwit/lease"
)

// The exit statuses.
const (
	exitViolated    = 1 // an invariant did not hold
	exitBadInput    = 2
	exitNoTarget    = 3   // no host takes the VM, or what was waited for has not come about
	exitTwo         = 4   // another agent has the host's name, or a VM runs twice
	exitInterrupted = 130 // 128 + SIGINT, as shells say it
)

// isDaemon marks the commands that run until they are told to end.
const isDaemon = "daemon"

// grace is how long a command that was interrupted may take to print what it has. What plans is
// pure, and does not know that it was interrupted.
const grace = 2 * time.Second

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
		Version:       build.Name(),
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	explain := desk.Explain()
	explain.AddCommand(targetCommand())
	root.AddCommand(simulateCommand(), sweep.Merge(), controllerCommand(), agentCommand(), explain)
	root.AddCommand(desk.Commands()...)
	root.AddCommand(lab.Command(), calibrate.Command(), convert.Command(), planner.Command())
	root.AddCommand(replay.Command())
	usage.Explain(root)
	root.SetArgs(args)
	ended := make(chan struct{})
	defer close(ended)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if c.Annotations[isDaemon] == "" {
			context.AfterFunc(ctx, func() { cutOff(ended) })
		}
	}
	c, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(output.Plain(os.Stderr), "godwit:", err)
	}
	if ctx.Err() != nil && c.Annotations[isDaemon] == "" {
		return exitInterrupted
	}
	return exitStatus(err)
}

// cutOff ends the process unless what was interrupted ends by itself.
func cutOff(ended <-chan struct{}) {
	select {
	case <-ended:
	case <-time.After(grace):
		fmt.Fprintln(os.Stderr, "godwit: interrupted: there is no answer yet")
		os.Exit(exitInterrupted)
	}
}

// exitStatus returns what a command that ended with err tells the shell.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, sweep.ErrViolated), errors.Is(err, planner.ErrViolated),
		errors.Is(err, replay.ErrDiffers):
		return exitViolated
	case errors.Is(err, errNoTarget), errors.Is(err, desk.ErrNotDone),
		errors.Is(err, planner.ErrNotDone):
		return exitNoTarget
	}
	if isSecond(err) {
		return exitTwo
	}
	return exitBadInput
}

// isSecond reports whether an agent ended because there is another one, or somebody was told of
// an alarm.
func isSecond(err error) bool {
	_, two := errors.AsType[*lease.IdentityError](err)
	_, foreign := errors.AsType[*lease.ForeignError](err)
	_, busy := errors.AsType[*hosts.BusyError](err)
	return two || foreign || busy || errors.Is(err, desk.ErrAlarm) || stores.Refused(err)
}
