//go:build linux

package backendtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
)

// A host with twelve VMs is drained, and while it is, every process is killed in turn: the
// leading controller and the other one, the agents of the source and of a target, a member
// of etcd, the QEMU of a VM that moves at its source and at its target, all by SIGKILL, and
// the link of a target is cut. Whatever dies is started again. Never do two QEMUs run a VM;
// in the end each runs exactly once, whole, away from the host that is drained, every
// migration has ended, and nothing is left of what was moved.
//
// Each seed is another plan. GODWIT_CRASHES=10 takes ten, from GODWIT_SEED or 1 on.
func TestDrainUnderCrashes(t *testing.T) {
	testutil.Sample(t, 4)
	var lines []string
	for _, seed := range backendtest.Seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			lines = append(lines, fmt.Sprintf("%4d%s", seed, playRound(t, seed)))
		})
	}
	if len(lines) == 0 {
		return
	}
	head := "seed"
	for v := range victims {
		head += fmt.Sprintf("%13s", v)
	}
	t.Logf("killed (and missed, when it was not there), and what became of the moves:\n%s%s\n%s",
		head, "  moves, what they ended by, VMs started anew, the longest downtime of a move",
		strings.Join(lines, "\n"))
}

// A round is one drain.
type round struct {
	*cluster
	tally
	ctx   context.Context
	mends []mend
	down  int // the member of etcd that is, or -1
}

// A mend is something to be put right at its time.
type mend struct {
	at time.Time
	do func()
}

// playRound plays a round and answers its line of the table.
func playRound(t *testing.T, seed uint64) string {
	noLeaks(t)
	grace := 2 * time.Second // even seeds: a host is lost with its agent
	if seed%2 == 1 {
		grace = 30 * time.Second // odd ones: its agent returns before
	}
	r := &round{cluster: newCluster(t, 3, grace), ctx: t.Context(), down: -1}
	r.populate(testutil.Rounds(t, 4, 12))
	plan := draw(seed, 2)
	if !testutil.InLongTier() {
		plan = plan[:3]
	}
	t.Logf("the plan of seed %d: %v", seed, plan)
	if out, err := r.godwit("drain", string(hosts[0])); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	began := time.Now()
	for _, m := range plan {
		r.sleep(m.wait)
		what := r.strike(m)
		t.Logf("%5.1fs %s: %s", time.Since(began).Seconds(), m.victim, what)
	}
	for len(r.mends) > 0 {
		r.sleep(50 * time.Millisecond)
	}
	l, err := r.settle(r.ctx, r.store, r.vms, hosts[0], 3*time.Minute)
	if l == nil {
		t.Fatal(err)
	}
	t.Logf("at rest %.1f s after the drain began", time.Since(began).Seconds())
	line := r.columns() + r.told(l)
	if err = errors.Join(err, r.explained(l), r.end(l)); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	return line
}

// sleep lets time pass, and puts right what is due.
func (r *round) sleep(d time.Duration) {
	for deadline := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		now := time.Now()
		due := slices.IndexFunc(r.mends, func(m mend) bool { return now.After(m.at) })
		if due >= 0 {
			do := r.mends[due].do
			r.mends = slices.Delete(r.mends, due, due+1)
			do()
			continue
		}
		if now.After(deadline) {
			return
		}
	}
}

// later puts something right after a pause.
func (r *round) later(pause time.Duration, do func()) {
	r.mends = append(r.mends, mend{time.Now().Add(pause), do})
}

// strike carries out one crash, and says what it was.
func (r *round) strike(m crash) (what string) {
	done := false
	switch m.victim {
	case leadingController:
		leads, _ := r.leader(r.ctx)
		what, done = leads.name, leads.kill(m.pause)
	case otherController:
		_, other := r.leader(r.ctx)
		what, done = other.name, other.kill(m.pause)
	case sourceAgent:
		_, when := r.target(m)
		what, done = "agent/h1"+when, r.daemon("agent/h1").kill(m.pause)
	case targetAgent:
		h, when := r.target(m)
		what, done = "agent/"+string(h)+when, r.daemon("agent/"+string(h)).kill(m.pause)
	case etcdMember:
		what, done = r.killMember(int(m.choice%3), m.pause)
	case sourceQEMU, targetQEMU:
		what, done = r.killMoving(m.victim == targetQEMU, m.choice)
	case link:
		h, when := r.target(m)
		what, done = r.cut(h, m.pause)
		what += when
	}
	if !done {
		r.missed[m.victim]++
		return what + ": it was not there"
	}
	r.tally.killed[m.victim]++
	return what
}

