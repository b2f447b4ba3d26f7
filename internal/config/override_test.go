package config_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

const plain = `
seed: 3
limits: {perCluster: 5}
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: "web-[1-4]", host: n1, memory: 4GiB, class: web}
events: [drain n1]
`

func parsed(t *testing.T, text string, overrides ...config.Override) *config.Scenario {
	t.Helper()
	s, err := config.Parse("f.yaml", []byte(text), overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOverridesAreAsIfWritten(t *testing.T) {
	s := parsed(t, plain, config.Override{Path: "limits.perCluster", Value: "2"},
		config.Override{Path: "seed", Value: "9"},
		config.Override{Path: "hosts[*].link", Value: "25Gbit/s"},
		config.Override{Path: "until", Value: "2h"})
	if s.Controller.Cluster.ParallelMigrationsPerCluster != 2 || s.Seed != 9 ||
		s.Until != 2*time.Hour || s.Fleet.Hosts[2].Link != 25*hypervisor.Gbit {
		t.Errorf("the scenario is %+v", s)
	}
	s = parsed(t, plain, config.Override{Path: "link", Value: "1Gbit/s"})
	if s.Fleet.Hosts[0].Link != hypervisor.Gbit || s.Fleet.Hosts[2].Link != hypervisor.Gbit {
		t.Errorf("the hosts are %+v", s.Fleet.Hosts)
	}
	s = parsed(t, plain)
	if s.Controller.Cluster.ParallelMigrationsPerCluster != 5 || s.Seed != 3 {
		t.Error("the overrides have changed more than one reading")
	}
}

func TestWrongOverridesAreExplained(t *testing.T) {
	tests := []struct{ path, value, want string }{
		{"limts.perCluster", "2", `f.yaml: limts: unknown field "limts"`},
		{"limits.perClutser", "2",
			`f.yaml: limits.perClutser: unknown field "perClutser"`},
		{"limits.perCluster", "many",
			"f.yaml: limits.perCluster: needs a whole number, has a text"},
		{"limits.perCluster", "-2", "f.yaml: limits.perCluster: -2 is no limit"},
		{"hosts[1].link", "1Gbit/s",
			"f.yaml: hosts[1].link: there is no entry [1]: the list has 1"},
		{"hosts[0].link", "fast", `f.yaml: hosts[0].link: "fast" has no unit of speed`},
		{"order", "[ByID]", `f.yaml: order: "[ByID]" is no single text or number`},
		{"link", "fast", `"fast" has no unit of speed`},
		{"link", "0Gbit/s", `a link of "0Gbit/s" carries nothing`},
		{"policy", "nowhere.yaml", "open nowhere.yaml: no such file or directory"},
	}
	for _, tt := range tests {
		_, err := config.Parse("f.yaml", []byte(plain), config.Override{Path: tt.path,
			Value: tt.value})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s=%s gives %v, want %q", tt.path, tt.value, err, tt.want)
		}
	}
}

func TestAPolicyFileReplacesThePolicies(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) config.Override {
		write(t, filepath.Join(dir, name), text)
		return config.Override{Path: config.PolicyFile, Value: filepath.Join(dir, name)}
	}
	good := file("good.yaml", "policies:\n- {name: a, allowPostCopy: true, "+
		"selectors: {virtualMachineInstanceSelector: {x: y}}}\n- {name: b}\n")
	s := parsed(t, plain+"policies: [{name: old}]\n", good)
	if p := s.Controller.Policies; len(p) != 2 || p[0].Name != "a" || p[1].Name != "b" {
		t.Errorf("the policies are %+v", p)
	}
	if diff := cmp.Diff([]string{"f.yaml", good.Value}, s.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ text, want string }{
		{"policies: [{nmae: a}]", `bad.yaml:1: policies[0].nmae: unknown field "nmae"`},
		{"hosts: []", `bad.yaml:1: hosts: unknown field "hosts"`},
		{"policies: [{name: a}, {name: a}]", "bad.yaml:1: "},
		{"", "bad.yaml:1: it is empty"},
	} {
		_, err := config.Parse("f.yaml", []byte(plain), file("bad.yaml", tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q gives %v, want %q", tt.text, err, tt.want)
		}
	}
}

const varied = plain + `
vary:
  dirty: uniform(0.5, 2)
  workingSet: lognormal(1)
  link: choice(0.5, 1)
  faults: [50% within 1m crash-agent any-host for=10s, 2x within 1m kill any-vm n1]
`

func TestWhatDoesNotVaryIsTheScenarioItself(t *testing.T) {
	s := parsed(t, plain)
	if drawn, err := s.Draw(7); drawn != s || err != nil {
		t.Errorf("Draw() is another scenario, %v", err)
	}
}

// TestDrawVariesLaterLoads: by the same factor as the first.
func TestDrawVariesLaterLoads(t *testing.T) {
	const loads = `
vms: [{name: a, host: n1, memory: 4GiB, dirty: 100MiB/s, workingSet: 1GiB}]
hosts: [{name: n1, memory: 64GiB, cpus: 16}]
vary: {dirty: uniform(0.5 2)}
events: [1m load a rate=200MiB/s hot=1GiB, when a=Running load a rate=400MiB/s hot=1GiB]
`
	s := parsed(t, loads)
	for seed := range uint64(20) {
		drawn, err := s.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		factor := float64(drawn.Fleet.VMs[0].Workload.Rate) / float64(100<<20)
		first := drawn.Events[0].What.(sim.Load).Load.Rate
		then := drawn.Events[1].What.(sim.When).Do.(sim.Load).Load.Rate
		if factor == 1 || math.Abs(float64(first)/float64(200<<20)-factor) > 1e-6 ||
			math.Abs(float64(then)/float64(400<<20)-factor) > 1e-6 {
			t.Errorf("seed %d: factor %v, then %v and %v", seed, factor, first, then)
		}
	}
	if got := s.Events[0].What.(sim.Load).Load.Rate; got != 200<<20 {
		t.Errorf("the scenario has changed: %v", got)
	}
}

// TestDrawVariesWhatItSays, within what was asked for, the same for the same seed,
// and leaves the scenario as it is.
func TestDrawVariesWhatItSays(t *testing.T) {
	s, untouched := parsed(t, varied), parsed(t, plain)
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		drawn, err := s.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range drawn.Fleet.Hosts {
			if link := untouched.Fleet.Hosts[i].Link; h.Link != link && h.Link != link/2 {
				t.Errorf("%s has a link of %v", h.Name, h.Link)
			}
		}
		for i := range drawn.Fleet.VMs {
			was, is := untouched.Fleet.VMs[i].Workload, drawn.Fleet.VMs[i].Workload
			if is.Rate < was.Rate/2 || is.Rate > was.Rate*2 || is.Hot+is.Cold != was.Hot+was.Cold ||
				is.Zero != was.Zero || is.Cold < 0 {
				t.Errorf("a guest that was %+v is %+v", was, is)
			}
			if is.Rate == was.Rate || is.Hot == was.Hot {
				same++
			}
		}
		if n := len(drawn.Events); n < 3 || n > 4 || drawn.Events[0].Text != "drain n1" {
			t.Errorf("the events are %v", drawn.Events)
		}
		again, err := s.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(texts(drawn), texts(again)); diff != "" {
			t.Errorf("the same seed draws something else:\n%s", diff)
		}
	})
	if same > 10 {
		t.Errorf("%d guests are as they were", same)
	}
	if diff := cmp.Diff(loads(untouched), loads(s)); diff != "" {
		t.Errorf("the scenario has changed:\n%s", diff)
	}
}

