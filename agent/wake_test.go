package agent_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
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
	size := func(gibs hypervisor.Bytes) *store.Size { return &store.Size{Memory: gibs * gib} }
	s := newHarness(t, store.NewMemory())
	for id, how := range map[hypervisor.VMID]func(*store.VM){
		"well":     func(v *store.VM) { v.Size = size(1) },
		"claimed":  func(v *store.VM) { v.ActiveMigration = "claimed#1" },
		"larger":   func(v *store.VM) { v.Size = size(2) },
		"no-size":  func(*store.VM) {},
		"restless": func(v *store.VM) { v.Size, v.Reboots = size(1), 1 },
		"trouble":  func(v *store.VM) { v.Size, v.Trouble = size(1), "it was full" },
		"unlike":   func(v *store.VM) { v.Size, v.VM.Memory = size(3), 3*gib },
	} {
		v := &store.VM{VM: hypervisor.VM{ID: id, Memory: gib}, Host: "n1"}
		s.ok(s.boot(v.VM))
		how(v)
		s.put(v)
	}
	s.changeVM(func(v *store.VM) { v.Size = store.SizeOf(v.VM) })
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
	if want := []hypervisor.VMID{"well", vm}; !slices.Equal(a.about, want) {
		t.Errorf("then it asked about %q, want %q", a.about, want)
	}
}

// What convergence asks for is stored before it is asked for, once. An agent that dies then
// asks once more.
func TestWhatWasAcceptedIsAskedForAgainByTheNextAgent(t *testing.T) {
	store := &counting{Memory: store.NewMemory()}
	s := newHarness(t, store)
	limits := 0
	policy := func(_ convergence.Config, s convergence.State, p hypervisor.Progress,
		_ time.Time) (convergence.State, convergence.Decision) {
		if s.Limit.Set || p.Status == hypervisor.JobSetup {
			return s, convergence.Decision{}
		}
		limits++
		return s, convergence.Decision{Action: convergence.SetDowntime, Limit: 50 * ms,
			Why: convergence.Tuning}
	}
	begin := func() {
		s.agents["n1"] = agent.New("n1", agent.Config{Converge: policy}, s.Host("n1"), store, s)
	}
	begin()
	s.sending()
	s.AdvanceTo(s.Now().Add(time.Second))
	for _, want := range []int{1, 2} { // the second by another agent
		written := store.writes
		s.reconciles("n1")
		s.reconciles("n1")
		if n := store.writes - written; n != 1 || limits != want {
			t.Errorf("%d writings, and the limit was set %d times, want 1 and %d", n, limits,
				want)
		}
		begin()
	}
}

// A sender remembers what it was asked to send, and how often to adjust it.
type sender struct {
	*machine
	sent     []hypervisor.TransferOptions
	adjusted int
}

// Migrate implements hypervisor.Hypervisor.
func (h *sender) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	h.sent = append(h.sent, out.Options)
	return h.machine.Migrate(ctx, out)
}

// Adjust implements hypervisor.Hypervisor.
func (h *sender) Adjust(ctx context.Context, job hypervisor.JobID,
	a hypervisor.Adjustment) error {
	h.adjusted++
	return h.machine.Adjust(ctx, job, a)
}

