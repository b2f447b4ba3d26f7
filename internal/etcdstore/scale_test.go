package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

const (
	vmsPerHost  = 2
	clients     = 8 // of etcd, shared by all agents; the controller has its own
	drainKey    = "kubevirt.io/drain"
	beatEvery   = 5 * time.Second
	scaleWithin = 30 * time.Minute
)

// TestScaleOfTheStorePath drains a tenth of the hosts of fleets of 30, 100 and 300, in real time: an agent for each
// over modelled hypervisors, with a goroutine and a lease, and one controller, over one etcd that syncs to disk. What a
// migration costs must not grow faster than the fleet. With GODWIT_LONG=all the fleets are of 100, 300 and 1,000, which
// takes a quarter of an hour on two busy processors.
func TestScaleOfTheStorePath(t *testing.T) {
	testutil.Long(t)
	sizes := []int{30, 100, 300}
	if testutil.Everything() {
		sizes = []int{100, 300, 1000}
	}
	var all []figures
	for _, n := range sizes {
		t.Run(fmt.Sprintf("%d hosts", n), func(t *testing.T) {
			all = append(all, drainATenth(t, n))
		})
	}
	if t.Failed() || len(all) < len(sizes) {
		return
	}
	t.Logf("\n%s", table(all))
	small, large := all[0], all[len(all)-1]
	linear := float64(sizes[len(sizes)-1]) / float64(sizes[0])
	for _, c := range []struct {
		what  string
		grown float64
		most  float64
	}{
		{"writes for a migration", large.writes / small.writes, 1.5},
		{"bytes written for a migration", large.bytes / small.bytes, 1.5},
		{"the controller's time for a migration", large.deciding / small.deciding, linear},
		{"wall time for a migration", small.rate / large.rate, linear},
		{"reads for a migration", large.reads / small.reads, linear},
	} {
		if c.grown > c.most {
			t.Errorf("%s grew %.1f-fold, with %.0f-fold the hosts", c.what, c.grown, linear)
		}
	}
}

// figures are what one drain has cost.
type figures struct {
	hosts, moves   int
	took           time.Duration
	rate           float64 // migrations in a second
	p50, p99, most time.Duration
	looks          int     // of the controller that wrote something
	deciding       float64 // seconds of the controller for a migration, waiting for etcd included
	writes, bytes  float64 // for a migration
	stale, reads   float64 // for a migration
	resets         int     // how often a feed was read in full after the first time
	ours           float64 // writes of the controller, for a migration
	db             float64 // growth of etcd's file, bytes for a migration
}

// table prints figures; everything after "of a move" is for one migration.
func table(all []figures) string {
	var b strings.Builder
	b.WriteString("hosts  moves  took     moves/s  | looks that decide: p50, p99, max     " +
		"| of a move: controller, its writes, all writes, stale, bytes, etcd's file, reads\n")
	for _, f := range all {
		fmt.Fprintf(&b, "%5d  %5d  %-7v  %7.1f  | %d: %v, %v, %v  "+
			"| %.1fms, %.1f, %.1f, %.1f, %.0f, %.0f, %.1f (%d resets)\n",
			f.hosts, f.moves, short(f.took), f.rate, f.looks, short(f.p50), short(f.p99),
			short(f.most), 1000*f.deciding, f.ours, f.writes, f.stale, f.bytes, f.db, f.reads,
			f.resets)
	}
	return b.String()
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// A meter counts what goes through one store, and remembers how far its reader is.
type meter struct {
	*etcdstore.Store
	feed  store.Feed
	total *totals
	mine  atomic.Int64 // writes through this meter
	next  atomic.Uint64
}

type totals struct{ writes, bytes, stale, reads, resets atomic.Int64 }

func (m *meter) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	text, err := store.Encode(r)
	if err != nil {
		return nil, err
	}
	m.mine.Add(1)
	m.total.writes.Add(1)
	m.total.bytes.Add(int64(len(text)))
	stored, err := m.Store.Put(ctx, r, while...)
	if errors.Is(err, store.Stale) {
		m.total.stale.Add(1)
	}
	return stored, err
}

func (m *meter) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	m.mine.Add(1)
	m.total.writes.Add(1)
	return m.Store.Delete(ctx, r, while...)
}

func (m *meter) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := m.Store.Changes(ctx, f, since)
	m.total.reads.Add(1)
	if err == nil {
		m.next.Store(uint64(c.Next))
	}
	if c.Reset && since > 0 {
		m.total.resets.Add(1)
	}
	return c, err
}

// wait is until the reader has something to read.
func (m *meter) wait(ctx context.Context) error {
	return m.Store.Wait(ctx, m.feed, store.Revision(m.next.Load()))
}

// A hinted is an agent that is given the network's hints when it looks.
type hinted struct {
	*agent.Agent
	mu    sync.Mutex
	hints []hypervisor.VMID
	kick  chan struct{}
}

