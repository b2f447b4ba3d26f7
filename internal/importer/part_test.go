package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// TestAPartIsWhatWasThen compares, at every minute of the part that is used, the load with
// that of the last sample before.
func TestAPartIsWhatWasThen(t *testing.T) {
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.SampledFrom([]int{0, 20, 40, 60, 80, 100}), 2, 30).
			Draw(t, "loads")
		from := rapid.IntRange(0, 5*len(loads)).Draw(t, "from")
		long := rapid.IntRange(1, 40).Draw(t, "for")
		var text strings.Builder
		text.WriteString("vm,t0")
		for i := range loads[1:] {
			fmt.Fprintf(&text, ",t%d", 300*(i+1))
		}
		text.WriteString("\na")
		for _, l := range loads {
			fmt.Fprintf(&text, ",%d", l)
		}
		n++
		path := fmt.Sprintf("%s/%d.csv", folder, n)
		save(t, path, text.String()+"\n")
		got, err := importer.ReadTrace(path, importer.TraceOptions{From: time.Duration(from) * min,
			For: time.Duration(long) * min})
		if err != nil {
			t.Fatal(err)
		}
		all := got.VMs[0].Load
		if all[0].At != 0 {
			t.Fatalf("it begins at %v", all[0].At)
		}
		for m := range long {
			want := loads[clamp((from+m)/5, len(loads)-1)]
			if have := int(100*at(all, time.Duration(m)*min) + 0.5); have != want {
				t.Fatalf("%s: from %d: after %d minutes %d %%, want %d %%", &text, from, m, have,
					want)
			}
		}
	})
}

func clamp(n, most int) int {
	if n > most {
		return most
	}
	return n
}

// at returns the load at a time.
func at(all []importer.TracePoint, when time.Duration) float64 {
	load := 0.0
	for _, p := range all {
		if p.At <= when {
			load = p.CPU
		}
	}
	return load
}

func TestAPartWithoutSamplesIsAProblem(t *testing.T) {
	path := write(t, folder{"1.csv": bitHeader + bit(0, 7), "2.csv": bitHeader + bit(7200000, 7)})
	got, err := importer.ReadTrace(path, importer.TraceOptions{For: time.Hour})
	if err != nil || len(got.VMs) != 1 || len(got.Warnings) != 1 {
		t.Errorf("%+v %v: want one VM and one that is left out", got, err)
	}
}

func TestOnlySoManyVMsAreRead(t *testing.T) {
	path := write(t, folder{"a.csv": "vm,t0\na,1\nb,2\nc,broken\n"})
	got, err := importer.ReadTrace(path, importer.TraceOptions{VMs: 2, Memory: gib})
	if err != nil || len(got.VMs) != 2 || got.VMs[1].Memory != gib {
		t.Errorf("%+v %v", got, err)
	}
}

// Readings after the part that is used are not even looked at: real ones are huge.
func TestReadingsAreReadToTheEndOfThePart(t *testing.T) {
	path := write(t, folder{"vmtable.csv": azureTable, "vm_cpu_readings-1.csv": azureReadings +
		"7200,x/+=,1,50,90\nbroken\n"})
	if _, err := importer.ReadTrace(path, importer.TraceOptions{For: time.Hour}); err != nil {
		t.Error(err)
	}
	if _, err := importer.ReadTrace(path, importer.TraceOptions{For: 3 * time.Hour}); err == nil {
		t.Error("the broken line in the part was not found")
	}
}

func TestTheProxyFollowsTheLoad(t *testing.T) {
	v := &importer.TraceVM{CPUs: 4, Memory: 10 * gib}
	mib := hypervisor.Bandwidth(hypervisor.MiB)
	for _, c := range []struct {
		proxy importer.Proxy
		load  float64
		rate  hypervisor.Bandwidth
	}{
		{importer.Proxy{}, 0, 0},
		{importer.Proxy{}, 0.5, 80 * mib},
		{importer.Proxy{}, 1, 160 * mib},
		{importer.Proxy{Scale: 3}, 0.5, 160 * mib}, // no more than all CPUs are busy
		{importer.Proxy{PerCPU: 10 * mib}, 0.5, 20 * mib},
	} {
		w := c.proxy.Workload(v, c.load)
		if w.Rate != c.rate || !w.Valid() {
			t.Errorf("%+v at %v: %+v, want a rate of %v", c.proxy, c.load, w, c.rate)
		}
	}
	busy := importer.Proxy{Load: inventory.Load{Class: "database"}}.Workload(v, 1)
	if idle := (importer.Proxy{}).Workload(v, 1); busy.Hot <= idle.Hot {
		t.Errorf("the class makes no difference: %v and %v", busy.Hot, idle.Hot)
	}
}
