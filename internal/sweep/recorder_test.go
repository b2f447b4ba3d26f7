package sweep_test

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

// worlds are some without and with faults, and one that is stopped on the way: a migration
// is cancelled, one has succeeded, one moves, and one waits.
func worlds(t *testing.T) iter.Seq2[string, *config.Scenario] {
	return func(yield func(string, *config.Scenario) bool) {
		for _, name := range []string{"drain-host.yaml", "rack-maintenance.yaml",
			"busy-database.yaml", "faults.yaml", "kubevirt-cluster.yaml"} {
			s, err := config.ReadFile("../../examples/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(name, s) {
				return
			}
		}
		yield("stopped", parse(t, stopped))
	}
}

const stopped = `
name: stopped on the way
until: 30s
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: "a-[1-4]", host: n1, memory: 8GiB, cpus: 2, class: web}
limits: {perCluster: 1}
events:
- 0s drain n1
- 2s cancel a-1
- 2s cancel a-2
`

// TestTheStoppedWorld has every kind of outcome that it says.
func TestTheStoppedWorld(t *testing.T) {
	d, w := run(t, parse(t, stopped))
	if got := w.Result().Migrations; got.Aborted == 0 || got.Succeeded == 0 ||
		got.Total <= got.Aborted+got.Succeeded+got.Failed {
		t.Errorf("the stopped world comes to %+v", got)
	}
	if len(d.Migrations.VM) == 0 || !slices.Contains(d.Migrations.Ended, -1) {
		t.Error("no migration is unfinished")
	}
}

// TestTheFiguresAreThoseOfTheResult adds up the rows of documents.
func TestTheFiguresAreThoseOfTheResult(t *testing.T) {
	for name, s := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			d, w := run(t, s)
			m, want := d.Migrations, w.Result()
			got := sim.Totals{Total: len(m.VM)}
			for _, o := range m.Outcome {
				switch o {
				case sweep.Lost:
					got.MemoryLost++
					got.Succeeded++
				case sweep.Succeeded:
					got.Succeeded++
				case sweep.Failed:
					got.Failed++
				case sweep.Aborted:
					got.Aborted++
				}
			}
			if got != want.Migrations || m.Total != got.Total {
				t.Errorf("the rows add up to %+v, the result is %+v", got, want.Migrations)
			}
			var sent int64
			for _, b := range m.Bytes {
				sent += b
			}
			if sent != int64(want.BytesTransferred) {
				t.Errorf("the rows sent %d bytes, the result says %d", sent, want.BytesTransferred)
			}
			stood := slices.DeleteFunc(slices.Clone(m.Downtime),
				func(b float64) bool { return b < 0 })
			slices.Sort(stood)
			at := func(q float64) float64 { return sweep.Quantile(stood, q) }
			if down := (sim.Downtime{P50: at(0.5), P99: at(0.99), Max: at(1)}); down !=
				want.Downtime {
				t.Errorf("the downtimes are %+v, the result says %+v", down, want.Downtime)
			}
			if b := d.Downtimes; b != nil && (b.P50 != want.Downtime.P50 ||
				b.P99 != want.Downtime.P99 || b.Max != want.Downtime.Max) {
				t.Errorf("the distribution is %+v, the result says %+v", *b, want.Downtime)
			}
		})
	}
}

// TestRowsAreComplete looks at the phases of every migration.
func TestRowsAreComplete(t *testing.T) {
	for name, s := range worlds(t) {
		d, _ := run(t, s)
		m := d.Migrations
		for i, vm := range m.VM {
			phases := []int64{m.Created[i], m.Pending[i], m.Scheduling[i], m.Scheduled[i],
				m.Preparing[i], m.Ready[i], m.Running[i], m.Ended[i]}
			known := slices.DeleteFunc(slices.Clone(phases), func(at int64) bool { return at < 0 })
			if !slices.IsSorted(known) || known[len(known)-1] > d.To || known[0] < d.From {
				t.Errorf("%s: %s has the phases %v of %d to %d", name, vm, phases, d.From, d.To)
			}
			if m.Outcome[i] == sweep.Succeeded && len(known) != len(phases) {
				t.Errorf("%s: %s succeeded without all phases: %v", name, vm, phases)
			}
			if (name == "faults.yaml" || name == "stopped") && d.Hosts[m.Source[i]] != "n1" {
				t.Errorf("%s: %s left %s, want n1", name, vm, d.Hosts[m.Source[i]])
			}
			if m.Source[i] < 0 || m.Outcome[i] == sweep.Succeeded && m.Target[i] < 0 {
				t.Errorf("%s: %s has no source or target", name, vm)
			}
			if m.Outcome[i] == sweep.Failed && m.Reasons[m.Why[i]] == "" {
				t.Errorf("%s: %s failed for no reason", name, vm)
			}
		}
	}
}

