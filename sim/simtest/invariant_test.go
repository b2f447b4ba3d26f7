package simtest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// emptied: no drained host has VMs.
func emptied(w *sim.World) error {
	for _, host := range w.Hosts() {
		if vms := w.VMsOn(host); w.Draining(host) && len(vms) > 0 {
			return fmt.Errorf("%s still has %v", host, vms)
		}
	}
	return nil
}

func TestInvariantsAreAskedWhenTheyShouldHold(t *testing.T) {
	away := simtest.Calm().And(simtest.Part{Name: "later", Add: func(m *simtest.Builder) {
		m.World.Events[0] = "1h" + strings.TrimPrefix(m.World.Events[0], "0s")
	}})
	roomless := simtest.Of(simtest.Cramped(simtest.Small), simtest.Converging(), simtest.Drain())
	never := errors.New("it never does")
	for _, row := range []struct {
		name   string
		in     simtest.Generator
		option simtest.Option
		says   string // "" is that it holds
	}{
		{"a drained host is empty when all rest", simtest.Calm(),
			simtest.AtRest("emptied", emptied), ""},
		{"a drained host is not empty from the start", simtest.Calm(),
			simtest.Always("emptied", emptied), "emptied, at 00:00.0"},
		{"a drained host is empty in an hour", simtest.Calm(),
			simtest.Eventually("emptied", time.Hour, emptied), ""},
		{"also when it is drained later", away,
			simtest.Eventually("emptied", time.Hour, emptied), ""},
		{"a drained host is not empty at once", away,
			simtest.Eventually("emptied", time.Millisecond, emptied), "not within 1ms: n"},
		{"where there is no room a host is not emptied", roomless,
			simtest.AtRest("emptied", emptied), "still has"},
		{"nor will it ever be", roomless,
			simtest.Eventually("emptied", 1000*time.Hour, emptied), "and never will: n"},
		{"what never holds is never kept", simtest.Calm(), simtest.Eventually("mine",
			time.Hour, func(*sim.World) error { return never }), "it never does"},
		{"what is beyond the end of a world is not asked", simtest.Calm(), simtest.Always("mine",
			func(w *sim.World) error {
				if w.Now() > 100*time.Hour {
					return never
				}
				return nil
			}), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir := &recorder{name: "TestMine"}, t.TempDir()
			simtest.Check(r, row.in, row.option, simtest.Transcript(dir), simtest.Runs(20))
			said := strings.Join(r.said, "\n")
			if (row.says == "") != (said == "") || !strings.Contains(said, row.says) {
				t.Fatalf("want %q, got %q", row.says, said)
			}
			if row.says != "" {
				kept(t, row.in, small(t, dir))
			}
		})
	}
}

// kept checks that a world that was made smaller is still what it is guaranteed to be.
func kept(t *testing.T, g simtest.Generator, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := simtest.Parse(file, text)
	if err == nil {
		err = g.Holds(w)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
