package controller_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

type (
	vmid = hypervisor.VMID
	name = hypervisor.HostName
)

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}

// A cluster is a controller and its store. The hosts are played by the test:
// they say in the records what honest agents would.
type cluster struct {
	t      tester
	store  *saboteur
	boss   *controller.Controller
	config controller.Config
	now    time.Time
	looks  int
}

// newCluster has hosts n1, n2 and n3 with room for 64 GiB each, and lets one
// migration run at a time.
func newCluster(t tester) *cluster {
	limits := migration.DefaultCluster()
	limits.ParallelMigrationsPerCluster = 1
	c := &cluster{t: t, now: epoch, config: controller.Config{Cluster: &limits},
		store: &saboteur{Memory: store.NewMemory()}}
	for _, h := range []name{"n1", "n2", "n3"} {
		c.put(&store.Host{Host: hypervisor.Host{Name: h, Memory: 64 * hypervisor.GiB, CPUs: 64}})
	}
	c.restart()
	return c
}

func (c *cluster) restart() { c.boss = controller.New(c.config, c.store, store.DiscardEvents{}) }

func (c *cluster) put(r store.Record) {
	c.t.Helper()
	if _, err := c.store.Memory.Put(ctx, r); err != nil {
		c.t.Fatalf("%v", err)
	}
}

func (c *cluster) addVM(id vmid, on name) {
	c.t.Helper()
	c.put(&store.VM{VM: hypervisor.VM{ID: id, Memory: hypervisor.GiB, CPUs: 1}, Host: on,
		Strategy: evacuation.LiveMigrate, Migratable: true})
}

// ask asks for a migration as a user does.
func (c *cluster) ask(id migration.ID, vm vmid, target name) {
	c.t.Helper()
	c.put(&store.Migration{Spec: migration.Spec{ID: id, VM: vm, Created: c.now, Target: target}})
}

