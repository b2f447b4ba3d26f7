package config_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// fields returns the fields of a file with their types.
func fields(of reflect.Type, all map[string]reflect.Type) map[string]reflect.Type {
	for i := range of.NumField() {
		f := of.Field(i)
		name, how, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if how == "inline" {
			fields(f.Type, all)
			continue
		}
		all[name] = f.Type
	}
	return all
}

// What a scenario says of a controller the controller's own file may say, in the same words:
// all the rest is the fleet, and what happens to it.
func TestEveryFieldOfAScenarioIsTheWorldsOrTheDaemons(t *testing.T) {
	world := []string{"name", "seed", "until", "inventory", "workloads", "hosts", "vms",
		"defaults", "model", "transport", "events", "trace", "vary", "unmeasured"}
	daemons := fields(reflect.TypeFor[config.File](), map[string]reflect.Type{})
	shared := fields(reflect.TypeFor[inventory.Spec](), map[string]reflect.Type{})
	for name, kind := range fields(reflect.TypeFor[config.Spec](), map[string]reflect.Type{}) {
		_, fleet := shared[name]
		policies := slices.Contains([]string{"config", "policies", "evictionStrategy",
			"namespaces", "network"}, name)
		if slices.Contains(world, name) || fleet && !policies {
			continue
		}
		if name == "failover" { // a scenario says besides what stands for fence devices
			kind = kind.Elem().Field(0).Type
		}
		if daemons[name] != kind {
			t.Errorf("%s is a %v in a scenario, and for the daemon a %v", name, kind, daemons[name])
		}
	}
}

// drawControl writes what a scenario may say of a controller.
func drawControl(t *rapid.T) string {
	var b strings.Builder
	say := func(format string, values ...string) {
		if i := rapid.IntRange(-1, len(values)-1).Draw(t, format); i >= 0 {
			fmt.Fprintf(&b, format+"\n", values[i])
		}
	}
	say("mode: %s", "QueueAll", "FreeSpots")
	say("order: %s", "LargestFirst", "SmallestFirst", "ByID", "Adaptive")
	say("compatible: %s", "true", "false")
	say("limits: {%s}", "perCluster: 10", "perSource: 0, perTarget: 0", "perTarget: 3")
	say("onUnmovable: %s", "Keep", "ShutDown", "Restart")
	say("grace: %s", "5m", "1h")
	say("network: {speed: %s}", "25Gbit/s", "1Gbit/s")
	say("evictionStrategy: %s", "None", "LiveMigrate", "LiveMigrateIfPossible", "External")
	say("config: {%s}", "allowPostCopy: true", "allowWorkloadDisruption: true, maxDowntimeMs: 100",
		"convergence: Forecast", "convergence: Legacy, allowAutoConverge: true",
		"parallelMigrationsPerCluster: 0", "parallelOutboundMigrationsPerNode: 7",
		"bandwidthPerMigration: 0B/s, progressTimeout: 0s", "bandwidthPerMigration: 1Gbit/s")
	say("policies: [{name: p, selectors: {namespaceSelector: {a: b}}, %s}]",
		"convergence: Stall", "experimental: {stallDetector: {stallMargin: 0}}",
		"experimental: {downtimeTuning: {steps: 3}}", "bandwidthPerMigration: 0B/s",
		"completionTimeoutPerGiB: 0s")
	say("namespaces: {default: {%s}}", "a: b", "a: c")
	say("timeouts: {%s}", "pending: 1h", "transfer: 2h, abort: 1m")
	say("backoff: {%s}", "base: 1s", "base: 1s, cap: 1m")
	say("keep: %s", "1", "1000")
	say("quotas: {acme: {%s}}", "memory: 8GiB", "cpus: 4, disk: 1TiB")
	if b.Len() == 0 {
		return "compatible: false\n" // an empty file is refused by both
	}
	return b.String()
}

// One parser reads a scenario and a controller's file: what the one accepts the other accepts,
// and both make the same controller of it.
func TestWhateverAScenarioAcceptsTheDaemonAccepts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawControl(t)
		s, err := config.Parse("scenario", []byte(
			"hosts: [{name: n1, memory: 4GiB, cpus: 4, link: 1Gbit/s}]\n"+text))
		if err != nil {
			t.Fatalf("the scenario is refused: %v\n%s", err, text)
		}
		d, err := config.ParseSettings("file", []byte(text))
		if err != nil {
			t.Fatalf("the daemon refuses what a scenario accepts: %v\n%s", err, text)
		}
		a, b := s.Config(1).Controller, d.Controller
		if !strings.Contains(text, "evictionStrategy") { // a daemon's VMs leave by default
			b.Evacuation.Strategy = a.Evacuation.Strategy
		}
		if diff := cmp.Diff(a, b, cmpopts.EquateEmpty(),
			cmpopts.IgnoreUnexported(migration.Config{})); diff != "" {
			t.Fatalf("the same words make another controller (-scenario +daemon):\n%s\n%s", diff,
				text)
		}
	})
}

// A controller of a scenario knows of guests what their records say, as in production.
func TestRecordsSayHowFastGuestsWriteWhereThatIsMeasured(t *testing.T) {
	const text = "hosts: [{name: n1, memory: 8GiB, cpus: 4}]\n" +
		"vms: [{name: a, host: n1, memory: 4GiB, dirty: 100MiB/s, workingSet: 4GiB}]\n"
	for more, want := range map[string]bool{"": true, "unmeasured: true\n": false} {
		s, err := config.Parse("scenario", []byte(text+more))
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		d := w.VM("default/a").Dirtied
		if (d != nil) != want || want && (d.Rate < 95<<20 || d.Rate > 100<<20 || !d.At.Equal(sim.Epoch)) {
			t.Errorf("%q: measured %+v", more, d)
		}
	}
}
