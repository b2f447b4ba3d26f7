package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/config"
)

// ErrDiffers: a decision differs from the recorded one.
var ErrDiffers = errors.New("replay: a decision differs from what was recorded")

const replayHelp = `Replay the audit log of a controller with a controller of this version: at the
same times, with the same records, and with the configuration in the log. The same version decides
the same, byte for byte. For another version, or another configuration (--config), the command
prints the first decision that differs; --diff prints what was recorded and what is decided now,
field by field, why, and what the controller saw.

With --all the replay continues after a difference, in the recorded history: each reconcile starts
from what was recorded, not from what other decisions would have caused. The command prints how many
reconciles differ, the first of them, and from when on the decisions are the same again. A reconcile
may differ only because an earlier one did.

Several logs are replayed one after the other: those of a rotation, or of successive leaders. With
--scenario the fleet at the start of the log, and the operator actions and failures in it, are
written as a scenario for godwit simulate.

Exit status: 0 every decision is the same, 1 one differs, 2 bad input.`

// ReplayCommand returns godwit replay.
func ReplayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{Use: "replay LOG…", Short: "Replay a controller's decisions from its audit log",
		Long: replayHelp, Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, logs []string) error {
			return f.run(c.OutOrStdout(), logs)
		}}
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE` to use instead of the log's")
	c.Flags().BoolVar(&f.diff, "diff", false, "print all details of a decision that differs")
	c.Flags().BoolVar(&f.all, "all", false, "continue after a difference, to the end")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON instead of text")
	c.Flags().StringVar(&f.scenario, "scenario", "", "write a scenario to this `FILE`")
	return c
}

type replayFlags struct {
	config, scenario string
	diff, json, all  bool
}

func (f *replayFlags) run(out io.Writer, logs []string) error {
	configure := func(text string) (controller.Config, error) {
		if text == "" {
			return controller.Config{}, errors.New("the log has no configuration: give one with --config")
		}
		s, err := config.ParseSettings("the log's configuration", []byte(text))
		return s.Controller, err
	}
	if f.config != "" {
		s, err := config.ReadSettings(f.config)
		if err != nil {
			return err
		}
		configure = func(string) (controller.Config, error) { return s.Controller, nil }
	}
	if f.scenario != "" {
		if err := Apart(f.scenario, append(logs, f.config)...); err != nil {
			return fmt.Errorf("--scenario: %w", err)
		}
		if err := f.writeScenario(logs[0]); err != nil {
			return err
		}
	}
	var differs error
	for _, path := range logs {
		r, err := replayFile(path, audit.Options{Configure: configure, Build: BuildName(),
			All: f.all})
		if err != nil {
			return err
		}
		if err := f.print(out, r); err != nil {
			return err
		}
		if !r.Same() {
			differs = ErrDiffers
		}
	}
	return differs
}

func replayFile(path string, o audit.Options) (*audit.Result, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r, err := audit.Replay(log, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (f *replayFlags) print(out io.Writer, r *audit.Result) error {
	if !f.json {
		return r.WriteText(Plain(out), f.diff)
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// writeScenario writes the scenario of a log; no file is left when that fails.
func (f *replayFlags) writeScenario(path string) error {
	if f.scenario == "-" {
		return fmt.Errorf("--scenario: %w", ErrDash)
	}
	log, err := os.Open(path)
	if err != nil {
		return err
	}
	defer log.Close()
	text, err := audit.Scenario(log)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(f.scenario, text, 0o600)
}
