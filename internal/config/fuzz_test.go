package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim"
)

// fataler is what tests and properties have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// play runs a scenario for a short while. Whatever was accepted gives a world, and
// no world panics or stands still in the middle of its work.
func play(t fataler, s *config.Scenario) {
	t.Helper()
	c := s.Config(s.Seed)
	before, stuck := time.Duration(-1), 0
	c.Tick = func(w *sim.World) bool {
		if stuck++; w.Now() > before {
			before, stuck = w.Now(), 0
		}
		if stuck > 20 {
			t.Fatalf("time stands still at %v", w.Now())
		}
		return w.Result().Events < 1<<16
	}
	w, err := s.Build(c)
	if err != nil {
		t.Fatalf("a scenario that was accepted gives no world: %v", err)
	}
	w.Run(min(s.Until, 10*time.Minute))
}

func FuzzParse(f *testing.F) {
	examples, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatalf("examples %v: %v", examples, err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	const events = "events:\n- 0s drain n1\n- when web-1=Running cut n1 n2 for=1m\n"
	for _, seed := range []string{
		"", small, full, small + events, "inventory: nowhere.yaml\n",
		small + "limits: {perCluster: 0, perTarget: 1}\nmode: FreeSpots\n" + events,
		small + "limits:\n  perSource: -1\nuntil: 876000h\nseed: 18446744073709551615\n",
		small + "- {name: big, host: n1, memory: 512PiB, dirty: 1TiB/s, workingSet: 1B}\n" + events,
		"hosts: [{name: n1, memory: 1B, cpus: 1, link: 1B/s}]\n" +
			"vms: [{name: a, host: n1, memory: 8B}]",
		strings.ReplaceAll(small, "10Gbit/s", "7EiB/s") + "model: ideal\n" + events,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := config.Parse("f.yaml", text)
		switch {
		case (s == nil) == (err == nil):
			t.Fatalf("Parse() = %v, %v", s, err)
		case err == nil && len(s.Fleet.Hosts) < 30 && len(s.Fleet.VMs) < 30:
			play(t, s)
		case err != nil && !strings.Contains(string(text), "inventory"):
			if _, is := errors.AsType[inventory.Problems](err); !is {
				t.Errorf("%v is no Problems", err)
			}
		}
	})
}

func FuzzEvent(f *testing.F) {
	for _, row := range slices.Concat(operators, faults) {
		f.Add(row.text)
		f.Add("when web-1=Running " + row.text)
	}
	for _, row := range slices.Concat(badTimes, badVerbs) {
		f.Add(row.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := parse(t, small+"events: [1s migrate web-1 to=n2, 2s drain n2]\n")
		e, err := s.Event(text)
		switch {
		case err != nil && (e.What != nil || err.Error() == ""):
			t.Errorf("Event(%q) = %#v, %v", text, e.What, err)
		case err == nil && e.What == nil:
			t.Errorf("Event(%q) is nothing", text)
		case err == nil:
			s.Events = append(s.Events, e, e)
			play(t, s)
		}
	})
}
