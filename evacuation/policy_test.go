package evacuation_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// failedFirst is a policy that lets go who has failed most, and asks for a link that is
// known.
type failedFirst struct{}

func (failedFirst) Compare(link hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	if link != 7 {
		panic("the host's link was lost")
	}
	return cmp.Compare(b.Failed, a.Failed)
}

func (failedFirst) Admit(hypervisor.Bandwidth, evacuation.EvacuatingVM, []evacuation.EvacuatingVM) bool {
	panic("a plan does not ask whether there is room on a link")
}

func TestAPolicyOrdersAmongEquallyUrgentOnes(t *testing.T) {
	host := evacuation.Host{Name: "n1", Link: 7, Taints: []placement.Taint{
		{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}}
	guest := func(id hypervisor.VMID, failed int, descheduled bool) evacuation.VM {
		return evacuation.VM{ID: id, Strategy: evacuation.LiveMigrate, Migratable: true,
			Instances: 1, Failed: failed, Descheduled: descheduled, EvacuateFrom: "n1"}
	}
	vms := []evacuation.VM{guest("x/less-urgent", 9, true), guest("x/b", 1, false),
		guest("x/a", 1, false), guest("x/often", 3, false), guest("x/never", 0, false)}
	want := []hypervisor.VMID{"x/often", "x/a", "x/b", "x/never", "x/less-urgent"}
	rapid.Check(t, func(t *rapid.T) {
		shuffled := rapid.Permutation(slices.Clone(vms)).Draw(t, "guests")
		d := evacuation.Plan(evacuation.Params{Policy: failedFirst{}}, host, shuffled,
			evacuation.Load{})
		var got []hypervisor.VMID
		for _, c := range d.Create {
			got = append(got, c.VM)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("the order (-want +got):\n%s", diff)
		}
	})
}

// An order alone lets go what the limits do; a limit alone plans as if there were no policy.
func TestAPolicyThatIsOneHalf(t *testing.T) {
	backwards := evacuation.OrderFunc(func(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
		return cmp.Compare(b.VM, a.VM)
	})
	if !backwards.Admit(1, evacuation.EvacuatingVM{}, make([]evacuation.EvacuatingVM, 9)) {
		t.Error("an order holds something back")
	}
	three := evacuation.LimitFunc(func(_ hypervisor.Bandwidth, _ evacuation.EvacuatingVM,
		others []evacuation.EvacuatingVM) bool {
		return len(others) < 3
	})
	if !three.Admit(1, evacuation.EvacuatingVM{}, make([]evacuation.EvacuatingVM, 2)) ||
		three.Admit(1, evacuation.EvacuatingVM{}, make([]evacuation.EvacuatingVM, 3)) {
		t.Error("the limit is not asked")
	}
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuestion(t)
		q.p.Order, q.p.Policy = evacuation.LargestFirst, nil
		want := q.plan()
		q.p.Policy = three
		if diff := gocmp.Diff(want, q.plan()); diff != "" {
			t.Fatalf("a limit changes the plan (-without +with):\n%s", diff)
		}
	})
}
