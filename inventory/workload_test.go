package inventory_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestClassesPartitionMemory: what is hot, cold or zero is all of the memory, and
// a busier class never has a smaller hot set or a lower rate.
func TestClassesPartitionMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := hypervisor.Bytes(rapid.Int64Range(1, 1<<62).Draw(t, "memory"))
		var rate hypervisor.Bandwidth
		var hot hypervisor.Bytes
		for _, name := range inventory.Classes() {
			w, known := inventory.Class(name, memory)
			if !known {
				t.Fatalf("there is no class %q", name)
			}
			zero := memory - w.Hot - w.Cold
			exact := memory / 1000 * hypervisor.Bytes(w.Zero)
			if w.Hot < 0 || w.Cold < 0 || zero < exact || zero > exact+1000 {
				t.Errorf("%s of %d: hot %d, cold %d, zero %d", name, memory, w.Hot, w.Cold, zero)
			}
			if w.Rate < rate || w.Hot < hot {
				t.Errorf("%s is calmer than the class before", name)
			}
			rate, hot = w.Rate, w.Hot
		}
	})
	if _, known := inventory.Class("", hypervisor.GiB); known {
		t.Error("the empty word is a class")
	}
}

func TestLoadOverlaysItsClass(t *testing.T) {
	class, _ := inventory.Class("database", 10*hypervisor.GiB)
	tests := []struct {
		name string
		load inventory.Load
		rate hypervisor.Bandwidth
		hot  hypervisor.Bytes
		cold hypervisor.Bytes
	}{
		{"a class alone", inventory.Load{Class: "database"}, class.Rate, class.Hot, class.Cold},
		{"a rate replaces the class's", inventory.Load{Class: "database", Dirty: 5},
			5, class.Hot, class.Cold},
		{"a working set leaves less cold",
			inventory.Load{Class: "database", WorkingSet: 5 * hypervisor.GiB},
			class.Rate, 5 * hypervisor.GiB, class.Cold + class.Hot - 5*hypervisor.GiB},
		{"a rate alone is of all memory", inventory.Load{Dirty: 7}, 7, 10 * hypervisor.GiB, 0},
		{"a working set is at most the memory",
			inventory.Load{Dirty: 7, WorkingSet: 99 * hypervisor.GiB}, 7, 10 * hypervisor.GiB, 0},
		{"nothing writes nothing", inventory.Load{}, 0, 0, 10 * hypervisor.GiB},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := tt.load.Workload(10 * hypervisor.GiB)
			if w.Rate != tt.rate || w.Hot != tt.hot || max(w.Cold-tt.cold, tt.cold-w.Cold) > 1 {
				t.Errorf("Workload() = %+v, want rate %v, hot %v, cold %v",
					w, tt.rate, tt.hot, tt.cold)
			}
		})
	}
}

func TestDefaultsPreferMoreLabelsThenLater(t *testing.T) {
	labels := func(pairs ...string) placement.Labels {
		all := placement.Labels{}
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			all[name] = value
		}
		return all
	}
	d := inventory.Defaults{
		Link: 1, Load: inventory.Load{Class: "idle"},
		Overrides: []inventory.Override{
			{Hosts: labels("rack=a", "new=yes"), Link: 4},
			{Hosts: labels("rack=a"), Link: 2},
			{Hosts: labels("new=yes"), Link: 3},
			{VMs: labels(), Load: inventory.Load{Class: "busy"}},
			{VMs: labels("app=db"), Load: inventory.Load{Class: "database"}},
		},
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		labels placement.Labels
		want   hypervisor.Bandwidth
	}{
		{"no override matches", labels("rack=b"), 1},
		{"one matches", labels("rack=a"), 2},
		{"more labels win over later ones", labels("rack=a", "new=yes", "x=y"), 4},
		{"the later of equals wins", labels("new=yes"), 3},
		{"no labels", nil, 1},
	} {
		if got := d.LinkOf(tt.labels); got != tt.want {
			t.Errorf("%s: LinkOf() = %d, want %d", tt.name, got, tt.want)
		}
	}
	d.Overrides[0].Hosts = labels("rack=c")
	if got := d.LinkOf(labels("rack=a", "new=yes")); got != 3 {
		t.Errorf("of two equals LinkOf() takes %d, want the later, 3", got)
	}
	if got := d.LoadOf(labels("app=web")).Class; got != "busy" {
		t.Errorf("an empty selector selects all: LoadOf() = %q, want busy", got)
	}
	if got := d.LoadOf(labels("app=db")).Class; got != "database" {
		t.Errorf("LoadOf() = %q, want database", got)
	}
	var none inventory.Defaults
	if none.LinkOf(nil) != inventory.DefaultLink ||
		none.LoadOf(nil).Class != inventory.DefaultClass {
		t.Error("without defaults the constants do not hold")
	}
}

// A guest that writes nothing may be said to do so, also where others have a default.
func TestAGuestMayWriteNothing(t *testing.T) {
	f, err := inventory.ReadFleet("fleet.yaml", strings.NewReader("hosts:\n- {name: n1, memory: 8GiB, "+
		"cpus: 8, link: 1Gbit/s}\nvms:\n- {name: idle, host: n1, memory: 1GiB, dirty: 0B/s}\n"+
		"- {name: web, host: n1, memory: 1GiB}\ndefaults: {class: web}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w := f.VMs[0].Workload; w.Rate != 0 || w.ColdRate != 0 {
		t.Errorf("idle writes %v and %v", w.Rate, w.ColdRate)
	}
	if f.VMs[1].Workload.Rate == 0 {
		t.Error("web writes nothing, and its class does")
	}
}
