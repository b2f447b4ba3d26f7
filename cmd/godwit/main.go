// Command godwit plans, simulates and carries out live migrations and host evacuations.
//
// This package is flags and wiring; all decisions are made elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/store"
)

// The exit statuses.
const (
	exitDone        = 0   // The command has done what was asked.
	exitViolated    = 1   // An invariant did not hold, or a replay differs from its log.
	exitBadInput    = 2   // An argument, a file or the store cannot be used, or an error has no status of its own.
	exitNoTarget    = 3   // No host takes the VM, or what the command waited for did not happen.
	exitTwo         = 4   // There is an alarm: another agent has the host's name, a VM runs twice, or the store is in doubt.
	exitInterrupted = 130 // The command was interrupted (128 + SIGINT).
)

// isDaemon marks the commands that run until a signal ends them.
const isDaemon = "daemon"

// How long an interrupted command may take to print what it has: planners are pure, and do not see the
// interruption. A sweep ends the worlds that it has begun, which takes a busy machine some time.
const (
	grace        = 2 * time.Second
	graceOfSweep = time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:]))
}

// rootCommand returns the command with all that are below it.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "godwit",
		Short:         "Live migration and host evacuation of virtual machines",
		Version:       cli.BuildName(),
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	explain := cli.ExplainCommand()
	explain.AddCommand(targetCommand(), policyCommand())
	root.AddCommand(simulateCommand(), cli.Merge(), controllerCommand(), agentCommand(), explain)
	root.AddCommand(cli.ClientCommands()...)
	root.AddCommand(cli.BenchCommands()...)
	root.AddCommand(cli.CalibrateCommand(), cli.ConvertCommand(), cli.PlanCommand())
	root.AddCommand(cli.ReplayCommand(), cli.VersionCommand(), cli.ManCommand(),
		cli.DoctorCommand(), cli.PKICommand(), cli.EtcdCommand())
	cli.ExplainUsage(root)
	return root
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	ended, sweeps := make(chan struct{}), new(atomic.Bool)
	defer close(ended)
	ctx = cli.ToldOfSweeps(ctx, sweeps)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if c.Annotations[isDaemon] == "" {
			context.AfterFunc(ctx, func() { cutOff(ended, sweeps) })
		}
	}
	c, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(cli.Plain(os.Stderr), "godwit:", err)
	}
	if ctx.Err() != nil && c.Annotations[isDaemon] == "" {
		return exitInterrupted
	}
	return exitStatus(err)
}

// cutOff ends the process unless the interrupted command ends by itself.
func cutOff(ended <-chan struct{}, sweeps *atomic.Bool) {
	limit := grace
	if sweeps.Load() {
		limit = graceOfSweep
	}
	select {
	case <-ended:
	case <-time.After(limit):
		fmt.Fprintln(os.Stderr, "godwit: interrupted: no result yet")
		os.Exit(exitInterrupted)
	}
}

// exitStatus returns the exit status of a command that ended with err.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, cli.ErrSweepViolated), errors.Is(err, cli.ErrViolated),
		errors.Is(err, cli.ErrDiffers):
		return exitViolated
	case errors.Is(err, errNoTarget), errors.Is(err, cli.ErrNotDone),
		errors.Is(err, cli.ErrPlanNotDone):
		return exitNoTarget
	}
	if isSecond(err) {
		return exitTwo
	}
	return exitBadInput
}

// isSecond reports whether an agent ended because of a second one, or a command printed an
// alarm.
func isSecond(err error) bool {
	_, two := errors.AsType[*store.IdentityError](err)
	_, foreign := errors.AsType[*store.ForeignError](err)
	_, busy := errors.AsType[*daemon.BusyError](err)
	return two || foreign || busy || errors.Is(err, cli.ErrAlarm) || errors.Is(err, cli.ErrDamaged) ||
		daemon.Refused(err)
}
