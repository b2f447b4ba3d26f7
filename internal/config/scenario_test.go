package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
)

// full sets every field that scenarios have beyond their fleet's.
const full = `
name: everything
seed: 7
until: 36h
mode: FreeSpots
order: SmallestFirst
model: ideal
compatible: true
limits: {perCluster: 10, perSource: 4, perTarget: 3}
evictionStrategy: External
config: {progressTimeout: 2m, parallelMigrationsPerCluster: 99}
namespaces: {prod: {tier: critical}}
policies:
- {name: slow, selectors: {namespaceSelector: {tier: critical}}, maxDowntimeMs: 500}
hosts:
- {name: n1, memory: 64GiB, cpus: 16}
vms:
- {name: web, host: n1, memory: 4GiB}
events:
- 10s drain n1
- when web=Running fence n1
`

func TestEveryFieldIsRead(t *testing.T) {
	s := parse(t, full)
	if s.Name != "everything" || s.Seed != 7 || s.Until != 36*time.Hour {
		t.Errorf("name %q, seed %d, until %v", s.Name, s.Seed, s.Until)
	}
	if s.Model != (fake.Model{}) {
		t.Errorf("the model is %+v, want the ideal one", s.Model)
	}
	c := s.Controller
	wantEvacuation := evacuation.Params{Mode: evacuation.FreeSpots, Compatible: true,
		Order: evacuation.SmallestFirst, Strategy: evacuation.External}
	if diff := cmp.Diff(wantEvacuation, c.Evacuation); diff != "" {
		t.Errorf("evacuation (-want +got):\n%s", diff)
	}
	if !c.Migration.Compatible {
		t.Error("migrations are not compatible")
	}
	cluster := migration.DefaultCluster()
	cluster.Convergence = convergence.Legacy // KubeVirt's own, since the scenario is compatible
	cluster.ProgressTimeout = 2 * time.Minute
	cluster.ParallelMigrationsPerCluster = 10 // the scenario's own limit wins
	cluster.ParallelOutboundMigrationsPerNode = 4
	cluster.ParallelInboundMigrationsPerNode = 3
	if diff := cmp.Diff(&cluster, c.Cluster); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	if len(c.Policies) != 1 || c.Policies[0].Name != "slow" {
		t.Errorf("policies %+v", c.Policies)
	}
	if diff := cmp.Diff(map[string]migration.Labels{"prod": {"tier": "critical"}},
		c.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	var events []string
	for _, e := range s.Events {
		events = append(events, fmt.Sprintf("%v %s", e.At, e.Text))
	}
	want := []string{"10s 10s drain n1", "0s when web=Running fence n1"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotWrittenHasADefault(t *testing.T) {
	s := parse(t, "hosts:\n- {name: n1, memory: 64GiB, cpus: 16}\n")
	if s.Name != "s.yaml" || s.Seed != 1 || s.Until != 240*time.Hour {
		t.Errorf("name %q, seed %d, until %v", s.Name, s.Seed, s.Until)
	}
	if s.Model != fake.QEMU() {
		t.Errorf("the model is %+v, want QEMU's", s.Model)
	}
	cluster := migration.DefaultCluster()
	if diff := cmp.Diff(&cluster, s.Controller.Cluster); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	want := evacuation.Params{Strategy: evacuation.LiveMigrate}
	if diff := cmp.Diff(want, s.Controller.Evacuation); diff != "" {
		t.Errorf("evacuation (-want +got):\n%s", diff)
	}
	if len(s.Events) > 0 || s.Controller.Migration.Compatible {
		t.Errorf("events %v, compatible %t", s.Events, s.Controller.Migration.Compatible)
	}
}

func TestModesAndOrders(t *testing.T) {
	s := parse(t, small+"mode: QueueAll\norder: LargestFirst\nmodel: qemu\n")
	if e := s.Controller.Evacuation; e.Mode != evacuation.QueueAll ||
		e.Order != evacuation.LargestFirst || s.Model != fake.QEMU() {
		t.Errorf("mode %v, order %v, model %+v", e.Mode, e.Order, s.Model)
	}
	if s = parse(t, small+"order: ByID\n"); s.Controller.Evacuation.Order != evacuation.ByID {
		t.Errorf("order %v, want ByID", s.Controller.Evacuation.Order)
	}
}

func TestAdaptiveLiftsOnlyLimitsThatAreNotWritten(t *testing.T) {
	s := parse(t, small+"order: Adaptive\nlimits: {perSource: 3}\n"+
		"config: {parallelMigrationsPerCluster: 9, bandwidthPerMigration: 64MiB/s}\n")
	want := migration.Limits{PerCluster: 9, PerSource: 3, PerTarget: migration.Unlimited}
	if got := s.Controller.Complete().Limits(); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	if !s.Controller.Adaptive {
		t.Error("the controller is not adaptive")
	}
	s = parse(t, small+"order: adaptive\n")
	free := migration.Limits{PerCluster: migration.Unlimited, PerSource: migration.Unlimited,
		PerTarget: migration.Unlimited}
	if got := s.Controller.Complete().Limits(); got != free {
		t.Errorf("without any written the limits are %+v", got)
	}
	if s = parse(t, small); s.Controller.Evacuation.Policy != nil {
		t.Error("the policy was not asked")
	}
}

func TestLimitsLeaveTheOthersAlone(t *testing.T) {
	s := parse(t, small+"limits: {perSource: 0}\nconfig: {parallelMigrationsPerCluster: 9}\n")
	c := s.Controller.Cluster
	if c.ParallelMigrationsPerCluster != 9 || c.ParallelOutboundMigrationsPerNode != 0 {
		t.Errorf("limits %d in the cluster and %d from a host, want 9 and 0",
			c.ParallelMigrationsPerCluster, c.ParallelOutboundMigrationsPerNode)
	}
}

func TestTheConfigurationOfAWorld(t *testing.T) {
	s := parse(t, full)
	c := s.Config(3)
	if *c.Model != s.Model || c.Controller.Cluster != s.Controller.Cluster {
		t.Error("the world is not configured as the scenario says")
	}
	if got, want := c.Chooser.Choose("x", 1<<30), sim.Seeded(3).Choose("x", 1<<30); got != want {
		t.Errorf("the first choice is %d, want that of seed 3, %d", got, want)
	}
}

func TestWrongScenariosAreExplained(t *testing.T) {
	const hosts = "hosts:\n- {name: n1, memory: 64GiB, cpus: 16}\n"
	tests := []struct{ name, text, want string }{
		{"nothing at all", "", "f.yaml:1: it is empty"},
		{"no hosts", "name: x\n",
			"f.yaml:1: hosts: there are no hosts; write hosts: and vms:, or inventory: FILE"},
		{"an unknown field", hosts + "event: []\n",
			`f.yaml:3: event: unknown field "event"`},
		{"an unknown limit", hosts + "limits: {perHost: 2}\n",
			`f.yaml:3: limits.perHost: unknown field "perHost"`},
		{"an unknown mode", hosts + "mode: queueall\n",
			`f.yaml:3: mode: unknown mode "queueall"; use QueueAll or FreeSpots`},
		{"an unknown order", hosts + "order: Random\n",
			`f.yaml:3: order: unknown order "Random"; use LargestFirst, SmallestFirst, ByID ` +
				`or Adaptive`},
		{"an unknown model", hosts + "model: xen\n",
			`f.yaml:3: model: unknown model "xen"; use qemu or ideal`},
		{"an until without a unit", hosts + "until: 60\n",
			`f.yaml:3: until: "60" is no duration; write 150s, 900ms or 1h30m`},
		{"an until that is past", hosts + "until: -1h\n", `f.yaml:3: until: "-1h" is negative`},
		{"an until beyond all measure", hosts + "until: 1000000h\n",
			`f.yaml:3: until: "1000000h" is longer than a hundred years`},
		{"a negative limit", hosts + "limits:\n  perTarget: -1\n",
			"f.yaml:4: limits.perTarget: -1 is no limit"},
		{"a limit beyond all measure", hosts + "limits: {perCluster: 1073741825}\n",
			"f.yaml:3: limits.perCluster: 1073741825 is no limit"},
		{"an event on a host that is not there", hosts + "events:\n- 0s drain n1\n- drain n2\n",
			`f.yaml:5: events[1]: there is no host "n2"`},
		{"a VM on a host that is not there", hosts + "vms:\n- {name: a, host: n2, memory: 1GiB}\n",
			`f.yaml:4: vm default/a host: there is no host "n2"`},
		{"an unknown strategy", hosts + "evictionStrategy: Flee\n",
			"f.yaml:3: evictionStrategy: unknown"},
		{"a host that cannot be added to others",
			"hosts:\n- {name: n1, memory: 2048PiB, cpus: 1}\n",
			"f.yaml:1: hosts: host n1 is too large: 2097152TiB of memory, 1 CPUs"},
		{"VMs that cannot be added up", hosts +
			"vms:\n- {name: \"a[1-9]\", host: n1, memory: 1000PiB}\n",
			"f.yaml:3: vms: together they are too large: 2048000TiB of memory, 2 CPUs"},
		{"more CPUs than can be added up", hosts +
			"vms:\n- {name: a, host: n1, memory: 1GiB, cpus: 9223372036854775807}\n",
			"f.yaml:3: vms: together they are too large: 1GiB of memory, 1073741825 CPUs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("f.yaml", []byte(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("the error is\n%v\nwant\n%s", err, tt.want)
			}
			if _, is := errors.AsType[inventory.Problems](err); !is {
				t.Errorf("%T is no Problems", err)
			}
		})
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, err := config.Parse("f.yaml", []byte(small+
		"mode: a\norder: b\nmodel: c\nuntil: d\nlimits: {perSource: -1}\nevents: [drain n9]\n"))
	var problems inventory.Problems
	if !errors.As(err, &problems) || len(problems) != 6 {
		t.Errorf("%d problems, want 6:\n%v", len(problems), err)
	}
}

// TestManyProblemsAreCounted: the answer to a file of nonsense stays short.
func TestManyProblemsAreCounted(t *testing.T) {
	text := small + "events:\n" + strings.Repeat("- explode\n", 5000)
	_, err := config.Parse("f.yaml", []byte(text))
	if err == nil {
		t.Fatal("there is no error")
	}
	if n := len(err.Error()); n > 100_000 {
		t.Errorf("the error has %d bytes", n)
	}
	if want := "\nf.yaml: and 4980 more problems"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error does not end with %q", want)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.ReadFile(filepath.Join(dir, "a.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", err)
	}
	if _, err := config.ReadFile(dir); err == nil {
		t.Error("a directory is a scenario")
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, strings.TrimSpace(small)+"\nmode: x\n")
	_, err := config.ReadFile(path)
	if want := path + ":7: mode: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want it to begin with %q", err, want)
	}
	write(t, path, small)
	s, err := config.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]hypervisor.HostName{"n1", "n2", "n3"}, s.Hosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