// The limit that convergence begins with goes along with the transfer: nothing is adjusted
// or written once it has begun. What else a policy decides before, it decides again when
// there is a transfer, and so it is when another agent takes over.
func TestTheFirstLimitGoesAlongWithTheTransfer(t *testing.T) {
	asks := func(first convergence.Decision) convergence.Policy {
		return func(_ convergence.Config, s convergence.State, _ hypervisor.Progress,
			_ time.Time) (convergence.State, convergence.Decision) {
			if s.Limit.Set {
				return s, convergence.Decision{}
			}
			return s, first
		}
	}
	limit := convergence.Decision{Action: convergence.SetDowntime, Limit: 50 * ms,
		Why: convergence.Tuning}
	none := limit
	none.Limit = -1
	for _, r := range []struct {
		name                      string
		policy                    convergence.Policy
		downtime                  time.Duration
		adjusted, writings, again int
	}{
		{"godwit's own way", nil, 150 * ms, 0, 0, 1},
		{"a limit of one's own", asks(limit), 50 * ms, 0, 0, 1},
		{"a limit that is none", asks(none), 0, 1, 1, 1},
		{"giving up", asks(convergence.Decision{Action: convergence.Abort}), 0, 1, 1, 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			store := &counting{Memory: store.NewMemory()}
			s := newHarness(t, store)
			h := &sender{machine: s.Host("n1")}
			begin := func() {
				s.agents["n1"] = agent.New("n1", agent.Config{Converge: r.policy}, h, store, s)
			}
			look := func() {
				s.AdvanceTo(s.Now().Add(50 * ms))
				_, _ = s.agents["n1"].Reconcile(ctx, s.Now()) // it may be refused
			}
			begin()
			s.sending()
			if len(h.sent) != 1 || h.sent[0].Downtime != r.downtime {
				t.Fatalf("it was sent with %+v, want a limit of %v", h.sent, r.downtime)
			}
			written := store.writes
			s.agents["n1"].Hint(vm)
			look()
			if n := store.writes - written; n != r.writings || h.adjusted != r.adjusted {
				t.Errorf("%d writings and %d adjustments, want %d and %d", n, h.adjusted,
					r.writings, r.adjusted)
			}
			begin()
			h.adjusted = 0
			if look(); h.adjusted != r.again {
				t.Errorf("the next agent adjusted %d times, want %d", h.adjusted, r.again)
			}
		})
	}
}

// A hint is worth a look when it is about a VM that is at home here, or on its way from or to
// here; before an agent has looked for the first time, every hint is.
func TestAHintIsAboutWhatIsHere(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	source, target := s.agents["n1"], s.agents["n2"]
	heard := func(when string, atSource, atTarget bool) {
		t.Helper()
		if a, b := source.Hint(vm), target.Hint(vm); a != atSource || b != atTarget {
			t.Errorf("%s: %v at the source and %v at the target, want %v and %v", when, a, b,
				atSource, atTarget)
		}
	}
	heard("at first", true, true)
	s.reconciles("n1")
	s.reconciles("n2")
	heard("at home", true, false)
	s.sending()
	heard("on its way", true, true)
	s.until("n2", hypervisor.Running)
	s.reconciles("n2")
	s.change(func(m *store.Migration) {
		m.State.Phase, m.State.Released, m.Source.HandedOver = migration.Succeeded, true, true
	})
	s.changeVM(func(v *store.VM) { v.Host, v.ActiveMigration = "n2", "" })
	heard("when it has arrived", true, true)
	s.reconciles("n1")
	s.reconciles("n2")
	heard("when it has left", false, true)
	s.changeVM(func(v *store.VM) { v.Host = "n3" })
	s.reconciles("n2")
	heard("when it has gone on", false, false)
}

// A transfer is looked at again when convergence wants to, or a pass ends: not more often
// than Poll, and not after more than ten seconds. Who gives no hints has it looked at every
// Poll: nothing else tells its end. So has a hint: its end may be near.
func TestACalmTransferIsLookedAtLessOften(t *testing.T) {
	for _, r := range []struct {
		calm   time.Duration
		hinted bool
		want   time.Duration
	}{
		{0, true, time.Second}, {500 * ms, true, time.Second},
		{4 * time.Second, true, 4 * time.Second}, {time.Hour, true, 10 * time.Second},
		{4 * time.Second, false, time.Second},
	} {
		s := newHarness(t, store.NewMemory())
		s.sending()
		s.AdvanceTo(s.Now().Add(50 * ms))
		brain := agent.New("n1", agent.Config{Converge: func(_ convergence.Config,
			c convergence.State, p hypervisor.Progress, now time.Time) (convergence.State,
			convergence.Decision) {
			c.Started, c.Calm = p.Started, now.Add(r.calm).Sub(p.Started)
			return c, convergence.Decision{}
		}}, s.Host("n1"), s.store, s)
		look := func(when string, want time.Duration) {
			wake, err := brain.Reconcile(ctx, s.Now())
			if s.ok(err); wake.Sub(s.Now()) != want {
				t.Errorf("calm for %v, hinted %v, %s: it looks again after %v, want %v", r.calm,
					r.hinted, when, wake.Sub(s.Now()), want)
			}
		}
		look("before any hint", time.Second)
		if r.hinted {
			brain.Hint(vm)
			look("after a hint", time.Second)
		}
		s.AdvanceTo(s.Now().Add(time.Second))
		look("a second later", r.want)
	}
}
