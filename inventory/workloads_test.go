package inventory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/inventory"
)

// imported is a fleet of which nothing is known but sizes.
func imported(t *testing.T) *inventory.Fleet {
	t.Helper()
	f, err := inventory.ReadFleet("fleet.yaml", strings.NewReader("hosts:\n"+
		"- {name: n1, memory: 64GiB, cpus: 64, link: 10Gbit/s}\nvms:\n"+
		"- {name: db, namespace: prod, host: n1, memory: 8GiB}\n"+
		"- {name: db, namespace: test, host: n1, memory: 8GiB}\n"+
		"- {name: \"web-[1-3]\", host: n1, memory: 2GiB}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestMeasuredWorkloadsAreLaidOverAFleet(t *testing.T) {
	f := imported(t)
	before := f.VMs[0].Workload
	err := f.LayWorkloads("load.csv", strings.NewReader("# measured in May\nvm,dirty,workingSet,class\n"+
		"prod/db, 180MiB/s, 6GiB,\n\"web-[1-2]\",,,in-memory\ntest/db,0B/s,,\nold,1MiB/s,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	loads := map[hypervisor.VMID]fake.Workload{}
	for i := range f.VMs {
		loads[f.VMs[i].ID] = f.VMs[i].Workload
	}
	mib := hypervisor.Bandwidth(hypervisor.MiB)
	if w := loads["prod/db"]; w.Rate != 180*mib || w.Hot != 6*hypervisor.GiB ||
		w.Hot+w.Cold > 8*hypervisor.GiB {
		t.Errorf("prod/db: %+v", w)
	}
	if w := loads["test/db"]; w.Rate != 0 {
		t.Errorf("test/db: %+v", w)
	}
	want, _ := inventory.Class("in-memory", 2*hypervisor.GiB)
	for _, id := range []hypervisor.VMID{"default/web-1", "default/web-2"} {
		if loads[id] != want {
			t.Errorf("%s: %+v, want %+v", id, loads[id], want)
		}
	}
	if w := loads["default/web-3"]; w != before {
		t.Errorf("web-3 has no line, and has changed: %+v", w)
	}
	said := ""
	for _, w := range f.Warnings {
		said += w.Error() + "\n"
	}
	for _, text := range []string{`load.csv:6: vm: the fleet has no VM "old": the line is left out`,
		"load.csv: 1 of 5 VMs have no line, and the workload that the fleet gives them: default/web-3"} {
		if !strings.Contains(said, text) {
			t.Errorf("it does not warn %q:\n%s", text, said)
		}
	}
}

func TestWhatIsWrongWithAFileOfWorkloadsHasFileLineAndField(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"an empty file", "", "load.csv:1: the file is empty"},
		{"no VM", "dirty\n1MiB/s\n", "load.csv:1: vm: the column is missing"},
		{"an unknown column", "vm,color\ndb,red\n", "load.csv:1: color: there is no such column"},
		{"a column twice", "vm,dirty,dirty\n", "load.csv:1: dirty: the column is there twice"},
		{"too few fields", "vm,dirty\nprod/db\n", "load.csv:2: the line has 1 field, and"},
		{"no name", "vm,dirty\n,1MiB/s\n", "load.csv:2: vm: the name is missing"},
		{"no unit", "vm,dirty\nprod/db,180\n", "load.csv:2: dirty: \"180\" has no unit of speed"},
		{"a negative rate", "vm,dirty\nprod/db,-1MiB/s\n", "load.csv:2: dirty: "},
		{"an unknown class", "vm,class\nprod/db,buzy\n", "load.csv:2: class: unknown class"},
		{"too large a working set", "vm,workingSet\nprod/db,9GiB\n",
			"load.csv:2: workingSet: 9GiB is more than the memory of prod/db, 8GiB"},
		{"a name of two", "vm,dirty\ndb,1MiB/s\n",
			"load.csv:2: vm: \"db\" is the name of several: write one of prod/db, test/db"},
		{"a VM twice", "vm,dirty\nweb-1,1MiB/s\n\ndefault/web-1,2MiB/s\n",
			"load.csv:4: vm: default/web-1 is in line 2, too"},
		{"a bad range", "vm,dirty\nweb-[3,1MiB/s\n", "load.csv:2: vm: "},
		{"an open quote", "vm,dirty\n\"prod/db,1MiB/s\n", "load.csv:"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := imported(t)
			before := f.VMs[0].Workload
			err := f.LayWorkloads("load.csv", strings.NewReader(row.text))
			problems, are := errors.AsType[inventory.Problems](err)
			if !are || len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), row.want) {
				t.Errorf("it says %v, want %q", err, row.want)
			}
			if f.VMs[0].Workload != before {
				t.Error("the fleet has changed")
			}
		})
	}
}

func FuzzWorkloads(f *testing.F) {
	f.Add("vm,dirty,workingSet,coldDirty,class\nprod/db,1MiB/s,1GiB,1KiB/s,web\n")
	f.Fuzz(func(t *testing.T, text string) {
		fleet := imported(t)
		if err := fleet.LayWorkloads("load.csv", strings.NewReader(text)); err != nil {
			return
		}
		for i := range fleet.VMs {
			if v := &fleet.VMs[i]; !v.Workload.Valid() || v.Workload.Hot > v.Memory {
				t.Errorf("%s: %+v", v.ID, v.Workload)
			}
		}
	})
}