// TestTimeAddsUp compares the areas under the curves with the rows.
func TestTimeAddsUp(t *testing.T) {
	for name, s := range worlds(t) {
		d, _ := run(t, s)
		m, c := d.Migrations, d.Concurrency
		var moved, waited, carried float64
		for i := range m.VM {
			over := cmp.Or(max(m.Ended[i], 0), d.To)
			begun := m.Running[i]
			if begun < 0 {
				begun = over
			} else {
				carried += float64(m.Bytes[i])
			}
			moved += float64(over - begun)
			waited += float64(begun - m.Created[i])
		}
		area := func(levels []float64) (sum float64) {
			for _, l := range levels {
				sum += l * c.Step
			}
			return sum
		}
		// Levels are rounded to thousandths, times to milliseconds.
		slack := 0.001*c.Step*float64(len(c.Moving)) + float64(len(m.VM))
		if got := area(c.Moving); math.Abs(got-moved) > slack {
			t.Errorf("%s: %v ms of moving, want %v", name, got, moved)
		}
		if got := area(c.Waiting); math.Abs(got-waited) > slack {
			t.Errorf("%s: %v ms of waiting, want %v", name, got, waited)
		}
		kinds := map[string]float64{}
		for _, l := range d.Links {
			sent := 0.0
			for _, use := range l.Use {
				sent += float64(use) / 1000 * float64(l.Capacity) * c.Step / 1000
			}
			kinds[l.Kind] += float64(l.Bytes)
			if full := slices.Max(l.Use) == 1000; !full && math.Abs(sent-float64(l.Bytes)) >
				0.01*float64(l.Bytes)+1e6 {
				t.Errorf("%s: %s %s was used for %v bytes, and carried %d", name, l.Name, l.Kind,
					sent, l.Bytes)
			}
		}
		if kinds["out"] != carried || kinds["in"] != carried {
			t.Errorf("%s: the links carried %v, the migrations sent %v", name, kinds, carried)
		}
	}
}

// TestRacksAndNetworks drains a host into its own rack and another one, over a network that
// all share and that is the bottleneck.
func TestRacksAndNetworks(t *testing.T) {
	s := parse(t, `
hosts:
- {name: a1, memory: 64GiB, cpus: 16, link: 10Gbit/s, rack: a}
- {name: a2, memory: 64GiB, cpus: 16, link: 10Gbit/s, rack: a}
- {name: b1, memory: 64GiB, cpus: 16, link: 10Gbit/s, rack: b}
racks: {a: {uplink: 8Gbit/s}, b: {uplink: 8Gbit/s}}
network: {speed: 4Gbit/s}
vms:
- {name: "v-[1-5]", host: a1, memory: 4GiB, cpus: 1, class: web}
events: [0s drain a1]
`)
	config := s.Config(1)
	r := sweep.Record(&config)
	r.Network = s.Fleet.Network
	w, err := s.Build(config)
	if err != nil {
		t.Fatal(err)
	}
	ending := w.Run(s.Until)
	d := r.Document(w, "racks", ending)
	crossed, sent := map[string]int64{}, map[string]int64{}
	for i := range d.Migrations.VM {
		target := string(d.Hosts[d.Migrations.Target[i]])
		for _, link := range []string{"out a1", "in " + target, "network migration network"} {
			crossed[link] += d.Migrations.Bytes[i]
		}
		if target == "b1" {
			crossed["up a"] += d.Migrations.Bytes[i]
			crossed["down b"] += d.Migrations.Bytes[i]
		}
	}
	for _, l := range d.Links {
		sent[l.Kind+" "+l.Name] = int64(l.Bytes)
		if most := slices.Max(l.Use); l.Kind == "network" && (most < 900 || most > 1000) ||
			l.Kind == "up" && most > 510 {
			t.Errorf("%s %s was used up to %d thousandths", l.Kind, l.Name, most)
		}
	}
	if !maps.Equal(sent, crossed) || len(sent) != 6 {
		t.Errorf("the links carried %v, want %v", sent, crossed)
	}
}

// A controller's clock that is set back changes no time of the page: times are virtual.
func TestTimesAreNotByTheControllersClock(t *testing.T) {
	d, w := run(t, parse(t, `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 64, link: 1Gbit/s}]
vms: [{name: a, host: n1, memory: 16GiB, class: idle}]
events: [1s drain n1, 20s skew controller by=-10m]
`))
	m, empty := d.Migrations, w.Evacuations()[0].EmptySeconds
	if len(m.VM) != 1 || empty == nil {
		t.Fatalf("%d migrations, empty %v", len(m.VM), empty)
	}
	if took := float64(m.Ended[0]-m.Running[0]) / 1000; took <= 30 || math.Abs(float64(m.Ended[0])/1000-*empty) > 0.01 {
		t.Errorf("it runs from %d to %d ms, and the host is empty at %v s", m.Running[0], m.Ended[0], *empty)
	}
}

// TestOneWatcherDoesNotPushOutAnother chains two.
func TestOneWatcherDoesNotPushOutAnother(t *testing.T) {
	s := parse(t, small)
	config := s.Config(1)
	first, second := sweep.Record(&config), sweep.Record(&config)
	w, err := s.Build(config)
	if err != nil {
		t.Fatal(err)
	}
	ending := w.Run(s.Until)
	a, b := first.Document(w, "a", ending), second.Document(w, "a", ending)
	if html(t, a) != html(t, b) || len(a.Migrations.VM) != 2 {
		t.Errorf("two recorders of %d migrations saw different things", len(a.Migrations.VM))
	}
}

const small = `
name: two leave
hosts:
- {name: "n[1-2]", memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: "a-[1-2]", host: n1, memory: 8GiB, cpus: 4, class: web}
events:
- 0s drain n1
`

// TestAWorldWithoutMigrations makes a page, too.
func TestAWorldWithoutMigrations(t *testing.T) {
	d, _ := run(t, parse(t, "name: nothing\nhosts:\n- {name: n1, memory: 1GiB, cpus: 1, "+
		"link: 1Gbit/s}\n"))
	if d.Migrations.Total != 0 || d.Downtimes != nil || len(d.Links) != 0 {
		t.Errorf("a quiet world has %+v", d)
	}
	html(t, d)
}
