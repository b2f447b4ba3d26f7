package plan_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

func TestBadQuestions(t *testing.T) {
	down := fleet([]int{1}, nil, nil)
	down.Hosts[0].Down = true
	all := fleet(nil)
	all.Hosts[0].Down = true
	tests := []struct {
		q    plan.FailoverQuestion
		want string
	}{
		{plan.FailoverQuestion{Fleet: &plan.Fleet{}, Failures: 1}, "no hosts"},
		{plan.FailoverQuestion{Fleet: all, Failures: 1}, "no host is up, of 1: nothing can fail"},
		{plan.FailoverQuestion{Fleet: down, Failures: 2}, "has 2 hosts up; ask for fewer"},
		{plan.FailoverQuestion{Fleet: down}, "0 failures make no question"},
		{plan.FailoverQuestion{Fleet: down, Failures: 3, Domain: "rack"}, `values of the label "rack"`},
	}
	for _, tt := range tests {
		if err := tt.q.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// TestAnswers: the ways in which a fleet survives, or does not.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name         string
		f            *plan.Fleet
		k            int
		verdict      plan.FailoverOutcome
		lower, upper int
		proof        plan.Proof
		why          plan.Why
	}{
		{"any placement does", fleet([]int{2, 2}, []int{2, 2}, []int{2, 2}), 1,
			plan.Yes, 1, 1, plan.AnyPlacement, ""},
		{"a careless placement does not", fleet([]int{6, 3}, []int{4}, []int{6}), 1,
			plan.Yes, 1, 1, plan.SomePlacement, ""},
		{"a VM is too large for all that is free", fleet([]int{7}, []int{4}, []int{4}), 1,
			plan.No, 0, 0, "", plan.NoHost},
		{"each fits, all do not", fleet([]int{4, 4, 1}, []int{6}, []int{7}), 1,
			plan.No, 0, 0, "", plan.TooLittleFree},
		{"the sum fits, the pieces do not", fleet([]int{3, 3, 3}, []int{5}, []int{5}), 1,
			plan.No, 0, 0, "", plan.TooLittleFree},
		{"one failure is survived, two are not", fleet([]int{5}, []int{5}, []int{5}), 2,
			plan.No, 1, 1, "", plan.TooLittleFree},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := plan.Failover(plan.FailoverQuestion{Fleet: tt.f, Failures: tt.k})
			if a.Verdict != tt.verdict || a.Lower != tt.lower || a.Upper != tt.upper ||
				a.Proof != tt.proof {
				t.Errorf("%+v", a)
			}
			if c := a.Counterexample; tt.why != "" && (c == nil || c.Why != tt.why) {
				t.Errorf("counterexample %+v, want that %s", c, tt.why)
			} else if c != nil && c.Verify(tt.f) != nil {
				t.Error(c.Verify(tt.f))
			}
		})
	}
}

// TestOneVMTakesTheRoomOfSeveral: the only host with CPUs for a1 has memory for three like
// it, but for none once a0 is there.
func TestOneVMTakesTheRoomOfSeveral(t *testing.T) {
	f := fleet([]int{3, 1}, nil, nil, nil, nil)
	f.VMs[1].CPUs, f.Hosts[0].UsedCPUs = 2, 3
	for h, cpus := range []int{1: 1, 2: 1, 3: 1, 4: 4} {
		if h > 0 {
			f.Hosts[h].Memory, f.Hosts[h].CPUs = 3*gib, cpus
		}
	}
	a := plan.Failover(plan.FailoverQuestion{Fleet: f, Failures: 1})
	if a.Verdict != plan.Yes || a.Proof != plan.SomePlacement {
		t.Errorf("%+v", a)
	}
}

// TestTheOrderMatters: after a fails its two VMs go to one host, and then e's three find no
// room; or to two, and then b's two do not. If both failures were known there would be.
func TestTheOrderMatters(t *testing.T) {
	f := fleet([]int{3, 3}, []int{8, 8}, nil, nil, []int{6, 6, 6}, nil)
	for h, memory := range map[int]hypervisor.Bytes{0: 20, 1: 16, 4: 18} {
		f.Hosts[h].Memory = memory * gib
	}
	q := plan.FailoverQuestion{Fleet: f, Failures: 2}
	a := plan.Failover(q)
	if a.Lower != 1 || a.Upper != 1 || a.Counterexample == nil ||
		a.Counterexample.Why != plan.Sequence {
		t.Errorf("%+v %+v", a, a.Counterexample)
	}
	f.Hosts[2].Memory = 11 * gib // now 3 and 8 fit
	if a := plan.Failover(q); a.Verdict != plan.Yes || a.Proof != plan.SomePlacement {
		t.Errorf("with more room: %+v", a)
	}
}

// TestTooLittleEffort: when the search is given up the answer says between what it is.
func TestTooLittleEffort(t *testing.T) {
	f := fleet([]int{6, 3}, []int{4}, []int{6})
	a := plan.Failover(plan.FailoverQuestion{Fleet: f, Failures: 1, Effort: 4})
	if a.Verdict != plan.Open || a.Lower != 0 || a.Upper != 1 || a.Counterexample != nil {
		t.Errorf("%+v", a)
	}
}

