package whatif_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/internal/whatif"
)

// within forecasts a drain with a deadline; without one if it is 0.
func within(t *testing.T, fleet string, host hypervisor.HostName, d time.Duration) *whatif.Forecast {
	t.Helper()
	q := whatif.Question{Hosts: []hypervisor.HostName{host}}
	if d > 0 {
		q.Goal = &whatif.Goal{Within: d, Confidence: 0.9, Samples: 4}
	}
	f, err := whatif.Ask(context.Background(), parse(t, fleet), q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The judge is the fleet in which the bystander is elsewhere from the beginning: w has to make room for v.
func TestABystanderMovedBeforehandMeetsADeadline(t *testing.T) {
	const fleet = `
hosts: [{name: a, memory: 64GiB, cpus: 32}, {name: b, memory: 16GiB, cpus: 32}, {name: c, memory: 10GiB, cpus: 32}]
vms: [{name: v, host: a, memory: 12GiB, class: idle}, {name: w, host: b, memory: 8GiB, class: idle}]
`
	moved := strings.Replace(fleet, "w, host: b", "w, host: c", 1)
	late, soon := within(t, fleet, "a", 0), within(t, moved, "a", 0)
	if late.Moves != 2 || soon.Moves != 1 {
		t.Fatalf("%d and %d moves", late.Moves, soon.Moves)
	}
	half := time.Duration((*late.EmptySeconds + *soon.EmptySeconds) / 2 * float64(time.Second))
	d := within(t, fleet, "a", half).Deadline
	if d.Met || len(d.Remedies) == 0 {
		t.Fatalf("%+v", d)
	}
	r := d.Remedies[0]
	if r.Option != "moveBefore" || !slices.Equal(r.VMs, []hypervisor.VMID{"default/w"}) || r.Trial.InTime != 4 ||
		math.Abs(*r.Trial.EmptySeconds-*soon.EmptySeconds) > 0.1 || r.BeforeSeconds <= 0 ||
		math.Abs(r.BeforeSeconds+*soon.EmptySeconds-*late.EmptySeconds) > 2 {
		t.Errorf("%+v, want empty after %v s, and %v s before", r, *soon.EmptySeconds, *late.EmptySeconds)
	}
	if d := within(t, moved, "a", half).Deadline; !d.Met || len(d.Remedies) > 0 {
		t.Errorf("remedies where none is needed: %+v", d)
	}
}

// The judge are the remedies of the VM itself, which does not converge: those that are fast enough.
func TestWhatLetsAVMConvergeMeetsADeadline(t *testing.T) {
	testutil.Unraced(t)
	const fleet = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 32, link: 1Gbit/s}]
vms: [{name: fast, host: n1, memory: 4GiB, dirty: 200MiB/s, workingSet: 2GiB}]
`
	f := within(t, fleet, "n1", 10*time.Minute)
	var want, got []string
	for _, r := range f.Waves[0][0].Remedies {
		if r.Seconds < 600 {
			want = append(want, r.Option)
		}
	}
	for _, r := range f.Deadline.Remedies {
		got = append(got, r.Option)
	}
	if f.Deadline.Met || len(want) < 2 || !slices.Equal(got, want) {
		t.Errorf("%q, want %q: %+v", got, want, f.Deadline)
	}
}

// By hand: each of two VMs of 60 GiB takes 52 s on the wire at 10 Gbit/s, which they share. One of them has to be
// restarted, the larger one, and no limit helps.
func TestTheFewestVMsAreShutDownForADeadline(t *testing.T) {
	const fleet = `
hosts: [{name: "n[1-3]", memory: 256GiB, cpus: 64, link: 10Gbit/s}]
vms:
- {name: large, host: n1, memory: 61GiB, dirty: 1MiB/s, workingSet: 1GiB}
- {name: other, host: n1, memory: 60GiB, dirty: 1MiB/s, workingSet: 1GiB}
- {name: small, host: n1, memory: 1GiB, class: idle}
`
	d := within(t, fleet, "n1", 80*time.Second).Deadline
	if d.Met || len(d.Remedies) != 1 {
		t.Fatalf("%+v", d)
	}
	if r := d.Remedies[0]; r.Option != "restart" || !slices.Equal(r.VMs, []hypervisor.VMID{"default/large"}) || r.Risk == "" ||
		*r.Trial.EmptySeconds < 50 || *r.Trial.EmptySeconds > 80 {
		t.Errorf("%+v", r)
	}
}
