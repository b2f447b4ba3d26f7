package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim"
)

// twoHosts have room for four VMs of 4 GiB each.
const twoHosts = "hosts:\n- {name: \"n[1-2]\", memory: 16GiB, cpus: 8}\n"

// day is a trace of five VMs: a gets busy after five minutes, d and e stay idle.
const day = "vm,t0,t300\na,10,100\nb,10,10\nc/+,10,10\nd,0,0\ne,0,0\n"

// traced reads a scenario beside a trace and a model.
func traced(t *testing.T, text string) (*config.Scenario, error) {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "day.csv"), day)
	var model strings.Builder
	m := fake.QEMU()
	m.SwitchOver = 70 * time.Millisecond
	if err := config.WriteModel(&model, m); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "own.yaml"), model.String())
	path := filepath.Join(folder, "scenario.yaml")
	write(t, path, text)
	return config.ReadFile(path)
}

func TestATraceAddsVMsAndTheirLoads(t *testing.T) {
	s, err := traced(t, twoHosts+"vms: [{name: own, host: n1, memory: 8GiB}]\n"+
		"trace: {file: day.csv, vms: 4, dirtyPerCPU: 100MiB/s, scale: 0.5}\n"+
		"events:\n- 1m migrate trace/a\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range s.Fleet.VMs {
		got = append(got, fmt.Sprintf("%s on %s %v %v", v.ID, v.Host, v.Memory, v.Workload.Rate))
	}
	want := "[default/own on n1 8GiB 20MiB/s trace/a on n1 4GiB 5MiB/s trace/b on n2 4GiB 5MiB/s " +
		"trace/d on n2 4GiB 0B/s trace/vm3 on n1 4GiB 5MiB/s]"
	if fmt.Sprint(got) != want {
		t.Errorf("VMs are\n%v, want\n%v", got, want)
	}
	if len(s.Events) != 2 || s.Events[0].At != 5*time.Minute ||
		s.Events[0].What.(sim.Load).Load.Rate != 50*hypervisor.Bandwidth(hypervisor.MiB) {
		t.Errorf("events are %+v, want a's load after five minutes and the migration", s.Events)
	}
}

// A VM that was idle in the trace when it moved is on its way sooner than one that was busy.
func TestTheLoadOfATraceIsPlayed(t *testing.T) {
	took := func(at string) float64 {
		s, err := traced(t, twoHosts+"trace: {file: day.csv, vms: 1, dirtyPerCPU: 1000MiB/s}\n"+
			"events:\n- "+at+" migrate trace/a\n")
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		w.Run(s.Until)
		r := w.Result()
		if r.Migrations.Succeeded != 1 || len(r.Violations) > 0 {
			t.Fatalf("%+v", r)
		}
		return r.Downtime.Max + float64(r.BytesTransferred)
	}
	if idle, busy := took("1m"), took("10m"); busy <= idle {
		t.Errorf("while idle %v, while busy %v", idle, busy)
	}
}

func TestVMsWithoutRoomAreLeftOut(t *testing.T) {
	s, err := traced(t, twoHosts+"trace: {file: day.csv, hosts: n2}\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Fleet.VMs) != 4 || !strings.Contains(fmt.Sprint(s.Fleet.Warnings),
		"scenario.yaml:3: trace: 1 of 5 VMs are left out: the hosts have no room for them") {
		t.Errorf("%d VMs, warnings %v", len(s.Fleet.VMs), s.Fleet.Warnings)
	}
}

// A spec that was made has no lines; what is to be known of it names the field.
func TestAMadeSpecTellsOfVMsWithoutRoom(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "day.csv"), day)
	made := config.Spec{Trace: &config.TraceSpec{File: "day.csv"}}
	made.Hosts = []inventory.HostSpec{{Name: "n1", Memory: "16GiB", CPUs: 8}}
	s, err := made.Scenario(filepath.Join(folder, "made"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(s.Fleet.Warnings), "made: trace: 1 of 5 VMs are left out") {
		t.Errorf("warnings %v", s.Fleet.Warnings)
	}
	made.Events = []string{"0s drain n2"}
	_, err = made.Scenario(filepath.Join(folder, "made"))
	if !strings.Contains(fmt.Sprint(err), "made: events[0]: there is no host") {
		t.Errorf("an event for no host: %v", err)
	}
}

func TestAModelIsAWordAFileOrFields(t *testing.T) {
	qemu := fake.QEMU()
	qemu.SwitchOver = 70 * time.Millisecond
	for text, want := range map[string]fake.Model{
		"":                            fake.QEMU(),
		"model: qemu\n":               fake.QEMU(),
		"model: ideal\n":              {},
		"model: own.yaml\n":           qemu,
		"model: {switchOver: 70ms}\n": qemu,
		"model: {base: ideal, setUp: 1s, compression: 30}\n": {
			SetUp: time.Second, Compression: 30},
	} {
		s, err := traced(t, twoHosts+text)
		if err != nil || s.Model != want {
			t.Errorf("%q: %v\ngot %+v\nwant %+v", text, err, s, want)
		}
	}
}

func TestWrongTracesAndModelsAreExplained(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"trace: {}", "scenario.yaml:3: trace.file: it is missing"},
		{"trace: none.csv", "scenario.yaml:3: trace: stat "},
		{"trace: scenario.yaml", "scenario.yaml: it is no trace that is known"},
		{"trace: {file: day.csv, vm: 3}", `scenario.yaml:3: trace.vm: unknown field "vm"`},
		{"trace: {file: day.csv, vms: -3}", "scenario.yaml:3: trace.vms: needs 1 to "},
		{"trace: {file: day.csv, hosts: n9}", `:3: trace.hosts: there is no host "n9"`},
		{"trace: {file: day.csv, hosts: \"n[\"}", ":3: trace.hosts: "},
		{"trace: {file: day.csv, scale: -1}", ":3: trace.scale: needs a number above 0"},
		{"trace: {file: day.csv, memory: 4}", ":3: trace.memory: "},
		{"trace: {file: day.csv, from: soon}", ":3: trace.from: "},
		{"trace: {file: day.csv, for: -5m}", ":3: trace.for: "},
		{"trace: {file: day.csv, from: 5h}", "day.csv: no VM has a sample in the time"},
		{"trace: {file: day.csv, dirtyPerCPU: 5}", ":3: trace.dirtyPerCPU: "},
		{"trace: {file: day.csv, class: lazy}", ":3: trace.class: unknown class"},
		{"model: {switchOver: 5}", ":3: model.switchOver: "},
		{"model: {speed: 5}", `:3: model.speed: unknown field "speed"`},
		{"model: day.csv", "day.csv:1: "},
		{"model: xen.yaml", `:3: model: unknown model "xen.yaml"; use qemu`},
		{"model: [qemu]", ":3: model: needs"},
		{"trace: [day.csv]", ":3: trace: needs"},
		{"trace: {file: day.csv}\nevents: [\"0s drain n9\"]",
			`:4: events[0]: there is no host "n9"`},
	} {
		_, err := traced(t, twoHosts+c.text+"\n")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}
