package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// outages runs a scenario to its end.
func outages(t *testing.T, text string) (*sim.World, sim.Result) {
	t.Helper()
	s, err := config.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Build(s.Config(s.Seed))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	return w, w.Result()
}

// The situation: kubevirt#13112, nova bug 1414065.
func TestASourceThatDiesAfterTheHandOverLeavesNoZeros(t *testing.T) {
	_, r := outages(t, `
hosts: [{name: "n[1-3]", memory: 64GiB, cpus: 32, link: 10Gbit/s}]
vms: [{name: web, host: n1, memory: 8GiB, cpus: 2, class: web}]
until: 1h
events:
- 0s migrate web to=n2
- 5s crash-agent n1 for=2m
- 5s crash-controller for=2m
- 20s crash n1
`)
	if r.Migrations.Succeeded != 1 || r.BytesUnknown != 1 {
		t.Errorf("%+v, %d with unknown bytes", r.Migrations, r.BytesUnknown)
	}
	if r.DowntimeCount != 1 || r.Downtime.Max <= 0 || r.Downtime.Max > 1000 {
		t.Errorf("%d downtimes, %+v", r.DowntimeCount, r.Downtime)
	}
	if len(r.Down) > 0 {
		t.Errorf("down: %v", r.Down)
	}
}

// The situation: kubevirt#10610, harvester#983. The VM is down until the end of the time that
// was asked for, although nothing happens any more after some minutes.
func TestAVMWhoseHostDiedForGoodIsDownUntilTheEnd(t *testing.T) {
	_, r := outages(t, `
hosts: [{name: "n[1-3]", memory: 64GiB, cpus: 32, link: 10Gbit/s}]
vms:
- {name: v, host: n1, memory: 8GiB, cpus: 2, class: web}
- {name: off, host: n1, memory: 8GiB, cpus: 2, class: web}
until: 2h
events:
- 0s stop off
- 1m crash n1
- 5m fence n1
`)
	want := sim.Down{VM: "default/v", SinceSeconds: 60, Seconds: 7140}
	if len(r.Down) != 1 || r.Down[0] != want {
		t.Errorf("down: %+v, want %+v alone: a VM that was stopped does not count", r.Down, want)
	}
	if r.Outages != (sim.Outages{Count: 1, TotalSeconds: 7140, LongestSeconds: 7140}) ||
		r.DowntimeCount != 0 {
		t.Errorf("outages %+v, %d downtimes", r.Outages, r.DowntimeCount)
	}
}

// A guest that was paused so that its migration ends, and whose migration was cancelled, stood.
func TestAPauseThatEndsInACancelIsDowntime(t *testing.T) {
	s, err := config.Parse("scenario.yaml", []byte(`
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}]
vms: [{name: db, host: n1, memory: 4GiB, cpus: 2, class: busy}]
config: {completionTimeoutPerGiB: 20s, allowWorkloadDisruption: true}
events: [0s migrate db]
`))
	if err != nil {
		t.Fatal(err)
	}
	var w *sim.World
	c := s.Config(1)
	c.Trace = func(e sim.Entry) {
		if strings.Contains(e.What, "convergence: Pause") {
			w.At(w.Now()+2*time.Second, sim.Cancel{VM: e.VM})
		}
	}
	if w, err = s.Build(c); err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	r := w.Result()
	if r.Migrations.Aborted != 1 || r.DowntimeCount != 1 || r.Downtime.Max < 2000 ||
		r.Outages.TotalSeconds < 2 || r.BytesUnknown != 0 {
		t.Errorf("%+v: %d downtimes %+v, outages %+v, %d unknown", r.Migrations, r.DowntimeCount,
			r.Downtime, r.Outages, r.BytesUnknown)
	}
}

// A reboot that was asked for is no outage; the end of a guest's process is one.
func TestACrashIsAnOutageAndAWantedRebootIsNone(t *testing.T) {
	_, r := outages(t, `
hosts: [{name: n1, memory: 64GiB, cpus: 32, link: 10Gbit/s}]
vms:
- {name: reboots, host: n1, memory: 8GiB, cpus: 2, class: web}
- {name: grows, host: n1, memory: 8GiB, cpus: 2, class: web}
- {name: crashes, host: n1, memory: 8GiB, cpus: 2, class: web}
events:
- 1m reboot reboots
- 1m resize grows memory=9GiB
- 2m reboot grows
- 3m kill crashes n1
`)
	if r.Outages.Count != 1 || r.Outages.TotalSeconds <= 1 || r.Outages.TotalSeconds > 120 ||
		len(r.Down) > 0 || r.DowntimeCount != 0 {
		t.Errorf("outages %+v, down %v", r.Outages, r.Down)
	}
}

// What the world counts by looking at guests is what hypervisors measure, where they tell.
func TestDowntimeIsWhatHypervisorsMeasure(t *testing.T) {
	w, r := outages(t, `
hosts: [{name: "n[1-6]", memory: 256GiB, cpus: 64, link: 10Gbit/s}]
vms:
- {name: "w[1-8]", host: n1, memory: 8GiB, cpus: 2, class: web}
- {name: "d[1-4]", host: n1, memory: 16GiB, cpus: 2, class: database}
- {name: "h[1-2]", host: n1, memory: 8GiB, cpus: 2, dirty: 2GiB/s, workingSet: 6GiB}
config: {allowWorkloadDisruption: true, completionTimeoutPerGiB: 5s}
events: [0s drain n1]
`)
	compared := 0
	for _, vm := range w.VMs() {
		for _, m := range w.Migrations(vm) {
			stood, known := w.Downtime(vm, m.Spec.ID)
			if !m.Source.Measured || !known {
				t.Errorf("%s: nothing was measured", m.Spec.ID)
				continue
			}
			compared++
			if d := (stood - m.Source.Downtime).Abs(); d > time.Millisecond {
				t.Errorf("%s stood %v, measured %v", m.Spec.ID, stood, m.Source.Downtime)
			}
		}
	}
	if compared < 14 || r.DowntimeCount < 14 {
		t.Errorf("%d compared, %d counted", compared, r.DowntimeCount)
	}
}