func (h *hinted) hint(vm hypervisor.VMID) {
	h.mu.Lock()
	h.hints = append(h.hints, vm)
	h.mu.Unlock()
	select {
	case h.kick <- struct{}{}:
	default: // it is told already
	}
}

func (h *hinted) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	h.mu.Lock()
	for _, vm := range h.hints {
		h.Hint(vm)
	}
	h.hints = h.hints[:0]
	h.mu.Unlock()
	return h.Agent.Reconcile(ctx, now)
}

// A stage is a fleet over one etcd.
type stage struct {
	t        *testing.T
	ctx      context.Context
	hosts    int
	cluster  *etcdtest.Cluster
	operator *etcdstore.Store
	fabric   *fake.Network
	agents   map[hypervisor.HostName]*hinted
	total    totals
	group    sync.WaitGroup

	mu       sync.Mutex
	looks    []time.Duration // of the controller that wrote
	deciding time.Duration   // of all its looks
	boss     *meter
}

// scaleOpen opens a store, which t.Cleanup closes.
func scaleOpen(t *testing.T, c *etcdtest.Cluster) *etcdstore.Store {
	s, err := etcdstore.Open(t.Context(), etcdstore.Config{Endpoints: c.Endpoints, DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func hostName(i int) hypervisor.HostName { return hypervisor.HostName(fmt.Sprintf("n%04d", i)) }

func drainATenth(t *testing.T, hosts int) figures {
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Limit(scaleWithin))
	s := &stage{t: t, ctx: ctx, hosts: hosts, agents: map[hypervisor.HostName]*hinted{},
		cluster: etcdtest.StartWith(t, etcdtest.Options{Fsync: true}),
		fabric:  fake.NewNetwork(time.Now(), fake.Model{})}
	defer s.group.Wait()
	defer cancel()
	s.operator = scaleOpen(t, s.cluster)
	s.fill()
	s.startAgents()
	s.startController()
	s.startTime()
	s.settle()
	return s.drain()
}

// fill stores the hosts and the VMs.
func (s *stage) fill() {
	var group sync.WaitGroup
	work := make(chan int)
	for range 16 {
		group.Go(func() {
			for i := range work {
				s.fillHost(i)
			}
		})
	}
	for i := range s.hosts {
		work <- i
	}
	close(work)
	group.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func (s *stage) fillHost(i int) {
	h := hypervisor.Host{Name: hostName(i), Memory: 64 * hypervisor.GiB, CPUs: 64,
		Link: 12_500_000_000}
	real, err := s.fabric.AddHost(h)
	if err == nil {
		_, err = s.operator.Put(s.ctx, &store.Host{Host: h})
	}
	for v := 0; v < vmsPerHost && err == nil; v++ {
		vm := hypervisor.VM{ID: hypervisor.VMID(fmt.Sprintf("default/vm%04d-%d", i, v)),
			Memory: 256 * hypervisor.MiB, CPUs: 1}
		if err = real.Boot(vm, fake.Workload{}); err == nil {
			_, err = s.operator.Put(s.ctx, &store.VM{VM: vm, Host: h.Name, Migratable: true,
				Namespace: "default", Strategy: evacuation.LiveMigrate})
		}
	}
	if err != nil {
		s.t.Errorf("host %d: %v", i, err)
	}
}

// startAgents starts an agent for each host, and its lease.
func (s *stage) startAgents() {
	var shared []*etcdstore.Store
	for range clients {
		shared = append(shared, scaleOpen(s.t, s.cluster))
	}
	for i := range s.hosts {
		name := hostName(i)
		m := &meter{Store: shared[i%clients], feed: store.Feed{Host: name}, total: &s.total}
		a := &hinted{kick: make(chan struct{}, 1), Agent: agent.New(name, agent.Config{},
			s.fabric.Host(name), m, store.DiscardEvents{})}
		s.agents[name] = a
		s.run(controller.Loop{Name: string(name), Reconciler: a, Wait: m.wait, Trigger: a.kick})
		s.group.Go(func() { s.beat(m.Store, name, i) })
	}
}

func (s *stage) run(l controller.Loop) {
	s.group.Go(func() {
		if err := controller.Run(s.ctx, l); err != nil {
			s.t.Errorf("%s: %v", l.Name, err)
		}
	})
}

// beat keeps a host's lease.
func (s *stage) beat(records store.Store, name hypervisor.HostName, i int) {
	next := time.NewTimer(beatEvery * time.Duration(i) / time.Duration(s.hosts))
	defer next.Stop()
	l := store.Lease{Owner: store.HostLease(name), Session: "s"}
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-next.C:
		}
		l.Beats++
		if stored, err := records.Put(s.ctx, &l); err == nil {
			l = *stored.(*store.Lease)
		}
		next.Reset(beatEvery)
	}
}

// A measured is the controller, whose looks are timed.
type measured struct {
	*controller.Controller
	s *stage
	m *meter
}

func (c *measured) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	before, began := c.m.mine.Load(), time.Now()
	wake, err := c.Controller.Reconcile(ctx, now)
	took := time.Since(began)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.deciding += took
	if c.m.mine.Load() > before {
		c.s.looks = append(c.s.looks, took)
	}
	return wake, err
}

