package agent_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/record"
)

// An asking hypervisor remembers about which VMs it was asked.
type asking struct {
	*machine
	about []hypervisor.VMID
}

// Domain implements hypervisor.Hypervisor.
func (a *asking) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	a.about = append(a.about, id)
	return a.machine.Domain(ctx, id)
}

// An agent that starts lists its VMs, and asks about those one by one of which there may be
// something to tell, hints or not. A VM that a migration has claimed it leaves alone.
func TestAnAgentThatStartsAsksOnlyAboutWhatIsNotAsItShallBe(t *testing.T) {
	size := func(gibs hypervisor.Bytes) *record.Size { return &record.Size{Memory: gibs * gib} }
	s := newStage(t, record.NewMemory())
	for id, how := range map[hypervisor.VMID]func(*record.VM){
		"well":     func(v *record.VM) { v.Size = size(1) },
		"claimed":  func(v *record.VM) { v.Claim = "claimed#1" },
		"larger":   func(v *record.VM) { v.Size = size(2) },
		"no-size":  func(*record.VM) {},
		"restless": func(v *record.VM) { v.Size, v.Reboots = size(1), 1 },
		"trouble":  func(v *record.VM) { v.Size, v.Trouble = size(1), "it was full" },
		"unlike":   func(v *record.VM) { v.Size, v.VM.Memory = size(3), 3*gib },
	} {
		v := &record.VM{VM: hypervisor.VM{ID: id, Memory: gib}, Host: "n1"}
		s.ok(s.boot(v.VM))
		how(v)
		s.put(v)
	}
	s.changeVM(func(v *record.VM) { v.Size = record.SizeOf(v.VM) })
	a := &asking{machine: s.Host("n1")}
	brain := agent.New("n1", agent.Config{}, a, s.store, s)
	brain.Hint("well")
	_, err := brain.Reconcile(ctx, s.Now())
	s.ok(err)
	want := []hypervisor.VMID{"larger", "no-size", "restless", "trouble", "unlike"}
	if !slices.Equal(a.about, want) {
		t.Errorf("it asked about %q, want %q", a.about, want)
	}

	a.about = nil // from now on a hint, or news, is a reason to ask; a claim is none
	v := *s.vm()
	v.Labels = map[string]string{"tier": "gold"}
	s.put(&v)
	brain.Hint("well")
	brain.Hint("claimed")
	_, err = brain.Reconcile(ctx, s.Now())
	s.ok(err)
	if want := []hypervisor.VMID{vm, "well"}; !slices.Equal(a.about, want) {
		t.Errorf("then it asked about %q, want %q", a.about, want)
	}
}

// What convergence asks for is stored before it is asked for, once. An agent that dies then
// asks once more.
func TestWhatWasAcceptedIsAskedForAgainByTheNextAgent(t *testing.T) {
	store := &counting{Memory: record.NewMemory()}
	s := newStage(t, store)
	limits := 0
	policy := func(_ convergence.Config, s convergence.State, _ hypervisor.Progress,
		_ time.Time) (convergence.State, convergence.Verdict) {
		if s.Limit.Set {
			return s, convergence.Verdict{}
		}
		limits++
		return s, convergence.Verdict{Action: convergence.SetDowntime, Limit: 50 * ms,
			Why: convergence.Tuning}
	}
	begin := func() {
		s.cast["n1"] = agent.New("n1", agent.Config{Converge: policy}, s.Host("n1"), store, s)
	}
	begin()
	s.sending()
	s.AdvanceTo(s.Now().Add(time.Second))
	for _, want := range []int{1, 2} { // the second by another agent
		written := store.writes
		s.acts("n1")
		s.acts("n1")
		if n := store.writes - written; n != 1 || limits != want {
			t.Errorf("%d writings, and the limit was set %d times, want 1 and %d", n, limits,
				want)
		}
		begin()
	}
}
