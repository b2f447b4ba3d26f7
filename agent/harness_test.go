package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

const (
	gib = hypervisor.GiB
	ms  = time.Millisecond
	job = hypervisor.JobID("a#1")
	vm  = hypervisor.VMID("a")
)

type name = hypervisor.HostName

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	aVM   = hypervisor.VM{ID: vm, Memory: 4 * gib, CPUs: 1}
)

// A harness is two hosts, the VM a that runs on n1, and what the store says. The
// test plays the controller: it writes the migration's record.
type harness struct {
	*fake.Network
	t     *testing.T
	store store.Store
	noted []string
	// decision is what the controller has decided about the target.
	decision *placement.Decision
	agents   map[name]*agent.Agent
}

// newHarness has hosts n1 and n2 with 64 GiB each. Every step of a transfer lasts
// long enough to be caught in the middle.
func newHarness(t *testing.T, records store.Store) *harness {
	return harnessWithAbilities(t, records, 0)
}

// harnessWithAbilities is newHarness for hosts with abilities.
func harnessWithAbilities(t *testing.T, records store.Store, abilities hypervisor.Abilities) *harness {
	s := &harness{t: t, store: records, agents: map[name]*agent.Agent{}}
	s.Network = fake.NewNetwork(epoch, fake.Model{SetUp: 100 * ms, SwitchOver: 100 * ms,
		Acknowledge: 100 * ms, BootTime: 10 * time.Second, ShutdownTime: time.Second})
	for _, n := range []name{"n1", "n2"} {
		h, err := s.AddHost(hypervisor.Host{Name: n, Memory: 64 * gib, CPUs: 64,
			Link: 10 * hypervisor.Gbit, Abilities: abilities})
		s.ok(err)
		s.agents[n] = agent.New(n, agent.Config{}, h, s.as(n, records), s)
	}
	s.ok(s.Host("n1").Boot(aVM, fake.Workload{}))
	s.put(&store.VM{VM: aVM, Host: "n1", Migratable: true})
	return s
}

// Note implements store.EventRecorder.
func (s *harness) Note(_ time.Time, _ name, _ hypervisor.VMID, what string) {
	s.noted = append(s.noted, what)
}

func (s *harness) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *harness) put(r store.Record) {
	s.t.Helper()
	_, err := s.store.Put(ctx, r)
	s.ok(err)
}

// begin stores the migration of a from n1 to n2 in a phase.
func (s *harness) begin(p migration.Phase, how ...func(*store.Migration)) {
	s.t.Helper()
	m := &store.Migration{Spec: migration.Spec{ID: job, VM: vm},
		State: migration.State{Phase: p, Source: "n1", Target: "n2"}}
	for _, h := range how {
		h(m)
	}
	s.put(m)
}

// change writes the migration's record as the controller does.
func (s *harness) change(how func(*store.Migration)) {
	s.t.Helper()
	next := *s.move()
	how(&next)
	s.put(&next)
}

func (s *harness) changeVM(how func(*store.VM)) {
	s.t.Helper()
	next := *s.vm()
	how(&next)
	s.put(&next)
}

func (s *harness) phase(p migration.Phase) {
	s.t.Helper()
	s.change(func(m *store.Migration) { m.State.Phase = p })
}

func (s *harness) move() *store.Migration {
	s.t.Helper()
	r, err := s.store.Get(ctx, store.Key{Kind: store.MigrationKind, Name: string(job)})
	s.ok(err)
	return r.(*store.Migration)
}

func (s *harness) vm() *store.VM {
	s.t.Helper()
	r, err := s.store.Get(ctx, store.Key{Kind: store.VMKind, Name: string(vm)})
	s.ok(err)
	v, _ := r.(*store.VM)
	return v
}

// act lets the agent of a host look, and answers its error.
func (s *harness) act(n name) error {
	s.t.Helper()
	s.agents[n].Hint(vm)
	wake, err := s.agents[n].Reconcile(ctx, s.Now())
	if !wake.After(s.Now()) {
		s.t.Fatalf("at %v the agent wants to look at %v", s.Now(), wake)
	}
	return err
}

func (s *harness) reconciles(hosts ...name) {
	s.t.Helper()
	for _, n := range hosts {
		s.ok(s.act(n))
	}
}

// pass lets time pass, and every agent look ten times a second.
func (s *harness) pass(d time.Duration) {
	s.t.Helper()
	for end := s.Now().Add(d); s.Now().Before(end); {
		s.AdvanceTo(s.Now().Add(100 * ms))
		for _, n := range []name{"n1", "n2"} {
			_ = s.act(n) // a host may be without power
		}
		s.once()
	}
}

// once checks that the VM does not run twice.
func (s *harness) once() {
	s.t.Helper()
	if s.state("n1").Executes() && s.state("n2").Executes() {
		s.t.Fatalf("the VM runs twice: %v; %q", s.Copies(vm), s.noted)
	}
}

func (s *harness) state(n name) hypervisor.DomainState {
	for _, c := range s.Copies(vm) {
		if c.Host == n {
			return c.State
		}
	}
	return hypervisor.Absent
}

func (s *harness) wantState(n name, want hypervisor.DomainState) {
	s.t.Helper()
	if got := s.state(n); got != want {
		s.t.Errorf("on %s the VM is %v, want %v; %q", n, got, want, s.noted)
	}
}

// sending brings the migration to the point where the source sends.
func (s *harness) sending() {
	s.t.Helper()
	s.begin(migration.PreparingTarget)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.reconciles("n2")
	s.phase(migration.TargetReady)
	s.reconciles("n1")
	s.phase(migration.Running)
}

// until advances event by event, without the agents, until the VM is in a state.
func (s *harness) until(n name, want hypervisor.DomainState) {
	s.t.Helper()
	for s.state(n) != want {
		next, some := s.Next()
		if !some || next.After(epoch.Add(time.Hour)) {
			s.t.Fatalf("the VM is never %v on %s: %v", want, n, s.Copies(vm))
		}
		s.AdvanceTo(next)
	}
}

// A confined store holds each write of an agent against the rights that it has at a controller which
// serves the store over a network.
type confined struct {
	store.Store
	host name
	t    *testing.T
}

// as returns the store as the agent of a host uses it.
func (s *harness) as(host name, records store.Store) store.Store { return confined{records, host, s.t} }

func (c confined) hold(ctx context.Context, deletes bool, r store.Record, while []store.Record) {
	if _, why, _ := boltstore.Judge(ctx, c.Store, c.host, deletes, r, while); why != "" {
		c.t.Errorf("%s writes %v %s, which is refused: %s", c.host, r.Key().Kind, r.Key().Name, why)
	}
}

// Put implements store.Store.
func (c confined) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record, error) {
	c.hold(ctx, false, r, while)
	return c.Store.Put(ctx, r, while...)
}

// Delete implements store.Store.
func (c confined) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	c.hold(ctx, true, r, while)
	return c.Store.Delete(ctx, r, while...)
}