func (s *stage) startController() {
	cluster := migration.DefaultCluster()
	cluster.ParallelMigrationsPerCluster = s.hosts
	cluster.ParallelOutboundMigrationsPerNode = vmsPerHost
	m := &meter{Store: scaleOpen(s.t, s.cluster), feed: store.Everything, total: &s.total}
	s.boss = m
	c := &measured{s: s, m: m, Controller: controller.New(controller.Config{Cluster: &cluster},
		m, store.DiscardEvents{})}
	s.run(controller.Loop{Name: "controller", Reconciler: c, Wait: m.wait})
}

// startTime moves the network's time, and passes its hints on.
func (s *stage) startTime() {
	s.group.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for s.ctx.Err() == nil {
			<-tick.C
			s.fabric.AdvanceTo(time.Now())
			for _, h := range s.fabric.Hints() {
				s.agents[h.Host].hint(h.VM)
			}
		}
	})
}

// settle waits until all have read what there is: there are no more writes.
func (s *stage) settle() {
	for quiet, last := 0, int64(-1); quiet < 10 && s.ctx.Err() == nil; quiet++ {
		if n := s.total.writes.Load(); n != last {
			quiet, last = 0, n
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// drain drains every tenth host, and waits until nothing is left there.
func (s *stage) drain() figures {
	db := s.size()
	s.mu.Lock()
	s.looks, s.deciding = nil, 0
	s.mu.Unlock()
	t := &s.total
	counters := []*atomic.Int64{&t.writes, &t.bytes, &t.stale, &t.reads, &s.boss.mine}
	var before []int64
	for _, c := range counters {
		before = append(before, c.Load())
	}
	began := time.Now()
	for i := 0; i < s.hosts; i += 10 {
		s.taint(hostName(i))
	}
	moves := s.hosts / 10 * vmsPerHost
	s.await(moves)
	took := time.Since(began)
	per := func(i int) float64 { return float64(counters[i].Load()-before[i]) / float64(moves) }
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.looks)
	at := func(q float64) time.Duration { return s.looks[int(q*float64(len(s.looks)-1))] }
	return figures{hosts: s.hosts, moves: moves, took: took,
		rate: float64(moves) / took.Seconds(), looks: len(s.looks),
		p50: at(.5), p99: at(.99), most: at(1), deciding: s.deciding.Seconds() / float64(moves),
		writes: per(0), bytes: per(1), stale: per(2), reads: per(3), ours: per(4),
		resets: int(t.resets.Load()), db: float64(s.size()-db) / float64(moves)}
}

// taint asks for a host to be drained, again while the store is busy or another has written it.
func (s *stage) taint(host hypervisor.HostName) {
	testutil.Eventually(s.t, "drain "+string(host), func() error {
		r, err := s.operator.Get(s.ctx, store.Key{Kind: store.HostKind, Name: string(host)})
		if err != nil {
			return err
		}
		h := *r.(*store.Host)
		h.Taints = []placement.Taint{{Key: drainKey, Effect: placement.NoSchedule}}
		_, err = s.operator.Put(s.ctx, &h)
		return err
	})
}

// await reads the store until so many migrations have succeeded, and their sources are
// released; then it stops all processes.
func (s *stage) await(moves int) {
	done := map[store.Key]bool{}
	for at := store.Revision(0); len(done) < moves; {
		err := s.operator.Wait(s.ctx, store.Everything, at)
		var c store.Changes
		if err == nil {
			c, err = s.operator.Changes(s.ctx, store.Everything, at)
		}
		if errors.Is(err, store.Unavailable) && s.ctx.Err() == nil {
			continue // etcd is busy
		}
		if err != nil {
			s.t.Fatalf("%d of %d moves after %v: %v\n%s", len(done), moves, testutil.Limit(scaleWithin), err,
				stacks())
		}
		at = c.Next
		for _, r := range c.Records {
			m, is := r.(*store.Migration)
			if is && m.State.Phase == migration.Failed {
				s.t.Fatalf("%s failed: %s", m.Spec.ID, m.State.Because)
			}
			if is && m.State.Phase == migration.Succeeded && m.Source.Released {
				done[m.Key()] = true
			}
		}
	}
}

func (s *stage) size() int64 {
	r, err := s.cluster.Client().Status(s.ctx, s.cluster.Endpoints[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return r.DbSizeInUse
}

// stacks is where every goroutine is, to find out why nothing goes on.
func stacks() string {
	text := make([]byte, 1<<16)
	return string(text[:runtime.Stack(text, true)])
}
