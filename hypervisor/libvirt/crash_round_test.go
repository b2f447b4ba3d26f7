//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A victim is what is killed in a round, or cut.
type victim int

const (
	noVictim victim = iota
	sourceDaemon
	targetDaemon
	sourceQEMU
	targetQEMU
	sourceAgent
	targetAgent
	linkReset
	linkCut
)

var victims = [...]string{"none", "source's libvirtd", "target's libvirtd", "source's QEMU",
	"target's QEMU", "source's agent", "target's agent", "link, reset", "link, silent"}

func (v victim) String() string { return victims[v] }

// at is the host of a victim that is a process.
func (v victim) at() name {
	switch v {
	case targetDaemon, targetQEMU, targetAgent:
		return hostb
	}
	return hosta
}

func (v victim) agent() bool { return v == sourceAgent || v == targetAgent }

// The guest's first heartbeat at its target.
const firstBeat = "target beats"

// triggers are what happens around the switch-over.
var triggers = []string{"target started migrated", "source suspended migrated",
	"target defined added", "target resumed migrated", firstBeat, "source stopped migrated"}

// draw chooses the moment of a round. Of three, one is anywhere, in strata so that all
// of the migration has its share; the others are around the switch-over, or between
// two steps of an agent.
func draw(v victim, i, n int, window time.Duration, r *rand.Rand) backendtest.Moment {
	switch {
	case i%3 == 0:
		return backendtest.Anywhere(i, n, window, r)
	case i%3 == 1 && v.agent():
		return backendtest.Moment{Changes: 1 + r.IntN(8)}
	}
	late := time.Duration(0) // half of them as soon as it is known
	switch r.IntN(4) {
	case 0:
		late = time.Duration(r.IntN(3000)) * time.Microsecond
	case 1:
		late = time.Duration(r.IntN(100)) * time.Millisecond
	}
	return backendtest.Moment{Event: triggers[r.IntN(len(triggers))], After: late}
}

// heldTriggers happen in the strict mode in place of others.
var heldTriggers = map[string]string{"target resumed migrated": "target suspended paused",
	firstBeat: "target resumed unpaused"}

// A round is one VM, one migration and one crash.
type round struct {
	*scene
	victim  victim
	when    backendtest.Moment
	pause   time.Duration // until what can be mended is mended
	bold    bool          // its operator does not wait for that, nor for the crash if it is held
	instead func()        // is done in place of a crash; nil: a crash

	vm       hypervisor.VM
	job      hypervisor.JobID
	pulse    *guest.HeartbeatListener
	unlisten func() // ends listening
	pid      int    // of the source's QEMU

	ctx    context.Context
	judged chan struct{} // how it ended is known
	asked  chan struct{} // the migration was asked for, or could not be
	begun  time.Time     // when it was
	struck time.Time
	tasks  sync.WaitGroup
	twice  overlap
	misled int // how often Resolve was contradicted
	killed bool

	events backendtest.Events

	mu      sync.Mutex
	bad     []error
	refused error    // what Receive or Migrate answered
	pages   []string // of the operator's diary
}

func (s *scene) newRound(v victim, i int, when backendtest.Moment, r *rand.Rand) *round {
	id := vmid(fmt.Sprintf("crash/%d-%d", v, i))
	pause := 200*time.Millisecond + time.Duration(r.Int64N(int64(1800*time.Millisecond)))
	if v == linkCut {
		pause = 300*time.Millisecond + time.Duration(r.Int64N(int64(longestCut())))
	}
	if v.agent() {
		pause = time.Duration(r.Int64N(int64(time.Second)))
	}
	if held := heldTriggers[when.Event]; s.strict && held != "" {
		when.Event = held
	}
	return &round{scene: s, victim: v, when: when, pause: pause, bold: r.IntN(2) == 0,
		vm: s.vm(id), job: hypervisor.JobID(fmt.Sprintf("job-%d-%d", v, i)),
		judged: make(chan struct{}), asked: make(chan struct{})}
}

// fail notes what must not happen.
func (r *round) fail(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, fmt.Errorf(format, a...))
}

// play is the round, and returns how it ended.
func (r *round) play() (result string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(3*time.Minute))
	r.ctx = ctx
	r.tap(r.events.Notice)
	defer r.tap(nil)
	judged := sync.OnceFunc(func() { close(r.judged) })
	defer func() {
		judged()
		cancel()
		r.tasks.Wait()
		if r.unlisten != nil {
			r.unlisten()
		}
	}()
	if err := r.boot(hosta); err != nil {
		return "", fmt.Errorf("boot: %w", err)
	}
	if r.pid, err = r.QEMU(string(hosta), domainOf(r.vm.ID)); err != nil {
		return "", err
	}
	r.tasks.Go(r.watch)
	r.tasks.Go(r.sample)
	r.begun = time.Now()
	r.tasks.Go(r.migrate)
	result, where, err := r.struggle()
	judged()
	<-r.asked
	r.judgeOverlap()
	if err == nil {
		err = r.prove(result, where)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = errors.Join(append(r.bad, err)...); err != nil {
		err = fmt.Errorf("%w\n%s\n%v", err, strings.Join(r.pages, "\n"), &r.events)
	}
	return result, err
}

// struggle is the crash, and what an operator does about it: at once, or after what can
// be mended is. A held VM starts only by an operator: one that is bold does not wait.
func (r *round) struggle() (result string, where name, err error) {
	settled := make(chan struct{})
	settle := func() {
		defer close(settled)
		result, where, err = r.settle()
	}
	if r.bold && r.strict {
		r.tasks.Go(func() { <-r.asked; settle() })
	}
	e := r.strike()
	if r.bold && !r.strict {
		r.tasks.Go(settle)
	}
	failure := r.mend(e)
	if !r.bold {
		settle()
	}
	<-settled
	return result, where, errors.Join(err, failure)
}

