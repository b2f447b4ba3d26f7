package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

const failsOver = `
hosts: [{name: "n[1-6]", memory: 64GiB, cpus: 32, link: 10Gbit/s}]
vms:
- {name: "db-[1-3]", host: n1, memory: 8GiB, cpus: 2, class: database}
- {name: far, host: n2, memory: 8GiB, cpus: 2, class: web}
until: 4h
model: {bootTime: 45s}
`

// ran plays a scenario to its end.
func ran(t *testing.T, text string) sim.Result {
	t.Helper()
	s, err := config.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	r := w.Result()
	for _, v := range r.Violations {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	return r
}

// outOf returns how long a VM was out; false is never.
func outOf(r *sim.Result, vm hypervisor.VMID) (time.Duration, bool) {
	for _, o := range r.OutagesByVM {
		if o.VM == vm {
			return time.Duration(o.Seconds * float64(time.Second)), true
		}
	}
	return 0, false
}

// The numbers are worked out by hand: an agent sends a heartbeat every 5 s, so a host that dies is silent
// for up to 5 s already; it is fenced when it has been silent for so long, the device takes its time,
// and a guest boots for 45 s. Looks are up to some seconds apart.
func TestAnOutageIsFencingAndBoot(t *testing.T) {
	for _, c := range []struct {
		failover string
		least    time.Duration
	}{
		{"failover: {}", 55*time.Second + 2*time.Second + 45*time.Second},
		{"failover: {fenceAfter: 3m, fencingTakes: 20s}", 175*time.Second + 20*time.Second + 45*time.Second},
	} {
		r := ran(t, failsOver+c.failover+"\nevents: [10s crash n1]\n")
		if len(r.OutagesByVM) != 3 || len(r.Down) != 0 {
			t.Errorf("%s: outages of %v, down %v", c.failover, r.OutagesByVM, r.Down)
		}
		for _, o := range r.OutagesByVM {
			if d, _ := outOf(&r, o.VM); d < c.least || d > c.least+15*time.Second {
				t.Errorf("%s: %s was out for %s, want %s and up to 15s more", c.failover, o.VM, d, c.least)
			}
		}
	}
}

// Four of six hosts are more than the third that may be silent: nothing is fenced, and VMs come back
// with their hosts.
func TestTheStormGuardHoldsInScenarios(t *testing.T) {
	r := ran(t, failsOver+`failover: {}
events: [10s crash n1 for=30m, 10s crash n3 for=30m, 10s crash n4 for=30m, 10s crash n5 for=30m]
`)
	if d, _ := outOf(&r, "default/db-1"); d < 30*time.Minute || d > 32*time.Minute {
		t.Errorf("db-1 was out for %s, want as long as its host", d)
	}
}

func TestAHostWithoutADeviceIsNotFenced(t *testing.T) {
	r := ran(t, failsOver+"failover: {withoutDevice: [\"n[1-1]\"]}\nevents: [10s crash n1]\n")
	if len(r.Down) != 3 {
		t.Errorf("down are %v, want the three of n1", r.Down)
	}
}

// A host that is fenced although only its agent was silent comes back when it is said to.
func TestAFencedHostReturns(t *testing.T) {
	const events = "\nevents: [10s crash-agent n2 for=2h, 1h drain n1, 1h drain n3, 1h drain n4, 1h drain n5, 1h drain n6]\n"
	for failover, succeeded := range map[string]int{"failover: {}": 0, "failover: {returnAfter: 10m}": 4} {
		if r := ran(t, failsOver+failover+events); r.Migrations.Succeeded != succeeded {
			t.Errorf("%s: %d moved, want %d", failover, r.Migrations.Succeeded, succeeded)
		}
	}
}

// A guest that its operator has paused is no outage; one whose host dies meanwhile boots and runs.
func TestAPausedGuestIsNoOutage(t *testing.T) {
	r := ran(t, failsOver+"failover: {}\nevents: [10s pause far, 1h resume far, 2h pause far]\n")
	if d, out := outOf(&r, "default/far"); out {
		t.Errorf("far was out for %s", d)
	}
	if r.Outages.Count != 0 || len(r.Down) != 0 {
		t.Errorf("%+v, down %v", r.Outages, r.Down)
	}
	r = ran(t, failsOver+"failover: {}\nevents: [10s pause far, 1m drain n2]\n")
	if r.Migrations.Succeeded != 1 || r.Outages.Count != 0 {
		t.Errorf("%+v, %+v: a paused guest moves, and stays paused", r.Migrations, r.Outages)
	}
}

func TestWhatIsWrongWithFailover(t *testing.T) {
	for text, want := range map[string]string{
		"failover: {stormShare: 2}":                "failover.stormShare",
		"failover: {fencingTakes: fast}":           "failover.fencingTakes",
		"failover: {returnAfter: -1s}":             "failover.returnAfter",
		"failover: {withoutDevice: [n1, n77]}":     `there is no host "n77"`,
		"failover: {withoutDevice: [\"n[1-\"]}":    "failover.withoutDevice",
		"failover: {fenceAfter: 1m, fencers: two}": "fencers",
	} {
		_, err := config.Parse("scenario.yaml", []byte(failsOver+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "scenario.yaml:8") {
			t.Errorf("%s: %v, want line 8 and %q", text, err, want)
		}
	}
}
