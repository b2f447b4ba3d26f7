package sim_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim"
)

// TestTranscripts runs the transcripts under testdata. Each file is named for
// the behaviour that it shows. The commands:
//
//	world [seed=N] [verbose] [claims]   a fleet, as a scenario writes it
//	run [until=TIME] [only=WORD,…]   events, one a line; prints what happens,
//	                           of the lines that contain one of the words
//	state [VM…]                where the VMs are, and in what state
//	migrations                 how every migration stands
//	left                       who stays on drained hosts, and why
//	decisions                  what was decided about targets that were asked for
//	debts                      who was forced where, and what that violates
//	result                     what the run came to
//
// With -rewrite the expected texts are written anew. Whatever a transcript does,
// no invariant may be violated.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var w transcript
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return w.command(t, d)
		})
		for _, v := range w.world.Violations() {
			t.Errorf("%s: %s: %s", sim.Clock(v.At), v.Invariant, v.Detail)
		}
	})
}

// transcript is a world that is being played.
type transcript struct {
	scenario *config.Scenario
	world    *sim.World
	lines    []string
}

func (w *transcript) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "world":
		return w.build(d)
	case "run":
		return w.run(d)
	case "state":
		return w.state(d)
	case "migrations":
		return w.migrations()
	case "left":
		return w.left()
	case "decisions":
		return w.decisions()
	case "debts":
		return w.debts()
	case "result":
		return w.result()
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}

func (w *transcript) build(d *datadriven.TestData) string {
	s, err := config.Parse("world", []byte(d.Input))
	if err != nil {
		return err.Error()
	}
	seed, _ := strconv.ParseUint(argument(d, "seed"), 10, 64) // 0 is a seed, too
	c := s.Config(seed)
	c.Verbose = d.HasArg("verbose")
	c.Marks = c.Marks || d.HasArg("marks")
	c.Claims = c.Claims || c.Marks || d.HasArg("claims")
	c.Trace = func(e sim.Entry) { w.lines = append(w.lines, e.String()) }
	w.scenario = s
	if w.world, err = s.Build(c); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d hosts, %d VMs", len(s.Fleet.Hosts), len(s.Fleet.VMs))
}

// run schedules the events, relative to now, and lets the world run.
func (w *transcript) run(d *datadriven.TestData) string {
	for _, line := range strings.Split(d.Input, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		e, err := w.scenario.Event(line)
		if err != nil {
			return err.Error()
		}
		w.world.At(w.world.Now()+e.At, e.What)
	}
	until := 240 * time.Hour
	if text := argument(d, "until"); text != "" {
		span, err := inventory.ParseDuration(text)
		if err != nil {
			return err.Error()
		}
		until = w.world.Now() + span
	}
	w.lines = nil
	end := w.world.Run(until)
	if end == sim.AtRest {
		w.world.CheckAtRest()
	}
	lines := w.lines
	if words := strings.Split(argument(d, "only"), ","); words[0] != "" {
		lines = slices.DeleteFunc(lines, func(l string) bool {
			return !slices.ContainsFunc(words, func(word string) bool {
				return strings.Contains(l, word)
			})
		})
	}
	return strings.Join(append(lines, end.String()), "\n")
}

// argument returns the value of key=value.
func argument(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return ""
}

func (w *transcript) state(d *datadriven.TestData) string {
	var b strings.Builder
	for _, v := range w.scenario.Fleet.VMs {
		name := sim.Short(v.ID)
		wanted := len(d.CmdArgs) == 0 ||
			slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == name })
		if !wanted {
			continue
		}
		home := "no record"
		if r := w.world.VM(v.ID); r != nil {
			home = "at " + string(r.Host)
			if r.ActiveMigration != "" {
				home += " claimed by " + string(r.ActiveMigration)
			}
		}
		fmt.Fprintf(&b, "%s  %s ", name, home)
		for _, c := range w.world.Network().Copies(v.ID) {
			fmt.Fprintf(&b, " %s:%s", c.Host, c.State)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (w *transcript) migrations() string {
	var b strings.Builder
	for _, v := range w.scenario.Fleet.VMs {
		for _, m := range w.world.Migrations(v.ID) {
			s := &m.State
			fmt.Fprintf(&b, "%s  %s", sim.Short(v.ID)+string(m.Spec.ID[len(v.ID):]), s.Phase)
			if s.Because != "" {
				fmt.Fprintf(&b, " because %s", s.Because)
			}
			if s.Target != "" {
				fmt.Fprintf(&b, "  %s→%s", s.Source, s.Target)
			}
			if words := s.Conditions.Words(); len(words) > 0 {
				fmt.Fprintf(&b, "  %s", strings.Join(words, " "))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (w *transcript) left() string {
	var b strings.Builder
	for _, e := range w.world.Evacuations() {
		empty := "not empty"
		if e.EmptySeconds != nil {
			empty = fmt.Sprintf("empty after %.3fs", *e.EmptySeconds-e.StartSeconds)
		}
		fmt.Fprintf(&b, "%s  %s\n", e.Host, empty)
		for _, l := range e.Left {
			fmt.Fprintf(&b, "  %s\n", sim.Short(l.VM))
			for _, r := range l.Reasons {
				fmt.Fprintf(&b, "    %s\n", r)
			}
		}
	}
	return b.String()
}

func (w *transcript) result() string {
	r := w.world.Result()
	m := r.Migrations
	return fmt.Sprintf("%d migrations: %d succeeded, %d failed, %d aborted\n"+
		"downtime p50 %.0fms p99 %.0fms\nmoved %v\nlower bound %.1fs\n",
		m.Total, m.Succeeded, m.Failed, m.Aborted, r.Downtime.P50, r.Downtime.P99,
		r.BytesTransferred, r.LowerBoundSeconds)
}
