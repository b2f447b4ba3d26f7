package sweep_test

import (
	"bytes"
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

// run simulates a scenario and returns its document and the world.
func run(t testing.TB, s *config.Scenario) (*sweep.ReportDocument, *sim.World) {
	t.Helper()
	config := s.Config(s.Seed)
	r := sweep.Record(&config)
	w, err := s.Build(config)
	if err != nil {
		t.Fatal(err)
	}
	ending := w.Run(s.Until)
	d := r.Document(w, s.Name, ending)
	d.Seed = s.Seed
	return d, w
}

func example(t testing.TB, name string) (*sweep.ReportDocument, *sim.World) {
	t.Helper()
	s, err := config.ReadFile("../../examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s)
}

func parse(t testing.TB, text string) *config.Scenario {
	t.Helper()
	s, err := config.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// documents returns one of each kind of page.
func documents(t testing.TB) map[string]*sweep.ReportDocument {
	rack, _ := example(t, "rack-maintenance.yaml")
	small, _ := example(t, "drain-host.yaml")
	bad, _ := example(t, "faults.yaml")
	return map[string]*sweep.ReportDocument{"rack": rack, "small": small, "bad": bad,
		"sweep": sweep.SweepReport(swept(t))}
}

// swept is what a sweep of six combinations comes to.
func swept(t testing.TB) *sweep.Document { return sweptIn(t, 0, 0) }

// sweptIn is what it comes to when the first combinations have no sample, and VMs stayed in the first sample of the others.
func sweptIn(t testing.TB, without, stayed int) *sweep.Document {
	t.Helper()
	run := sweep.Run{Scenario: "which limits?", Seed: 1, Samples: 20, Axes: sweep.Grid{
		{Path: "limits.perCluster", Values: []string{"2", "5", "10"}},
		{Path: "limits.perSource", Values: []string{"1", "2"}}}}
	var samples []sweep.Sample
	for world := range run.Worlds() {
		c, n := run.World(world)
		if c < without {
			continue
		}
		took, stood := 4000/float64(c+1), float64(40+c*c*15)
		if c == 3 {
			took, stood = 2500, 300 // beaten
		}
		wobble := 1 + float64(n*7%20)/100
		samples = append(samples, sweep.Sample{Combination: c, Sample: n, Ending: "at rest",
			Makespan: took * wobble, Downtime: sweep.Spread{P99: stood * wobble}})
		if n == 0 {
			samples[len(samples)-1].Stayed = stayed
		}
	}
	return sweep.Summarize(run, samples)
}

func html(t testing.TB, d *sweep.ReportDocument) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
