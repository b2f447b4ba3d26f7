package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// A fate is what becomes of one operation on the store.
type fate int

const (
	answered fate = iota
	refused       // it does not take effect
	lost          // it takes effect without an answer
	late          // a write without an answer; it takes effect later, or never
)

// world is one store and the processes that want to lead. It looks at what the store
// accepts, whatever the processes believe.
type world struct {
	store    *store.Memory
	election store.Election
	now      time.Time
	late     []func() // writes that have left their process and not arrived
	term     uint64   // of the last write of a leader that was accepted
	writes   int
	terms    int // how often the lead was taken over
	barred   int // writes refused because the term was over
	broken   error
}

// newWorld returns a world without processes.
func newWorld() *world {
	return &world{store: store.NewMemory(), now: epoch,
		election: store.Election{HeartbeatInterval: 5 * time.Second, LeaseDuration: 30 * time.Second}}
}

// process is one that stops before every operation on the store, and after every look,
// until it is let go on: everything else may happen in between.
type process struct {
	*world
	identity string
	session  string
	starts   int
	skew     time.Duration // how far its clock is ahead

	elector *store.Elector
	led     *store.LeaderRunner
	next    func() (struct{}, bool)
	end     func()
	yield   func(struct{}) bool
	fate    fate
	dead    bool // nothing that it does takes effect
	idle    bool // it stands between two looks
	leave   bool // it is to resign instead of looking
	wake    time.Time
	err     error
}

// start begins a process anew, with a memory that is empty.
func (p *process) start() {
	p.stop()
	p.starts++
	p.session = fmt.Sprintf("%s %p %d", p.identity, p, p.starts)
	c := p.election
	c.Identity, c.Session = p.identity, p.session
	p.elector, p.err = store.NewElector(p, c)
	if p.err != nil {
		panic(p.err)
	}
	p.led = store.NewLeaderRunner(p.elector, p, func(s store.Store) store.Participant {
		leader, _ := p.elector.Leading()
		return &scribe{store: s, leader: leader}
	})
	p.dead, p.idle, p.leave, p.fate, p.wake = false, true, false, answered, p.now
	p.next, p.end = iter.Pull(p.life)
}

// stop ends a process wherever it stands.
func (p *process) stop() {
	if p.end != nil {
		p.end()
		p.dead, p.idle = true, false
	}
}

// life looks again and again.
func (p *process) life(yield func(struct{}) bool) {
	p.yield = yield
	for !p.dead {
		if p.idle = false; p.leave {
			p.err = p.led.Resign(context.Background())
			p.dead = true
			return
		}
		began, clock := p.now, p.now.Add(p.skew)
		var wake time.Time
		wake, p.err = p.led.Reconcile(context.Background(), clock)
		p.wake = began.Add(wake.Sub(clock))
		p.pause()
	}
}

// pause stands between two looks.
func (p *process) pause() {
	if !p.dead {
		p.idle = true
		p.dead = !p.yield(struct{}{})
	}
}

// step lets a process go on up to its next operation, or to the end of its look.
func (p *process) step(f fate) {
	p.fate = f
	p.next()
}

// look lets a process go on to the end of its look, or of itself.
func (p *process) look() {
	p.step(answered)
	for !p.idle && !p.dead {
		p.step(answered)
	}
}

// leads reports whether a process believes to lead, and says so of the term stored.
func (p *process) leads() bool {
	leader, ok := p.elector.Leading()
	_, acts := p.led.Leading()
	stored := p.leader()
	return !p.dead && ok && acts && stored != nil && *stored == *leader
}

// leader returns who leads as it is stored.
func (w *world) leader() *store.Leader {
	r, _ := w.store.Get(context.Background(), (&store.Leader{Name: "cluster"}).Key())
	l, _ := r.(*store.Leader)
	return l
}

// lease returns the lease of an owner as it is stored.
func (w *world) lease(owner string) *store.Lease {
	r, _ := w.store.Get(context.Background(), (&store.Lease{Owner: owner}).Key())
	l, _ := r.(*store.Lease)
	return l
}