// target chooses the target of a strike. Every second strike of a kind is at the moment at
// which a VM stops for its switch-over, and at that VM's target.
func (r *round) target(m crash) (h hostName, when string) {
	any := hosts[1+m.choice%2]
	if r.tally.killed[m.victim]%2 == 0 {
		return any, ""
	}
	for patience := time.After(6 * time.Second); ; {
		select {
		case q := <-r.stops:
			for _, other := range r.of()[q.vm] {
				if q.host == hosts[0] && other.host != q.host {
					return other.host, fmt.Sprintf(" when %s stopped to switch over", q.vm)
				}
			}
		case <-patience:
			return any, ""
		}
	}
}

// killMember kills a member of etcd, unless one is down: two of three must answer.
func (r *round) killMember(i int, pause time.Duration) (what string, done bool) {
	if r.down >= 0 {
		return "another is down", false
	}
	r.down = i
	r.etcd.Kill(i)
	r.later(pause, func() { r.etcd.Restart(i); r.down = -1 })
	return fmt.Sprintf("member %d", i), true
}

// killMoving kills a QEMU of a VM that has two: one at the source, one at the target. It
// waits for one to move.
func (r *round) killMoving(target bool, choice uint32) (what string, done bool) {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		var moving []*qemuPath
		for _, list := range r.of() {
			for _, q := range list {
				if len(list) == 2 && (q.host != hosts[0]) == target {
					moving = append(moving, q)
				}
			}
		}
		slices.SortFunc(moving, func(a, b *qemuPath) int { return cmp.Compare(a.vm, b.vm) })
		if len(moving) > 0 {
			q := moving[int(choice%uint32(len(moving)))]
			r.cluster.killed[q.vm]++
			return fmt.Sprintf("%v of %s", q, q.vm), r.kill(q)
		}
		r.sleep(10 * time.Millisecond)
	}
	return "no VM moves", false
}

// cut drops all that goes to a host and comes from it, for a while.
func (r *round) cut(h hostName, pause time.Duration) (what string, done bool) {
	rule := func(op string) error {
		for _, side := range []string{"-s", "-d"} {
			out, err := exec.Command("iptables", "-w", op, "INPUT", side, address(h), "-j",
				"DROP").CombinedOutput()
			if err != nil {
				return fmt.Errorf("iptables: %w: %s", err, out)
			}
		}
		return nil
	}
	if err := rule("-A"); err != nil {
		return fmt.Sprintf("it cannot be cut here: %v", err), false
	}
	r.later(pause, func() {
		if err := rule("-D"); err != nil {
			r.t.Errorf("the link of %s stays cut: %v", h, err)
		}
	})
	return string(h), true
}

// told says how the migrations ended, and what the VMs felt.
func (r *round) told(l *ledger) string {
	ends := map[string]int{}
	for _, m := range l.moves {
		switch _, unknown := unresolved(m); {
		case unknown:
			ends["Unknown"]++
		case m.State.Phase == migration.Failed:
			ends["Failed "+m.State.Because]++
		default:
			ends[m.State.Phase.String()]++
		}
	}
	text := fmt.Sprintf("  %d moves:", len(l.moves))
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		text += fmt.Sprintf(" %d %s,", ends[end], end)
	}
	anew, longest, whose := 0, guest.Gap{}, vmid("")
	for _, id := range r.vms {
		switch h := r.rhythm(id); {
		case h.Boots > 1:
			anew++
		case h.Move.Length > longest.Length:
			longest, whose = h.Move, id
		}
	}
	return fmt.Sprintf("%s %d anew, downtime %v of %s from %s on", text, anew,
		longest.Length.Round(time.Millisecond), whose, longest.Begin.UTC().Format("15:04:05.0"))
}

// explained checks that an operator is told which evidence is missing.
func (r *round) explained(l *ledger) error {
	var bad []error
	for _, m := range l.moves {
		why, unknown := unresolved(m)
		if !unknown {
			continue
		}
		out, err := r.godwit("explain", string(m.Spec.ID))
		if err == nil && !strings.Contains(out, why) {
			err = fmt.Errorf("%s is Unknown, and the evidence that is missing, %q, is not "+
				"named: %s", m.Spec.ID, why, out)
		}
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}
