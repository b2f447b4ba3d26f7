package placement_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func TestCheckIsEmptyExactlyWhenTheVMFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, host, o := drawVM(t), drawHost(t, "n1"), drawOptions(t)
		why := placement.Check(vm, &host, o)
		if fits := placement.Fits(vm, &host, o); fits != (len(why) == 0) {
			t.Fatalf("Fits = %v, Check = %v", fits, why)
		}
	})
}

func TestEveryReasonSaysWhatItNeedsAndWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, host, o := drawVM(t), drawHost(t, "n1"), drawOptions(t)
		why := placement.Check(vm, &host, o)
		seen := map[string]bool{}
		for _, r := range why {
			if r.Check == "" || r.Need == "" || r.Have == "" || seen[r.Check] {
				t.Fatalf("incomplete or repeated reason %+v in %v", r, why)
			}
			seen[r.Check] = true
		}
		if diff := cmp.Diff(why, placement.Check(vm, &host, o)); diff != "" {
			t.Fatalf("asked again, the answer differs (-first +second):\n%s", diff)
		}
	})
}

var causes = []string{"down", "cordon", "source", "avoided", "inbound", "memory", "cpus",
	"selector", "taints", "affinity", "apart"}

// repair takes away the cause of one check's refusal, and nothing else.
func repair(check string, vm *placement.VM, host *placement.Host, o *placement.Options) {
	switch check {
	case "down":
		host.Down = false
	case "cordon":
		host.Cordoned = false
	case "source":
		o.Source = ""
	case "avoided":
		o.Avoid = nil
	case "inbound":
		host.Incoming = 0
	case "memory":
		host.Memory += hypervisor.TiB
	case "cpus":
		host.CPUs += 100
	case "selector":
		vm.Constraints.Selector = nil
	case "taints":
		host.Taints = nil
	case "affinity":
		vm.Constraints.Affinity = nil
	case "apart":
		host.Groups = nil
	}
}

// TestAReasonLivesAndDiesWithItsCause repairs a host and a VM one cause at a
// time: exactly the reason of that cause must go, and the others must stay.
func TestAReasonLivesAndDiesWithItsCause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, host, o := drawVM(t), drawHost(t, "n1"), drawOptions(t)
		why := placement.CheckAll(placement.Basic(), vm, &host, o)
		for _, check := range rapid.Permutation(causes).Draw(t, "order") {
			repair(check, vm, &host, &o)
			why = slices.DeleteFunc(why, func(r placement.Reason) bool { return r.Check == check })
			got := placement.CheckAll(placement.Basic(), vm, &host, o)
			if diff := cmp.Diff(why, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after the repair of %s (-want +got):\n%s", check, diff)
			}
		}
		if !placement.FitsAll(placement.Basic(), vm, &host, o) {
			t.Fatalf("all repaired, still refused: %v", why)
		}
	})
}

func TestALargerHostNeverLacksWhatASmallerHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, small := drawVM(t), drawHost(t, "n1")
		large := small
		large.Memory += hypervisor.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "more memory"))
		large.CPUs += rapid.IntRange(0, 64).Draw(t, "more CPUs")
		smaller := map[string]bool{}
		for _, r := range placement.Check(vm, &small, placement.Options{}) {
			smaller[r.Check] = true
		}
		for _, r := range placement.Check(vm, &large, placement.Options{}) {
			if !smaller[r.Check] {
				t.Fatalf("the larger host refuses for %v, the smaller does not", r)
			}
		}
	})
}

func TestWhoToleratesEverythingIsNeverRepelled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, host := drawVM(t), drawHost(t, "n1")
		host.Taints = rapid.SliceOfN(rapid.Custom(drawTaint), 0, 4).Draw(t, "taints")
		everything := placement.Toleration{Exists: true}
		vm.Constraints.Tolerations = append(vm.Constraints.Tolerations, everything)
		for _, r := range placement.Check(vm, &host, placement.Options{}) {
			if r.Check == "taints" {
				t.Fatalf("repelled: %v", r)
			}
		}
	})
}

func TestMoreTolerationsNeverRefuseMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, host, o := drawVM(t), drawHost(t, "n1"), drawOptions(t)
		before := placement.Fits(vm, &host, o)
		c := &vm.Constraints
		c.Tolerations = append(c.Tolerations, drawToleration(t))
		if before && !placement.Fits(vm, &host, o) {
			t.Fatal("one more toleration, and the host refuses")
		}
	})
}

// TestOppositeOperators: In and NotIn are opposites, and so are Exists and
// DoesNotExist. Of Gt and Lt at most one holds.
func TestOppositeOperators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels, r := drawLabels(t, 3), drawRequirement(t)
		holds := func(op placement.Operator, values ...string) bool {
			r := req(r.Key, op, values...)
			return r.Holds(labels)
		}
		if n := len(r.Values); n > 0 &&
			holds(placement.In, r.Values...) == holds(placement.NotIn, r.Values...) {
			t.Fatalf("In and NotIn agree on %v for %v", r, labels)
		}
		if holds(placement.Exists) == holds(placement.DoesNotExist) {
			t.Fatalf("Exists and DoesNotExist agree on %q for %v", r.Key, labels)
		}
		if holds(placement.Gt, r.Values...) && holds(placement.Lt, r.Values...) {
			t.Fatalf("both more and less: %v for %v", r, labels)
		}
	})
}
