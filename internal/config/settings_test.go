package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
)

const all = `
evictionStrategy: LiveMigrateIfPossible
config: {parallelMigrationsPerCluster: 10, bandwidthPerMigration: 2Gbit/s, nodeDrainTaintKey: out}
policies:
- {name: slow, selectors: {virtualMachineInstanceSelector: {app: db}}, allowPostCopy: true}
namespaces: {prod: {tier: gold}}
evacuation: {mode: FreeSpots, order: SmallestFirst, onUnmovable: ShutDown, grace: 5m}
timeouts: {pending: 12h, unschedulable: 1m, target: 2m, handOver: 3m, prepare: 4m, begin: 5m,
  transfer: 6m, abort: 7m, utilityVolumes: 8m}
backoff: {base: 10s, cap: 5m}
avoidFor: 9m
keep: 3
quotas: {acme: {memory: 512GiB, cpus: 128}, other: {disk: 1TiB}}
failover: {grace: 20s, fenceAfter: 40s, stormShare: 0.5, fenceAtOnce: 2, fenceIdle: true}
`

// What wins in the simulator can be switched on here.
func TestTheAdaptiveOrderAndTheForecastAreForProductionToo(t *testing.T) {
	s, err := config.ParseSettings("f", []byte("evacuation: {order: Adaptive}\n"+
		"config: {convergence: Forecast, parallelOutboundMigrationsPerNode: 7}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Controller
	if !c.Adaptive || c.Cluster.Convergence != convergence.Forecast ||
		c.Cluster.Options().Convergence != convergence.Forecast {
		t.Errorf("adaptive %t, convergence %v", c.Adaptive, c.Cluster.Convergence)
	}
	if l := c.Limits(); l.PerCluster != migration.Unlimited || l.PerSource != 7 {
		t.Errorf("limits %+v: one was written, and holds; the others are lifted", l)
	}
}

func TestCompatibleReachesConvergence(t *testing.T) {
	for text, want := range map[string]convergence.Method{
		"compatible: true": convergence.Legacy, "{}": convergence.Watermark,
		"compatible: true\nconfig: {convergence: Watermark}": convergence.Watermark,
	} {
		s, err := config.ParseSettings("f", []byte(text))
		if err != nil || s.Controller.Cluster.Convergence != want {
			t.Errorf("%q: %v, %v, want %v", text, s.Controller.Cluster.Convergence, err, want)
		}
	}
}

func TestEverythingIsRead(t *testing.T) {
	s, err := config.ParseSettings("f", []byte(all))
	if err != nil {
		t.Fatal(err)
	}
	c, f, m := s.Controller, s.Failover, s.Controller.Migration
	for what, ok := range map[string]bool{
		"strategy":  c.Evacuation.Strategy == evacuation.LiveMigrateIfPossible,
		"limit":     c.Cluster.ParallelMigrationsPerCluster == 10,
		"bandwidth": c.Cluster.BandwidthPerMigration == 250e6,
		"drain key": c.Complete().Evacuation.DrainKey == "out",
		"policy":    len(c.Policies) == 1 && *c.Policies[0].AllowPostCopy,
		"namespace": c.Namespaces["prod"]["tier"] == "gold",
		"mode":      c.Evacuation.Mode == evacuation.FreeSpots,
		"order":     c.Evacuation.Order == evacuation.SmallestFirst,
		"unmovable": c.Evacuation.Terms == evacuation.Terms{OnUnmovable: evacuation.ShutDown,
			Grace: 5 * time.Minute},
		"pending":       m.Timeouts.Pending == 12*time.Hour,
		"target":        m.Timeouts.Target == 2*time.Minute,
		"unschedulable": m.Timeouts.Unschedulable == time.Minute,
		"hand-over":     m.Timeouts.HandOver == 3*time.Minute,
		"prepare":       m.Timeouts.Prepare == 4*time.Minute,
		"begin":         m.Timeouts.Begin == 5*time.Minute,
		"transfer":      m.Timeouts.Transfer == 6*time.Minute,
		"abort":         m.Timeouts.Abort == 7*time.Minute,
		"utility":       m.Timeouts.UtilityVolumes == 8*time.Minute,
		"back-off":      m.BackoffBase == 10*time.Second && m.BackoffCap == 5*time.Minute,
		"avoid":         m.AvoidFor == 9*time.Minute, "keep": m.Keep == 3,
		"quota": c.Quotas["acme"].CPUs == 128 && c.Quotas["acme"].Memory == 512<<30 &&
			c.Quotas["acme"].Disk > 1<<50 && c.Quotas["other"].Memory > 1<<50,
		"failover": f.Grace == 20*time.Second && f.FenceAfter == 40*time.Second &&
			f.StormShare == 0.5 && f.FenceAtOnce == 2 && f.FenceIdle,
	} {
		if !ok {
			t.Errorf("%s is not what the file says: %+v %+v", what, c, f)
		}
	}
}

func TestNothingIsAllDefaults(t *testing.T) {
	s, err := config.ReadSettings("")
	if err != nil || s.Controller.Evacuation.Strategy != evacuation.LiveMigrate ||
		s.Controller.Cluster.ParallelMigrationsPerCluster != 5 {
		t.Errorf("%+v, %v", s.Controller, err)
	}
	s, err = config.ParseSettings("f", []byte("compatible: true"))
	if err != nil || s.Controller.Evacuation.Strategy != evacuation.None ||
		!s.Controller.Migration.Compatible || !s.Controller.Evacuation.Compatible {
		t.Errorf("compatible: %+v, %v", s.Controller, err)
	}
}

func TestProblemsHaveLines(t *testing.T) {
	for text, want := range map[string]string{
		"hosts: []":                           `f:1: hosts: unknown field "hosts"`,
		"\nkeep: 0":                           "f:2: keep: 0 would be taken",
		"failover: {stormShare: 0}":           "f:1: failover.stormShare",
		"failover: {fenceAtOnce: 0}":          "f:1: failover.fenceAtOnce",
		"\nkeep: -1":                          "f:2: keep: needs 0 to 1000",
		"evacuation:\n  order: Best":          "f:2: evacuation.order: unknown order",
		"evacuation: {mode: None}":            "f:1: evacuation.mode: unknown mode",
		"timeouts: {begin: 0s}":               "f:1: timeouts.begin: needs more than 0",
		"failover:\n  grace: soon":            "f:2: failover.grace",
		"failover: {stormShare: .nan}":        "f:1: failover.stormShare",
		"failover: {fenceAtOnce: -1}":         "f:1: failover.fenceAtOnce",
		"quotas:\n  a: {cpus: -1}":            "f:2: quotas.a.cpus",
		"quotas:\n  a: {disk: 1}":             "f:2: quotas.a.disk",
		"config:\n  bandwidthPerMigration: x": "f:2: config.bandwidthPerMigration",
		"evictionStrategy: Kill":              "f:1: evictionStrategy",
		"[[[":                                 "f:1",
	} {
		if _, err := config.ParseSettings("f", []byte(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("keep: -1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadSettings(path); err == nil || !strings.Contains(err.Error(), path+":1") {
		t.Errorf("of a file: %v", err)
	}
	if _, err := config.ReadSettings(path + "x"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// FuzzSettingsParse: whatever the text, there is an answer.
func FuzzSettingsParse(f *testing.F) {
	f.Add([]byte(all))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := config.ParseSettings("f", text)
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("the error %q does not name the file", err)
		}
	})
}