func (c *cluster) drain(h name) {
	c.t.Helper()
	next := *c.host(h)
	next.Taints = []placement.Taint{{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}
	c.put(&next)
}

func (c *cluster) vm(id vmid) *store.VM {
	r, _ := c.store.Get(ctx, store.Key{Kind: store.VMKind, Name: string(id)})
	v, _ := r.(*store.VM)
	return v
}

func (c *cluster) host(h name) *store.Host {
	r, _ := c.store.Get(ctx, store.Key{Kind: store.HostKind, Name: string(h)})
	return r.(*store.Host)
}

// moves lists all migrations, by name.
func (c *cluster) moves() []*store.Migration {
	all, _ := c.store.Changes(ctx, store.Everything, 0)
	var list []*store.Migration
	for _, r := range all.Records {
		if m, ok := r.(*store.Migration); ok {
			list = append(list, m)
		}
	}
	return list
}

func (c *cluster) move(id migration.ID) *store.Migration {
	c.t.Helper()
	for _, m := range c.moves() {
		if m.Spec.ID == id {
			return m
		}
	}
	c.t.Fatalf("there is no migration %s", id)
	return nil
}

// reconcile lets the controller look once; it must want to look later than now.
func (c *cluster) reconcile() time.Time {
	c.t.Helper()
	c.looks++
	wake, _ := c.boss.Reconcile(ctx, c.now)
	if !wake.After(c.now) {
		c.t.Fatalf("at %v the controller wants to look at %v", c.now, wake)
	}
	return wake
}

// hosts lets the agents say what is next in each migration.
func (c *cluster) hosts() (said bool) {
	c.t.Helper()
	for _, m := range c.moves() {
		next := *m
		if answer(&next) {
			c.put(&next)
			said = true
		}
	}
	return said
}

// answer says what honest agents say next about a migration.
func answer(m *store.Migration) bool {
	s, source, target := &m.State, &m.Source, &m.Target
	switch {
	case s.Target == "":
		return false
	case s.Phase == migration.Succeeded && !source.Released:
		source.Released = true
	case s.Phase == migration.Failed && !target.Discarded:
		target.Discarded = true
	case s.Phase.Final():
		return false
	case !target.Ready:
		target.Ready = true
	case s.Phase == migration.PreparingTarget && target.Address == "":
		target.Address = "there"
	case s.Phase == migration.TargetReady && !source.Began:
		source.Began = true
	case source.Began && !source.Started:
		source.Started = true
	case s.Phase == migration.Running && !target.Completed:
		target.Completed = true
	default:
		return false
	}
	return true
}

// run lets every participant act until done, at most so long. It follows the
// controller's own wishes when to look, and nothing else wakes it: all
// notifications are lost.
func (c *cluster) run(most time.Duration, done func() bool) {
	c.t.Helper()
	for end := c.now.Add(most); !done(); {
		wake := c.reconcile()
		c.check()
		if c.hosts() {
			wake = c.now.Add(time.Second)
		}
		if wake.After(end) && !done() {
			c.t.Fatalf("not done after %v: %s", most, c)
		}
		c.now = wake
	}
}

// check is what holds whatever happens.
func (c *cluster) check() {
	c.t.Helper()
	slots := 0
	over := map[vmid]migration.ID{}
	for _, m := range c.moves() {
		s := &m.State
		if migration.HoldsSlot(s.Phase, s.Target != "", true) {
			slots++
		}
		if other := over[m.Spec.VM]; s.Phase.HandedOver() && !s.Phase.Final() && other != "" {
			c.t.Errorf("%s and %s move %s", other, m.Spec.ID, m.Spec.VM)
		}
		if s.Phase.HandedOver() && !s.Phase.Final() {
			over[m.Spec.VM] = m.Spec.ID
		}
	}
	if slots > 1 {
		c.t.Errorf("%d slots are held, one is allowed: %s", slots, c)
	}
}

// String lists what is stored, for failed tests.
func (c *cluster) String() string {
	text := ""
	all, _ := c.store.Changes(ctx, store.Everything, 0)
	for _, r := range all.Records {
		switch r := r.(type) {
		case *store.VM:
			text += fmt.Sprintf("\n%s on %s, claimed by %q", r.VM.ID, r.Host, r.ActiveMigration)
		case *store.Migration:
			text += fmt.Sprintf("\n%s %s→%s %s %q released %v", r.Spec.ID, r.State.Source,
				r.State.Target, r.State.Phase, r.State.Because, r.State.Released)
		}
	}
	return text
}

// A saboteur is a store in which the write number at goes wrong.
type saboteur struct {
	*store.Memory
	at   int
	how  sabotage
	puts int
}

type sabotage uint8

const (
	harmless    sabotage = iota
	unanswered           // it takes effect, and no answer comes
	unavailable          // it does not take effect
	overtaken            // another process writes the record first
	fatal                // it takes effect, and the writer's process dies
)

// errDead is what a process that has died would be told.
var errDead = &store.StoreError{Op: "Put", Kind: store.Unavailable}

// Put implements store.Store.
func (s *saboteur) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	s.puts++
	how := s.how
	if s.puts != s.at && !(how == fatal && s.puts > s.at) {
		how = harmless
	}
	refuse := func(k store.StoreKind) (store.Record, error) {
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: k}
	}
	switch {
	case how == unavailable:
		return refuse(store.Unavailable)
	case how == overtaken:
		if stored, _ := s.Get(ctx, r.Key()); stored != nil {
			_, _ = s.Memory.Put(ctx, stored, while...) // it was read just now
		}
	case how == fatal && s.puts > s.at:
		return nil, errDead
	}
	stored, err := s.Memory.Put(ctx, r, while...)
	if err == nil && how == unanswered {
		return refuse(store.Unanswered)
	}
	return stored, err
}

// host returns a host with so much memory, in MiB.
func host(h name, mib hypervisor.Bytes) hypervisor.Host {
	return hypervisor.Host{Name: h, Memory: mib * hypervisor.MiB, CPUs: 64}
}