// attend stops before an operation and answers what becomes of it.
func (p *process) attend() fate {
	if p.dead {
		return refused
	}
	if p.dead = !p.yield(struct{}{}); p.dead {
		return refused
	}
	return p.fate
}

func unanswered(op string, key store.Key, f fate) error {
	kind := store.Unanswered
	if f == refused {
		kind = store.Unavailable
	}
	return &store.StoreError{Op: op, Key: key, Kind: kind}
}

// Get implements store.Store.
func (p *process) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if f := p.attend(); f != answered {
		return nil, unanswered("Get", key, f)
	}
	return p.store.Get(ctx, key)
}

// Put implements store.Store.
func (p *process) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	f := p.attend()
	var stored store.Record
	var err error
	write := func() {
		before := p.leader()
		stored, err = p.store.Put(ctx, r, while...)
		p.judge(before, r, err)
	}
	switch f {
	case answered:
		write()
		return stored, err
	case lost:
		write()
	case late:
		p.late = append(p.late, write)
	}
	return nil, unanswered("Put", r.Key(), f)
}

// Delete implements store.Store.
func (p *process) Delete(context.Context, store.Record, ...store.Record) error {
	panic("this world deletes nothing")
}

// Changes implements store.Store.
func (p *process) Changes(context.Context, store.Feed, store.Revision) (store.Changes, error) {
	panic("this world reads no feed")
}

// judge holds what the store has accepted against the rules: leaders follow each other
// term by term and own their name when they begin, and only the newest writes.
func (w *world) judge(before *store.Leader, r store.Record, err error) {
	if err != nil {
		e, _ := errors.AsType[*store.StoreError](err)
		if _, work := r.(*store.VM); work && e.Key.Kind == store.LeaderKind {
			w.barred++
		}
		return
	}
	switch r := r.(type) {
	case *store.Leader:
		w.judgeLeader(before, r)
	case *store.VM:
		w.writes++
		if before == nil || before.Session != r.NotMigratableReason || before.Term != uint64(r.Boots) {
			w.fail("%s wrote in term %d, and %+v leads", r.NotMigratableReason, r.Boots, before)
		}
		if uint64(r.Boots) < w.term {
			w.fail("term %d wrote after term %d", r.Boots, w.term)
		}
		w.term = uint64(r.Boots)
	}
}

func (w *world) judgeLeader(before, r *store.Leader) {
	var term uint64
	if before != nil {
		term = before.Term
	}
	switch {
	case r.Holder == "" && r.Term != term:
		w.fail("%+v resigned from term %d", r, term)
	case r.Holder == "":
	case r.Term != term+1:
		w.fail("%+v followed term %d", r, term)
	case w.lease(r.Holder).Session != r.Session:
		w.fail("%+v leads under a name that %+v has", r, w.lease(r.Holder))
	default:
		w.terms++
	}
}

func (w *world) fail(format string, a ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, a...)
	}
}

// scribe is what leads in these tests: it writes something new at every look, which no
// version of a record protects, and in whose name it does.
type scribe struct {
	store  store.Store
	leader *store.Leader
	pages  int
}

// Reconcile writes twice.
func (s *scribe) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	for range 2 {
		s.pages++
		v := vm(fmt.Sprintf("%s/%d/%d", s.leader.Session, s.leader.Term, s.pages))
		v.Boots, v.NotMigratableReason = int(s.leader.Term), s.leader.Session
		if _, err := s.store.Put(ctx, v); err != nil {
			return now.Add(time.Second), err
		}
	}
	return now.Add(20 * time.Second), nil
}

// settle lets every process run in the order of their wishes, with a store that answers, and
// calls each after every look.
func (w *world) settle(all []*process, d time.Duration, each func(*process)) {
	for _, p := range all {
		if p.dead {
			p.start()
		}
		for !p.idle && !p.dead {
			p.step(answered)
		}
		p.wake = w.now
	}
	for until := w.now.Add(d); ; {
		p := slices.MinFunc(all, func(a, b *process) int { return a.wake.Compare(b.wake) })
		if p.wake.After(until) {
			return
		}
		if p.wake.After(w.now) {
			w.now = p.wake
		}
		if p.dead {
			p.start()
		}
		p.look()
		each(p)
	}
}
