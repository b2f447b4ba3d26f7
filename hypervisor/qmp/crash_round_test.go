//go:build linux

package qmp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

const source, target = name("n1"), name("n2")

// A victim is what is killed in a round, or cut.
type victim int

const (
	noVictim victim = iota
	sourceQEMU
	targetQEMU
	sourceAgent
	targetAgent
	linkReset
	linkCut
)

var victims = [...]string{"none", "source's QEMU", "target's QEMU", "source's agent",
	"target's agent", "link, reset", "link, silent"}

func (v victim) String() string { return victims[v] }

func (v victim) agent() name {
	return map[victim]name{sourceAgent: source, targetAgent: target}[v]
}

// triggers are what happens around the switch-over.
var triggers = []string{"source STOP", "source MIGRATION device", "source MIGRATION completed",
	"target MIGRATION completed", "target RESUME"}

// What the hosts say to each other when the guest has stopped: it is under way, and
// has not arrived, when it is done.
const (
	theWord   = "the word that the guest has stopped"
	theAnswer = "the answer to it"
)

// draw chooses the moment of a round. Of three, one is anywhere, in strata so that
// all of the migration has its share; the others are around the switch-over, or
// between two writes.
func draw(v victim, i, n int, window time.Duration, r *rand.Rand) backendtest.Moment {
	switch {
	case i%3 == 0:
		return backendtest.Anywhere(i, n, window, r)
	case i%3 == 1 && v.agent() != "":
		most := 4
		if v == targetAgent {
			most = 7
		}
		return backendtest.Moment{Changes: 1 + r.IntN(most)}
	}
	late := time.Duration(0) // half of them as soon as it is known
	switch r.IntN(4) {
	case 0:
		return backendtest.Moment{Event: theWord}
	case 1:
		return backendtest.Moment{Event: theAnswer}
	case 2:
		late = time.Duration(r.IntN(3000)) * time.Microsecond
	}
	return backendtest.Moment{Event: triggers[r.IntN(len(triggers))], After: late}
}

// A round is one VM, one migration and one crash.
type round struct {
	*scene
	victim victim
	when   backendtest.Moment
	rand   *rand.Rand
	bold   bool // its operator does not wait for a link to be mended

	vm        hypervisor.VM
	job       hypervisor.JobID
	pulse     *guest.HeartbeatListener
	observers map[name]*observer
	files     map[name]string // the directory of the VM on each host
	pids      map[name]int

	ctx    context.Context
	begun  chan struct{} // the migration is asked for
	force  chan struct{} // the moment will not come: do it now
	struck chan struct{} // it is done
	healed chan struct{} // and what can be mended is mended
	judged chan struct{} // how it ended is known
	opened time.Duration // how long it took to open the target
	tasks  sync.WaitGroup
	phase  string // of the migration when it was done

	events backendtest.Events

	mu  sync.Mutex
	bad []error
}

func (s *scene) newRound(v victim, i int, when backendtest.Moment, r *rand.Rand) *round {
	id := vmid(fmt.Sprintf("crash/%d-%d", v, i))
	return &round{scene: s, victim: v, when: when, rand: r, bold: r.IntN(2) == 0,
		vm: s.vm(id, crashGuest), job: hypervisor.JobID(fmt.Sprintf("job-%d-%d", v, i)),
		observers: map[name]*observer{}, files: map[name]string{}, pids: map[name]int{},
		begun: make(chan struct{}), force: make(chan struct{}), struck: make(chan struct{}),
		healed: make(chan struct{}), judged: make(chan struct{})}
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
	defer cancel()
	r.ctx = ctx
	if r.pulse, err = guest.NewHeartbeatListener(); err != nil {
		return "", err
	}
	defer r.pulse.Close()
	defer r.tasks.Wait()
	judged := sync.OnceFunc(func() { close(r.judged) })
	defer judged()
	defer cancel()
	defer func() {
		for _, p := range r.observers {
			p.close()
		}
	}()
	if err := r.boot(source); err != nil {
		return "", fmt.Errorf("boot: %w", err)
	}
	r.tap(r.hear)
	defer r.tap(nil)
	r.tasks.Go(r.crash)
	r.tasks.Go(r.sample)
	if err := r.migrate(); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return "", errors.Join(append(r.bad, fmt.Errorf("migrate: %w", err))...)
	}
	result, where, err := r.settle()
	judged()
	if err == nil {
		<-r.healed
		err = r.prove(result, where)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return result, errors.Join(append(r.bad, err)...)
}

