package simtest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// busy makes worlds with much to leave out.
var busy = simtest.Turmoil().And(simtest.Generations(), simtest.ConflictingPolicies(),
	simtest.Swarm(simtest.Faults(), 4, 8))

// valid reports whether a world can be built.
func valid(w *simtest.World) bool {
	_, err := w.Scenario("world")
	return err == nil
}

// has reports whether an event with these words is left.
func has(w *simtest.World, words string) bool {
	return slices.ContainsFunc(w.Events, func(e string) bool { return strings.Contains(e, words) })
}

func TestOnlyWhatIsNeededIsLeft(t *testing.T) {
	testutil.Unraced(t)
	rapid.Check(t, func(t *rapid.T) {
		large := busy.Make(simtest.Drawn(t))
		first := large.VMs[0].Name
		large.Events = slices.Insert(large.Events, len(large.Events)/2, "7m migrate "+first)
		before := large.String()
		tries := 0
		small := simtest.ShrinkWorld(large, func(w *simtest.World) bool {
			tries++
			return valid(w) && len(w.Hosts) >= 2 && has(w, " drain ") && has(w, "migrate "+first)
		})
		if large.String() != before {
			t.Fatal("the world itself is changed")
		}
		if n := small.Commands(); n != 5 { // two hosts, a VM, a drain and a migration
			t.Fatalf("%d commands after %d tries:\n%s\nof\n%s", n, tries, small, before)
		}
		for _, e := range small.Events {
			if !strings.HasPrefix(e, "0s ") {
				t.Errorf("%q could be at the beginning", e)
			}
		}
	})
}

func TestWhatDependsOnEverythingIsLeftAsItIs(t *testing.T) {
	testutil.Unraced(t)
	rapid.Check(t, func(t *rapid.T) {
		large := busy.Make(simtest.Drawn(t))
		small := simtest.ShrinkWorld(large, func(w *simtest.World) bool {
			return reflect.DeepEqual(w, large)
		})
		if diff := cmp.Diff(large.String(), small.String()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// Times, lasting faults and sizes become plain; a VM that must be large stays large.
func TestWhatIsLeftIsPlain(t *testing.T) {
	large, err := simtest.Parse("large", []byte(`
seed: 77
hosts:
- {name: n1, memory: 48GiB, cpus: 64, link: 1Gbit/s, cpuModels: [Haswell]}
- {name: n2, memory: 40GiB, cpus: 64, link: 10Gbit/s, cpuModels: [Haswell]}
vms:
- {name: v1, host: n1, memory: 6GiB, dirty: 2GiB/s, workingSet: 768MiB}
- {name: v2, host: n2, memory: 3GiB, class: busy, labels: {tier: db}}
limits: {perCluster: 3, perSource: 2}
mode: FreeSpots
config: {allowPostCopy: true, maxDowntimeMs: 5000}
events:
- when v1=Running cut n1 n2 for=20m
- 400s drain n1
- 17s break n2 how=Hang op=Migrate times=3 delay=5m
`))
	if err != nil {
		t.Fatal(err)
	}
	small := simtest.ShrinkWorld(large, func(w *simtest.World) bool {
		large := slices.ContainsFunc(w.VMs, func(v inventory.VMSpec) bool {
			return v.Memory == "6GiB"
		})
		return valid(w) && large && has(w, "break n2") && has(w, "cut n1") && has(w, "for=") &&
			w.Config.AllowPostCopy != nil
	})
	want := `seed: 1
hosts:
- {name: n1, memory: 64GiB, cpus: 64, link: 10Gbit/s}
- {name: n2, memory: 64GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v1, host: n1, memory: 6GiB}
config: {allowPostCopy: true}
events:
- 0s cut n1 n2 for=1s
- 0s break n2 how=Hang
`
	if diff := cmp.Diff(want, small.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