func texts(s *config.Scenario) (all []string) {
	for _, e := range s.Events {
		all = append(all, e.At.String()+" "+e.Text)
	}
	return all
}

func loads(s *config.Scenario) (all []fake.Workload) {
	for i := range s.Fleet.VMs {
		all = append(all, s.Fleet.VMs[i].Workload)
	}
	return all
}

func TestWrongVaryIsExplained(t *testing.T) {
	tests := []struct{ vary, want string }{
		{"dirty: lots", `f.yaml:10: vary.dirty: "lots" is no distribution`},
		{"link: uniform(2, 1)", "f.yaml:10: vary.link: "},
		{"speed: uniform(1, 2)", `f.yaml:10: vary.speed: unknown field "speed"`},
		{"faults: [sometimes]", `f.yaml:10: vary.faults[0]: "sometimes" is no fault`},
		{"faults: [1x within 1h crash n9]", `f.yaml:10: vary.faults[0]: there is no host "n9"`},
		{"faults: [1x within 1h explode n1]", `f.yaml:10: vary.faults[0]: unknown verb "explode"`},
		{"faults: [1x within 1h reset n1 any-host any-host any-host]",
			`f.yaml:10: vary.faults[0]: any-host: there are too few to draw from`},
		{"faults: [1x within 200y crash n1]", `f.yaml:10: vary.faults[0]: "200y"`},
	}
	for _, tt := range tests {
		_, err := config.Parse("f.yaml", []byte(plain+"vary:\n  "+tt.vary+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s gives %v, want %q", tt.vary, err, tt.want)
		}
	}
}