// boot starts the guest and listens to it.
func (r *round) boot(n name) error {
	for _, n := range []name{source, target} {
		r.files[n] = filepath.Join(r.dirOf(n), "vms", durable.Name(string(r.vm.ID)))
	}
	err := r.do(n, r.vm.ID, hypervisor.Start{VM: r.vm})
	if err == nil {
		err = r.listenTo(n)
	}
	if err != nil {
		return err
	}
	return r.pulse.Wait(r.ctx, func(h guest.HeartbeatLog) bool { return h.Ready && h.Beats > 3 })
}

// listenTo listens to the QEMU of a host that was started just now.
func (r *round) listenTo(n name) error {
	pid, err := r.pidOn(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	who := map[name]string{source: "source", target: "target"}[n]
	p, err := observe(ctx, r.secondMonitor(n), who, r.notice)
	if err != nil {
		return err
	}
	r.mu.Lock()
	old := r.observers[n]
	r.observers[n], r.pids[n] = p, pid
	r.mu.Unlock()
	old.close()
	return r.pulse.Connect(ctx, fmt.Sprintf("%s#%d", n, pid),
		filepath.Join(r.files[n], "debug.sock"))
}

// pidOn returns the number of the VM's process on a host, if it is that.
func (r *round) pidOn(n name) (int, error) {
	path := filepath.Join(r.files[n], "qemu.pid")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, err
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && !strings.Contains(string(args), path) {
		err = fmt.Errorf("process %d is another one", pid)
	}
	return pid, err
}

// notice is told of each event of the two QEMUs.
func (r *round) notice(word string) { r.events.Notice(word, time.Now()) }

// hear is told of all that the link carries, before it arrives. What the crash
// waits for does not arrive before it is done.
func (r *round) hear(data []byte) {
	word := theWord
	if !bytes.Contains(data, []byte(`"Say":"stopped"`)) {
		_, spoken := r.events.Heard(theWord)
		if !spoken || !bytes.HasPrefix(data, []byte(`{"Body":{"Refused"`)) {
			return
		}
		word = theAnswer
	}
	r.notice(word)
	if r.when.Event == word {
		select {
		case <-r.struck:
		case <-r.ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// migrate asks for the migration, again where an agent dies over it.
func (r *round) migrate() error {
	if r.victim < linkReset {
		close(r.begun)
	}
	began := time.Now()
	address, err := r.receive(target, hypervisor.Incoming{Job: r.job, VM: r.vm})
	if r.victim >= linkReset {
		close(r.begun)
	}
	if errors.Is(err, hypervisor.Conflict) || errors.Is(err, hypervisor.Invalid) {
		return nil // it has ended before it began
	}
	if err != nil {
		return err
	}
	r.opened = time.Since(began)
	_ = r.listenTo(target) // it may be dead already
	out := hypervisor.Outgoing{Job: r.job, VM: r.vm.ID, Target: target, Address: address,
		Options: hypervisor.TransferOptions{Bandwidth: preyCap}}
	deadline := time.Now().Add(500 * time.Millisecond)
	for {
		err = r.hosts[source].Migrate(r.ctx, out)
		gone := errors.Is(err, hypervisor.Conflict) || errors.Is(err, hypervisor.Invalid)
		if err == nil || gone || time.Now().After(deadline) {
			return nil // what has become of it is seen soon
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// crash waits for the moment, does it, and mends what can be mended.
func (r *round) crash() {
	defer close(r.healed)
	if r.victim == noVictim {
		close(r.struck)
		return
	}
	patience := time.NewTimer(3 * time.Second)
	defer patience.Stop()
	var came <-chan struct{} = r.begun
	switch {
	case r.when.Changes > 0:
		e := r.hosts[r.victim.agent()].Agent()
		if err := e.DieAfter(r.when.Changes); err != nil {
			r.fail("tell an agent when to die: %v", err)
		}
		came = e.Ended()
	case r.when.Event != "":
		came = r.events.On(r.when.Event)
	}
	select {
	case <-came:
		wait(r.ctx, r.when.After)
	case <-r.force:
	case <-patience.C:
	case <-r.ctx.Done():
	}
	r.strike()
}

// strike does it.
func (r *round) strike() {
	r.phase = r.look()
	pause := time.Duration(r.rand.IntN(100)) * time.Millisecond
	if r.rand.IntN(2) == 0 {
		pause += 200 * time.Millisecond // longer than the agents' patience
	}
	switch r.victim {
	case sourceQEMU:
		r.kill(source)
	case targetQEMU:
		r.kill(target)
	case sourceAgent, targetAgent:
		n := r.victim.agent()
		r.hosts[n].Agent().Kill()
	case linkReset:
		_ = r.wire.reset()
	case linkCut:
		_ = r.wire.setCut(true)
	}
	close(r.struck)
	switch r.victim {
	case sourceAgent, targetAgent:
		wait(r.ctx, pause)
		if err := r.hosts[r.victim.agent()].Start(); err != nil {
			r.fail("a successor: %v", err)
		}
	case linkCut:
		wait(r.ctx, 20*time.Millisecond+pause)
		_ = r.wire.setCut(false)
	}
}

// kill ends the VM's process on a host, as soon as there is one.
func (r *round) kill(n name) {
	for {
		pid, err := r.pidOn(n)
		if err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return
		}
		select {
		case <-r.judged: // there never was one, or it has ended
			return
		case <-r.force:
			return
		case <-r.ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// look says how far the migration has come, as its QEMUs tell.
func (r *round) look() string {
	for _, l := range []struct{ word, phase string }{
		{"target RESUME", "after"}, {"target MIGRATION completed", "handed over"},
		{"source MIGRATION completed", "handed over"}, {"source STOP", "switching"},
		{"source MIGRATION active", "memory"}, {"source MIGRATION setup", "memory"},
	} {
		if _, has := r.events.Heard(l.word); has {
			return l.phase
		}
	}
	return "set-up"
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// sample looks all the time whether the VM runs twice, or nowhere for good. In a
// round it moves one way only: what runs at the target and then, asked later, at
// the source, runs twice.
func (r *round) sample() {
	for {
		select {
		case <-r.judged:
			return
		case <-r.ctx.Done():
			return
		case <-time.After(3 * time.Millisecond):
		}
		there, err := r.hosts[target].Domain(r.ctx, r.vm.ID)
		here, failed := r.hosts[source].Domain(r.ctx, r.vm.ID)
		if err != nil || failed != nil {
			continue
		}
		s, t := here.State, there.State
		if s.Executes() && t.Executes() {
			r.fail("it runs twice: at the source it is %v, at the target %v", s, t)
			return
		}
		if !kept(s) && !kept(t) {
			again, err := r.hosts[target].Domain(r.ctx, r.vm.ID)
			if err == nil && !kept(again.State) {
				r.fail("it is lost: at the source it is %v, at the target %v", s, t)
				return
			}
		}
	}
}

// kept reports whether a VM can be had back from a domain in the state.
func kept(s hypervisor.DomainState) bool {
	return s.HoldsState() || s == hypervisor.Crashed || s == hypervisor.Shutoff
}
