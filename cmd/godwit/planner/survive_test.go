package planner

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/plan/survive"
)

func TestWhatIsNeededAndWhatIsFreeAreToldApart(t *testing.T) {
	const gib = int64(hypervisor.GiB)
	var out strings.Builder
	counterexample(&out, &survive.Counterexample{Failed: []hypervisor.HostName{"n1"},
		VMs: []hypervisor.VMID{"default/web"}, Why: survive.Short, Resource: "memory",
		Need: gib * 124 / 100, Have: gib * 121 / 100})
	if want := "they need 1.23GiB, and 1.20GiB is free"; !strings.Contains(out.String(), want) {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
}
