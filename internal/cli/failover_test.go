package cli

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

func TestWhatIsNeededAndWhatIsFreeAreToldApart(t *testing.T) {
	const gib = int64(hypervisor.GiB)
	var out strings.Builder
	counterexample(&out, &plan.Counterexample{Failed: []hypervisor.HostName{"n1"},
		VMs: []hypervisor.VMID{"default/web"}, Why: plan.TooLittleFree, Resource: "memory",
		Need: gib * 124 / 100, Have: gib * 121 / 100})
	if want := "they need 1.23GiB, and 1.20GiB is free"; !strings.Contains(out.String(), want) {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
}

func TestARowOfAPlanMarksRetries(t *testing.T) {
	for _, test := range []struct {
		step whatif.Step
		want string
	}{
		{whatif.Step{Moves: true, Attempts: 1}, ""},
		{whatif.Step{Moves: true, Attempts: 2}, "takes 2 attempts"},
		{whatif.Step{Moves: true, Attempts: 1, Drawn: &whatif.MoveSummary{Runs: 4, Moved: 4}}, ""},
		{whatif.Step{Moves: true, Attempts: 1, Drawn: &whatif.MoveSummary{Runs: 4, Moved: 4,
			Retried: 1}}, "retried in 1 of 4 worlds"},
		{whatif.Step{Moves: true, Attempts: 1, Drawn: &whatif.MoveSummary{Runs: 4, Moved: 3,
			Retried: 2}}, "stays in 1 of 4 worlds; retried in 2 of 4 worlds"},
		{whatif.Step{Attempts: 50, Note: "will not converge", Drawn: &whatif.MoveSummary{Runs: 4,
			Retried: 4}}, "will not converge"}, // of course it is tried again
	} {
		var out strings.Builder
		row(&out, 1, &test.step, false)
		fields := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\t")
		got := fields[len(fields)-1]
		if test.want == "" && (strings.Contains(got, "attempt") || strings.Contains(got, "again")) ||
			test.want != "" && got != test.want {
			t.Errorf("%+v is %q, want %q", test.step, got, test.want)
		}
	}
}
