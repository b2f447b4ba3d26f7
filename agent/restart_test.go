package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A mortal is an agent's connection to the store: the agent dies with, or right
// after, its write number last, and reaches nothing any more.
type mortal struct {
	*store.Memory
	last  int // 0 is never
	late  bool
	mute  bool // it lives on, and has only not heard the answer
	count int
	dead  bool
}

var errDead = &store.StoreError{Op: "Put", Kind: store.Unavailable, Err: errors.New("dead")}

// Put implements store.Store.
func (m *mortal) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	m.count++
	dies := m.count == m.last
	m.dead = m.dead || dies && !m.mute
	if m.dead && !(dies && m.late) {
		return nil, errDead
	}
	stored, err := m.Memory.Put(ctx, r, while...)
	if dies && m.mute && err == nil {
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Unanswered}
	}
	if m.dead {
		return nil, errDead
	}
	return stored, err
}

// cut is a hypervisor that the dead do not reach.
type cut struct {
	*machine
	to *mortal
}

type machine = fake.Host

func (c cut) alive() error {
	if c.to.dead {
		return &hypervisor.Error{Op: "call", Kind: hypervisor.Transient}
	}
	return nil
}

// Receive implements hypervisor.Hypervisor.
func (c cut) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	if err := c.alive(); err != nil {
		return "", err
	}
	return c.machine.Receive(ctx, in)
}

// Migrate implements hypervisor.Hypervisor.
func (c cut) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.machine.Migrate(ctx, out)
}

// Do implements hypervisor.Hypervisor.
func (c cut) Do(ctx context.Context, id hypervisor.VMID, cmd hypervisor.Command) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.machine.Do(ctx, id, cmd)
}

// A troupe is a harness with a controller, and with one agent that is mortal.
type troupe struct {
	*harness
	boss   *controller.Controller
	memory *store.Memory
}

func newTroupe(t *testing.T, who name, line *mortal) *troupe {
	line.Memory = store.NewMemory()
	s := newHarness(t, line.Memory)
	p := &troupe{harness: s, memory: line.Memory}
	p.boss = controller.New(controller.Config{}, line.Memory, s)
	for _, n := range []name{"n1", "n2"} {
		s.put(&store.Host{Host: hypervisor.Host{Name: n, Memory: 64 * gib, CPUs: 64}})
	}
	s.agents[who] = agent.New(who, agent.Config{}, cut{s.Host(who), line}, s.as(who, line), s)
	s.put(&store.Migration{Spec: migration.Spec{ID: job, VM: vm, Created: epoch}})
	return p
}

// play lets every participant look ten times a second. An agent that has died starts
// again two seconds later and remembers nothing.
func (p *troupe) play(who name, line *mortal, d time.Duration) {
	p.t.Helper()
	back := time.Time{}
	for end := p.Now().Add(d); p.Now().Before(end); p.AdvanceTo(p.Now().Add(100 * ms)) {
		_, err := p.boss.Reconcile(ctx, p.Now())
		p.ok(err)
		for _, n := range []name{"n1", "n2"} {
			if n != who || !line.dead {
				_ = p.act(n) // the next look shows what became of it
			}
		}
		p.once()
		switch {
		case line.dead && back.IsZero():
			back = p.Now().Add(2 * time.Second)
		case line.dead && p.Now().After(back):
			line.dead = false
			p.agents[who] = agent.New(who, agent.Config{}, cut{p.Host(who), line}, p.as(who, line), p.harness)
		}
	}
}

// Every write of every agent is its last once, takes effect or not, or is not
// answered: the VM arrives, runs on one host, and leaves nothing behind.
func TestAnAgentMayDieAtEveryWrite(t *testing.T) {
	for _, who := range []name{"n1", "n2"} {
		calm := &mortal{}
		newTroupe(t, who, calm).play(who, calm, 30*time.Second)
		if calm.count < 2 {
			t.Fatalf("%s wrote %d times", who, calm.count)
		}
		for k := 1; k <= calm.count; k++ {
			for _, r := range []struct {
				name string
				line mortal
			}{
				{"dies before", mortal{last: k}},
				{"dies after", mortal{last: k, late: true}},
				{"hears no answer of", mortal{last: k, mute: true}},
			} {
				t.Run(fmt.Sprintf("%s %s write %d", who, r.name, k), func(t *testing.T) {
					line := &r.line
					p := newTroupe(t, who, line)
					p.play(who, line, 90*time.Second)
					p.wantState("n1", hypervisor.Absent)
					p.wantState("n2", hypervisor.Running)
					v := p.vm()
					if v.Host != "n2" || v.ActiveMigration != "" || v.Boots != 0 {
						t.Errorf("the VM's record: %+v; %q", v, p.noted)
					}
				})
			}
		}
	}
}

// The source starts to send, dies before it can say so, and its host loses power
// after the VM has left: that no start is remembered is no proof that there
// was none.
func TestAForgottenStartIsNoReasonToStartAnew(t *testing.T) {
	line := &mortal{last: 2} // Began takes effect, Started does not
	p := newTroupe(t, "n1", line)
	for p.state("n2") != hypervisor.Running {
		_, err := p.boss.Reconcile(ctx, p.Now())
		p.ok(err)
		if !line.dead {
			_ = p.act("n1")
		}
		if m := p.move(); m.Target.Address == "" {
			p.reconciles("n2")
		}
		p.AdvanceTo(p.Now().Add(100 * ms))
	}
	p.ok(p.CrashHost("n1"))
	p.ok(p.RestartHost("n1"))
	line.dead = false
	p.agents["n1"] = agent.New("n1", agent.Config{}, cut{p.Host("n1"), line}, p.as("n1", line), p.harness)
	for range 300 { // the target's agent is not heard
		_, err := p.boss.Reconcile(ctx, p.Now())
		p.ok(err)
		_ = p.act("n1")
		p.once()
		p.AdvanceTo(p.Now().Add(100 * ms))
	}
	p.play("n1", line, time.Minute)
	p.wantState("n2", hypervisor.Running)
	p.wantState("n1", hypervisor.Absent)
}