// boot starts the guest anew and listens to it.
func (r *round) boot(n name) (err error) {
	if r.unlisten != nil {
		r.unlisten()
	}
	if r.pulse, r.unlisten, err = r.ListenUntil(socketOf(r.vm.ID)); err != nil {
		return err
	}
	err = backendtest.Persist(func() error {
		return r.hosts[n].Do(r.ctx, r.vm.ID, hypervisor.Start{VM: r.vm})
	})
	if err != nil {
		return err
	}
	return r.pulse.Wait(r.ctx, func(h guest.HeartbeatLog) bool { return h.Ready && h.Beats > 3 })
}

// migrate asks for the migration, again where an agent or a daemon dies over it.
func (r *round) migrate() {
	defer close(r.asked)
	in := hypervisor.Incoming{Job: r.job, VM: r.vm}
	out := hypervisor.Outgoing{Job: r.job, VM: r.vm.ID, Target: hostb,
		Options: hypervisor.TransferOptions{Bandwidth: preyCap}}
	err := r.insist(func() (err error) {
		out.Address, err = r.hosts[hostb].Receive(r.ctx, in)
		return err
	})
	if err == nil {
		err = r.insist(func() error { return r.hosts[hosta].Migrate(r.ctx, out) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = err
}

// insist repeats a request for a while, and gives up when the outcome is known.
func (r *round) insist(ask func() error) error {
	for deadline := time.Now().Add(4 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := ask()
		if !errors.Is(err, hypervisor.Transient) && !errors.Is(err, hypervisor.Unknown) ||
			time.Now().After(deadline) {
			return err
		}
		select {
		case <-r.judged:
			return err
		default:
		}
	}
}

// strike waits for the moment and does it. Only the test's own goroutine may.
func (r *round) strike() (dead *backendtest.Agent) {
	if r.instead != nil {
		r.instead()
		return nil
	}
	var came <-chan struct{} = closed
	if r.victim.agent() {
		dead = r.hosts[r.victim.at()].Agent()
	}
	switch {
	case r.when.Changes > 0:
		_ = dead.DieAfter(r.when.Changes) // it may die of it
		came = dead.Ended()
	case r.when.Event != "":
		came = r.events.On(r.when.Event)
	}
	select {
	case <-came:
	case <-time.After(r.window + 2*time.Second): // it has not come
	}
	time.Sleep(r.when.After)
	r.struck = time.Now()
	switch r.victim {
	case sourceDaemon, targetDaemon:
		r.KillDaemon(string(r.victim.at()))
	case sourceQEMU:
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid))
		if strings.Contains(string(args), domainOf(r.vm.ID)) { // it has not ended
			r.killed = syscall.Kill(r.pid, syscall.SIGKILL) == nil
		}
	case targetQEMU:
		if pid, err := r.QEMU(string(hostb), domainOf(r.vm.ID)); err == nil {
			r.killed = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	case sourceAgent, targetAgent:
		dead.Kill()
	case linkReset:
		r.ResetLink()
	case linkCut:
		r.CutLink()
	}
	return dead
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// mend makes good what can be made good, after a while.
func (r *round) mend(dead *backendtest.Agent) error {
	switch {
	case r.victim == sourceDaemon || r.victim == targetDaemon:
		time.Sleep(r.pause)
		r.StartDaemon(string(r.victim.at()))
	case r.victim == linkCut:
		time.Sleep(r.pause)
		r.MendLink()
	case r.killed: // libvirt notices it soon
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			state, err := r.stateOf(r.ctx, r.victim.at(), r.vm.ID)
			if err == nil && !runs(state) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	case dead != nil:
		time.Sleep(r.pause)
		if err := r.hosts[r.victim.at()].Start(); err != nil {
			return fmt.Errorf("a successor: %w", err)
		}
	}
	return nil
}

// An overlap is how long two copies of a guest beat, as the guest tells. It is nothing
// when the second began only after the first had been stopped again.
type overlap struct {
	mu          sync.Mutex
	begin, last time.Time
	heard       int64     // that a copy beat again, or what another had
	held        time.Time // until when libvirt is known to have been at its migration: a pause has to wait for that
}

// note takes what was heard until now.
func (o *overlap) note(r guest.HeartbeatLog, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Returns+r.Repeats == o.heard {
		return
	}
	if o.heard == 0 {
		o.begin = now
	}
	o.heard, o.last = r.Returns+r.Repeats, now
}

// length is how long it was; ok is false when there was none.
func (o *overlap) length() (d time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last.Sub(o.begin), o.heard > 0
}

// hold takes in that libvirt is still at the migration.
func (o *overlap) hold(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = now
}

// stoppable is how long it was while libvirt could have been told to end it.
func (o *overlap) stoppable() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(0, min(o.last.Sub(o.begin), o.last.Sub(o.held)))
}

// watch hears the guest: when it first beats at its target, and whether two beat.
func (r *round) watch() {
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	told, pulse := false, r.pulse
	for {
		h := pulse.Log()
		r.twice.note(h, time.Now())
		if !told && libvirttest.HostOf(h.From) == libvirttest.HostB {
			told = true
			r.events.Notice(firstBeat, h.Last)
		}
		select {
		case <-r.judged:
			return
		case <-tick.C:
		}
	}
}
