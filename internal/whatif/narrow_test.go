package whatif_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// near compares times that differ by how late messages are: some milliseconds.
func near(t *testing.T, what string, a, b time.Duration) {
	t.Helper()
	if (a - b).Abs() > 30*time.Millisecond+a/50 {
		t.Errorf("%s: %v, without bystanders %v", what, a, b)
	}
}

// The judge is the play of the whole fleet: without the hosts that have no part in it every move
// takes as long, and the hosts are empty at the same moment.
func TestBystandersChangeNothing(t *testing.T) {
	var b strings.Builder
	b.WriteString("evictionStrategy: LiveMigrate\nhosts: [{name: \"n[1-400]\", memory: 64GiB, cpus: 32, link: 10Gbit/s}]\nvms:\n")
	for i := range 1200 {
		fmt.Fprintf(&b, "- {name: v%d, host: n%d, memory: %dGiB, class: %s}\n", i, 1+i%400, 1+i%5,
			[]string{"web", "idle"}[i%2])
	}
	s, err := config.Parse("fleet.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	hosts := []hypervisor.HostName{"n7", "n8", "n9"}
	d := plan.DrainFleet(s.Fleet, hosts, evacuation.Params{})
	a := plan.Drain(d.Fleet, hosts)
	whole := &whatif.Play{Scenario: whatif.Endless(s), Hosts: hosts, Waves: a.Waves}
	narrow := whatif.Narrow(whole)
	if n := len(narrow.Scenario.Fleet.Hosts); n > 3+9+20 || n < 20 || len(narrow.Scenario.Fleet.VMs) > 3*n {
		t.Fatalf("%d hosts and %d VMs are left", n, len(narrow.Scenario.Fleet.VMs))
	}
	first, err1 := whole.Nominal(context.Background())
	second, err2 := narrow.Nominal(context.Background())
	if err1 != nil || err2 != nil || len(first.Results) != 9 || len(second.Results) != 9 {
		t.Fatalf("%v %v\n%+v\n%+v", err1, err2, first, second)
	}
	near(t, "empty", first.Empty, second.Empty)
	for vm, p := range first.Results {
		q := second.Results[vm]
		if p.Done != q.Done || p.Attempts != q.Attempts || p.Mode != q.Mode || p.Options != q.Options {
			t.Errorf("%s: %+v, without bystanders %+v", vm, p, q)
		}
		near(t, string(vm), p.Took, q.Took)
		near(t, string(vm), p.Downtime, q.Downtime)
	}
	// Where bystanders matter, all are played.
	for what, change := range map[string]func(*config.Scenario){
		"a fault of any host": func(s *config.Scenario) {
			s.Vary.Faults = []config.Fault{{Event: []string{"crash-agent", "any-host", "for=1m"}}}
		},
		"limits of the fleet": func(s *config.Scenario) { s.Controller.Adaptive = true },
		"quotas of tenants": func(s *config.Scenario) {
			s.Controller.Quotas = map[string]placement.Amount{"acme": {}}
		},
	} {
		other := *whole
		scene := *whole.Scenario
		change(&scene)
		other.Scenario = &scene
		if whatif.Narrow(&other) != &other {
			t.Errorf("%s: bystanders are left out", what)
		}
	}
}