// TestLittleEffortIsNotTakenForNone, which would be the default: of too little, a tenth is less
// than one.
func TestLittleEffortIsNotTakenForNone(t *testing.T) {
	f := fleet([]int{2, 2, 2}, []int{3, 2}, []int{3, 3})
	shape := plan.Flavor{Memory: gib, CPUs: 1}
	a := plan.Admit(plan.FailoverQuestion{Fleet: f, Failures: 1, Effort: 9}, shape)
	if b := plan.Admit(plan.FailoverQuestion{Fleet: f, Failures: 1}, shape); a.AtLeast != 0 ||
		b.AtLeast != 3 {
		t.Errorf("%+v with hardly any effort, %+v with more", a, b)
	}
}

// TestNewcomersAreNotCountedForEver: a host with a billion CPUs takes more than can be tried.
func TestNewcomersAreNotCountedForEver(t *testing.T) {
	f := fleet([]int{1}, []int{1})
	for i := range f.Hosts {
		f.Hosts[i].Memory, f.Hosts[i].CPUs = 1<<50, 1<<30
	}
	a := plan.Admit(plan.FailoverQuestion{Fleet: f, Failures: 1}, plan.Flavor{Memory: 1, CPUs: 1})
	if a.AtLeast < 100_000 || a.AtMost < 1<<29 {
		t.Errorf("%+v", a)
	}
}

// TestFalseCounterexamplesAreNoticed: Verify believes nothing.
func TestFalseCounterexamplesAreNoticed(t *testing.T) {
	f := fleet([]int{4, 4, 1}, []int{6}, []int{7})
	a := plan.Failover(plan.FailoverQuestion{Fleet: f, Failures: 1})
	for name, spoil := range map[string]func(*plan.Counterexample){
		"a VM elsewhere":     func(c *plan.Counterexample) { c.VMs[0] = "b0" },
		"an unknown VM":      func(c *plan.Counterexample) { c.VMs[0] = "x" },
		"fewer VMs":          func(c *plan.Counterexample) { c.VMs = c.VMs[:1] },
		"another resource":   func(c *plan.Counterexample) { c.Resource = "cpus" },
		"larger pieces":      func(c *plan.Counterexample) { c.Unit = int64(5 * gib) },
		"a host takes it":    func(c *plan.Counterexample) { c.Why = plan.NoHost },
		"a host less failed": func(c *plan.Counterexample) { c.Failed = nil },
	} {
		c := *a.Counterexample
		c.VMs = append([]hypervisor.VMID{}, c.VMs...)
		if err := c.Verify(f); err != nil {
			t.Fatal(err)
		}
		if spoil(&c); c.Verify(f) == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// TestAdmissionIsTrue: so many VMs can be placed that the fleet survives with them, and
// no placement of more than the bound does.
func TestAdmissionIsTrue(t *testing.T) {
	exact := 0
	rapid.Check(t, func(t *rapid.T) {
		q := plan.FailoverQuestion{Fleet: surviveDrawFleet(t), Failures: 1}
		s := plan.Flavor{Memory: hypervisor.Bytes(rapid.IntRange(1, 3).Draw(t, "size")) * gib,
			CPUs: rapid.IntRange(1, 3).Draw(t, "vCPUs")}
		if q.Validate() != nil || len(q.Fleet.Hosts) > 3 {
			return
		}
		a := plan.Admit(q, s)
		if a.AtLeast > a.AtMost {
			t.Fatalf("%+v", a)
		}
		if a.AtLeast == a.AtMost {
			exact++
		}
		if !admits(q, s, a.AtLeast) && brute(q) {
			t.Fatalf("%d more do not survive", a.AtLeast)
		}
		if a.AtMost < 3 && admits(q, s, a.AtMost+1) {
			t.Fatalf("%d more survive, %+v", a.AtMost+1, a)
		}
	})
	t.Logf("%d exact", exact)
}

// admits tries every placement of n more VMs.
func admits(q plan.FailoverQuestion, s plan.Flavor, n int) bool {
	if n == 0 {
		return brute(q)
	}
	id := hypervisor.VMID("w" + string(rune('0'+n)))
	vm := placement.VM{ID: id, Memory: s.Memory, CPUs: s.CPUs}
	for h := range q.Fleet.Hosts {
		if !placement.FitsAll(q.Fleet.Rules(), &vm, &q.Fleet.Hosts[h], placement.Options{}) {
			continue
		}
		f := *q.Fleet
		f.Hosts = append([]placement.Host{}, f.Hosts...)
		f.Hosts[h], _ = f.Hosts[h].With(&vm)
		f.Hosts[h].Incoming = 0
		f.VMs = append(append([]plan.VM{}, f.VMs...), plan.VM{VM: vm, Home: f.Hosts[h].Name})
		if admits(plan.FailoverQuestion{Fleet: &f, Failures: q.Failures}, s, n-1) {
			return true
		}
	}
	return false
}

// TestStranded: what is left over when hosts are filled.
func TestStranded(t *testing.T) {
	f := fleet([]int{4}, []int{8}, []int{1, 1})
	f.Hosts[2].CPUs = 3
	f.Hosts = append(f.Hosts, placement.Host{Name: "d", Memory: 10 * gib, CPUs: 9, Cordoned: true})
	got := plan.Strand(f, plan.Flavor{Memory: 3 * gib, CPUs: 1})
	want := plan.Stranded{Flavor: plan.Flavor{Memory: 3 * gib, CPUs: 1}, Fit: 3,
		FreeMemory: 16 * gib, FreeCPUs: 199, Memory: 7 * gib, CPUs: 196, ByMemory: 2, ByCPUs: 1}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if s := plan.Flavors(f, 2); len(s) != 2 || s[0].VMs != 2 || s[0].Memory != gib {
		t.Errorf("shapes %+v", s)
	}
}
