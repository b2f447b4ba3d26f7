package convergence_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// invariants hold at every look, whatever the history was.
var invariants = []struct {
	name  string
	holds func(scene) bool
}{
	{"a transfer in post-copy is left alone", func(sc scene) bool {
		return !sc.after.PostCopy || sc.verdict == goOn
	}},
	{"nothing is done while a cancel is under way, but that Legacy assists", func(sc scene) bool {
		assists := sc.config.Method == convergence.Legacy && sc.config.AllowWorkloadDisruption
		return !sc.before.Aborting || sc.verdict == goOn ||
			(assists && sc.verdict.Action != convergence.Abort)
	}},
	{"post-copy is started only where it is allowed and possible", func(sc scene) bool {
		return sc.verdict.Action != convergence.StartPostCopy ||
			(sc.config.AllowPostCopy && !sc.config.VFIO)
	}},
	{"the guest is paused only where disruption is allowed and heeded", func(sc scene) bool {
		return sc.verdict.Action != convergence.Pause ||
			(sc.config.AllowWorkloadDisruption && !sc.config.VFIO)
	}},
	{"a paused guest is not paused again", func(sc scene) bool {
		return sc.verdict.Action != convergence.Pause || !sc.after.Paused
	}},
	{"a downtime above MaxDowntime needs leave", func(sc scene) bool {
		return sc.verdict.Limit <= most(sc.config) || (sc.config.AllowWorkloadDisruption &&
			sc.verdict.Why != convergence.Tuning)
	}},
	{"a downtime limit is whole milliseconds, from 1 to QEMU's most", func(sc scene) bool {
		l := sc.verdict.Limit
		return sc.verdict.Action != convergence.SetDowntime ||
			(l >= ms && l <= 2000*time.Second && l%ms == 0)
	}},
	{"tuning never lowers an accepted limit", func(sc scene) bool {
		return sc.verdict.Why != convergence.Tuning || sc.verdict.Limit > sc.before.Limit.Now ||
			!sc.before.Limit.Set
	}},
	{"only SetDowntime has a limit, only Continue no reason", func(sc scene) bool {
		v := sc.verdict
		return (v.Limit != 0) == (v.Action == convergence.SetDowntime) &&
			(v.Why == convergence.NoReason) == (v.Action == convergence.Continue)
	}},
	{"without timeouts nothing is given up", func(sc scene) bool {
		timeless := sc.config.ProgressTimeout == 0 && sc.config.CompletionTimeoutPerGiB == 0
		return !timeless || sc.verdict.Action != convergence.Abort
	}},
	{"nothing is asked for in a calm, unless a pass has ended", func(sc scene) bool {
		s, p := sc.before, sc.progress
		return s.Calm == 0 || sc.now.Sub(s.Started) > s.Calm || p.Iteration > s.Iteration ||
			sc.verdict == goOn
	}},
	{"the memory is bounded", func(sc scene) bool {
		return len(sc.after.Stall.Candidates) <= 64 && len(sc.after.Stall.Seen) <= 64
	}},
}

// most returns the longest downtime that c allows.
func most(c convergence.Config) time.Duration {
	if c.MaxDowntime <= 0 {
		return 900 * ms
	}
	return max(c.MaxDowntime, ms)
}

func TestInvariants(t *testing.T) {
	for _, inv := range invariants {
		t.Run(inv.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				history(t, false, func(sc scene) {
					if !inv.holds(sc) {
						t.Fatalf("%s, but %+v gave %s", inv.name, sc.after, sc.verdict)
					}
				})
			})
		})
	}
}

func TestAnAbortStaysDueAsTimePasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "wait"))
		history(t, false, func(sc scene) {
			_, later := convergence.Converge(sc.config, sc.before, sc.progress, sc.now.Add(wait))
			if sc.verdict.Action == convergence.Abort && later == goOn {
				t.Fatalf("%s became nothing after another %s", sc.verdict, wait)
			}
			if sc.config.Method == convergence.Legacy && sc.verdict != goOn && later == goOn {
				t.Fatalf("Legacy: %s became nothing after another %s", sc.verdict, wait)
			}
		})
	})
}

func TestAnAbortIsAskedForUntilItIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, false, func(sc scene) {
			if sc.verdict.Action != convergence.Abort || sc.config.Method == convergence.Stall {
				return
			}
			s, v := convergence.Converge(sc.config, sc.after, sc.progress, sc.now)
			if again := v.Action != convergence.Continue; !again {
				t.Fatalf("%s was not answered and not repeated", sc.verdict)
			}
			_, v = convergence.Converge(sc.config, s.Accepted(v, sc.now), sc.progress, sc.now)
			if v.Action == convergence.Abort {
				t.Fatalf("%s was accepted and repeated", sc.verdict)
			}
		})
	})
}

func TestAnEndedTransferIsLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := []hypervisor.JobStatus{hypervisor.JobSucceeded, hypervisor.JobFailed,
			hypervisor.JobCancelled, hypervisor.JobBroken}
		history(t, true, func(sc scene) {
			for _, end := range ends {
				sc.progress.Status = end
				s, v := convergence.Converge(sc.config, sc.before, sc.progress, sc.now)
				same2(t, "verdict", goOn, v)
				same2(t, "state", sc.before, s)
			}
		})
	})
}

// A transfer whose backlog falls with every pass, and whose data moves, is never
// given up within its budget by godwit's own method.
func TestAConvergingTransferIsNotGivenUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := transfer{config: drawConfig(t, false)}
		x.config.Method, x.config.Memory = convergence.Watermark, 4*gib
		x.config.ProgressTimeout = time.Duration(rapid.Int64Range(2e9, 9e9).Draw(t, "patience"))
		x.config.CompletionTimeoutPerGiB = 100 * time.Second
		p := sample(1, 4*gib)
		backlog, end := p.Remaining, 400
		for s := 0; s < end && backlog > 1; s++ {
			p.Sent += hypervisor.Bytes(rapid.Int64Range(1, 9e8).Draw(t, "sent"))
			p.Remaining = max(p.Remaining-1, 0)
			if rapid.IntRange(0, 9).Draw(t, "pass ends") == 0 {
				backlog = hypervisor.Bytes(rapid.Int64Range(0, int64(backlog)-1).Draw(t, "left"))
				p.Iteration, p.Remaining = p.Iteration+1, backlog
			}
			if p.Iteration == 2 && end == 400 { // the data is known, and with it the budget
				end = min(400, s+100*int(min(p.Sent, 4*gib).CeilGiB()))
			}
			if v := x.obey(float64(s), p); v.Action == convergence.Abort {
				t.Fatalf("after %d s of %d: %s", s, end, v)
			}
		}
	})
}

func TestPredictErrsOnTheLongSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		remaining := hypervisor.Bytes(rapid.Int64().Draw(t, "remaining"))
		dirty := hypervisor.Bandwidth(rapid.Int64().Draw(t, "dirty rate"))
		speed := hypervisor.Bandwidth(rapid.Int64().Draw(t, "bandwidth"))
		limit := time.Duration(rapid.Int64().Draw(t, "limit"))
		e := convergence.Predict(remaining, dirty, speed, limit)
		if e.Converges && e.Left < max(e.Downtime, remaining.At(speed)) {
			t.Fatalf("%+v is shorter than to send %s once", e, remaining)
		}
		if !e.Converges && e.Left != hypervisor.Forever {
			t.Fatalf("%+v does not converge and ends", e)
		}
		less := convergence.Predict(remaining, dirty/2, speed, limit)
		if dirty >= 0 && e.Converges && !less.Converges {
			t.Fatalf("half the dirty rate: %+v became %+v", e, less)
		}
	})
}

// A transfer is calm in its first pass, until that should have ended or a deadline comes, and
// never when there is something to be done.
func TestTheFirstPassIsCalm(t *testing.T) {
	sends := hypervisor.Progress{Status: hypervisor.JobActive, Iteration: 1, Total: 10 * gib,
		Sent: gib, Remaining: 9 * gib, Bandwidth: hypervisor.Bandwidth(gib)}
	for _, r := range []struct {
		name  string
		how   func(*convergence.Config, *hypervisor.Progress)
		until time.Duration
	}{
		{"until the pass should have ended, and a second", nil, 12 * time.Second},
		{"until data should have moved", func(c *convergence.Config, _ *hypervisor.Progress) {
			c.ProgressTimeout = 5 * time.Second
		}, 6 * time.Second},
		{"until the budget is used up", func(c *convergence.Config, _ *hypervisor.Progress) {
			c.CompletionTimeoutPerGiB = 500 * ms
		}, 5 * time.Second},
		{"not in the second pass", func(_ *convergence.Config, p *hypervisor.Progress) {
			p.Iteration = 2
		}, 0},
		{"not before memory moves", func(_ *convergence.Config, p *hypervisor.Progress) {
			p.Status = hypervisor.JobSetup
		}, 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			x, p := transfer{}, sends
			if r.how != nil {
				r.how(&x.config, &p)
			}
			if x.obey(1, p); x.state.Calm != 0 {
				t.Errorf("calm until %v with a limit to be set", x.state.Calm)
			}
			if x.look(2, p); x.state.Calm != r.until {
				t.Errorf("calm until %v, want %v", x.state.Calm, r.until)
			}
		})
	}
}
