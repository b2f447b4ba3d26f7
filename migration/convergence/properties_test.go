package convergence_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// A scene is one look in a drawn history, and what came of it.
type scene struct {
	config        convergence.Config
	before, after convergence.State // after: before the hypervisor has answered
	progress      hypervisor.Progress
	now           time.Time
	verdict       convergence.Decision
}

// history draws a configuration and a history of looks, and shows each scene.
// wild draws figures that no hypervisor reports, and clocks that go back.
func history(t *rapid.T, wild bool, show func(scene)) {
	sc := scene{config: drawConfig(t, wild), now: noon}
	for range rapid.IntRange(1, 40).Draw(t, "looks") {
		sc.progress = drawProgress(t, wild)
		sc.after, sc.verdict = convergence.Converge(sc.config, sc.before, sc.progress, sc.now)
		show(sc)
		sc.before = answer(sc.after, sc.verdict, rapid.Bool().Draw(t, "ok"), sc.now)
		sc.now = sc.now.Add(drawStep(t, wild))
	}
}

func drawConfig(t *rapid.T, wild bool) convergence.Config {
	flag := rapid.Bool()
	c := convergence.Config{Method: convergence.Method(rapid.IntRange(0, 2).Draw(t, "method")),
		Memory:                  hypervisor.Bytes(rapid.Int64Range(0, 4e9).Draw(t, "memory")),
		CompletionTimeoutPerGiB: span(t, "per GiB"), ProgressTimeout: span(t, "progress"),
		MaxDowntime:   time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "max")),
		AllowPostCopy: flag.Draw(t, "post-copy"), VFIO: flag.Draw(t, "vfio"),
		AllowWorkloadDisruption: flag.Draw(t, "disruption")}
	if flag.Draw(t, "local disks") {
		c.Disks = hypervisor.Bytes(rapid.Int64Range(1, 9e9).Draw(t, "disks"))
	}
	if flag.Draw(t, "tuning") {
		c.DowntimeTuning = &convergence.DowntimeTuning{Cooldown: span(t, "cool-down")}
	}
	if !wild {
		return c
	}
	any64, float := rapid.Int64(), rapid.Float64()
	c.Method = convergence.Method(rapid.Uint8().Draw(t, "any method"))
	c.Memory = hypervisor.Bytes(any64.Draw(t, "any memory"))
	c.Disks = hypervisor.Bytes(any64.Draw(t, "any disks"))
	c.CompletionTimeoutPerGiB = time.Duration(any64.Draw(t, "any per GiB"))
	c.ProgressTimeout = time.Duration(any64.Draw(t, "any progress"))
	c.MaxDowntime = time.Duration(any64.Draw(t, "any max"))
	c.StallDetector = &convergence.StallDetector{StallMargin: rapid.Int().Draw(t, "margin"),
		StallProgressTimeout:      time.Duration(any64.Draw(t, "window")),
		EWMAAlpha:                 float.Draw(t, "alpha"),
		PatienceWindowDecayFactor: float.Draw(t, "decay"),
		CompletionTimeoutFactor:   float.Draw(t, "factor")}
	return c
}

func drawProgress(t *rapid.T, wild bool) hypervisor.Progress {
	p := hypervisor.Progress{Started: noon, Status: hypervisor.JobActive, Total: 4 * gib,
		Iteration: rapid.IntRange(0, 20).Draw(t, "iteration"),
		Mode:      rapid.SampledFrom([]hypervisor.Mode{0, 0, 0, 0, 0, 0, 1, 2}).Draw(t, "mode"),
		Sent:      hypervisor.Bytes(rapid.Int64Range(0, 9e9).Draw(t, "sent")),
		Remaining: hypervisor.Bytes(rapid.Int64Range(0, 3e9).Draw(t, "remaining")),
		DirtyRate: hypervisor.Bandwidth(rapid.Int64Range(0, 2e9).Draw(t, "dirty rate")),
		Bandwidth: hypervisor.Bandwidth(rapid.Int64Range(0, 2e9).Draw(t, "bandwidth")),
		Throttle:  rapid.IntRange(0, 99).Draw(t, "throttle")}
	if wild {
		any64 := rapid.Int64()
		p.Status = hypervisor.JobStatus(rapid.Uint8Range(0, 12).Draw(t, "any status"))
		p.Mode = hypervisor.Mode(rapid.Uint8().Draw(t, "any mode"))
		p.Iteration = int(any64.Draw(t, "any iteration"))
		p.Total = hypervisor.Bytes(any64.Draw(t, "any total"))
		p.Sent = hypervisor.Bytes(any64.Draw(t, "any sent"))
		p.Remaining = hypervisor.Bytes(any64.Draw(t, "any remaining"))
		p.DirtyRate = hypervisor.Bandwidth(any64.Draw(t, "any dirty rate"))
		p.Bandwidth = hypervisor.Bandwidth(any64.Draw(t, "any bandwidth"))
		p.Throttle = int(any64.Draw(t, "any throttle"))
		p.Started = time.Unix(rapid.Int64Range(-4e9, 8e9).Draw(t, "any start"), 0)
	}
	return p
}

func drawStep(t *rapid.T, wild bool) time.Duration {
	if wild {
		return time.Duration(rapid.Int64Range(-1e17, 1e17).Draw(t, "any step"))
	}
	return time.Duration(rapid.Int64Range(0, 20e9).Draw(t, "step"))
}

// stored returns s as it comes back from a store.
func stored(t *rapid.T, s convergence.State) convergence.State {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("cannot store %+v: %v", s, err)
	}
	var back convergence.State
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("cannot read %s: %v", text, err)
	}
	return back
}

func TestAnythingHasAnAnswerAndCanBeStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, true, func(sc scene) {
			if sc.verdict.Action > convergence.Abort || sc.verdict.Limit < 0 {
				t.Fatalf("verdict %+v", sc.verdict)
			}
			if diff := cmp.Diff(sc.after, stored(t, sc.after), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("state after storing it (-want +got):\n%s", diff)
			}
			if b := sc.after.Bandwidth; b < 0 || math.IsNaN(b) {
				t.Fatalf("bandwidth %v", b)
			}
		})
	})
}

func TestAStoredStateDecidesAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, false, func(sc scene) {
			back := stored(t, sc.before)
			s, v := convergence.Converge(sc.config, back, sc.progress, sc.now)
			same2(t, "verdict", sc.verdict, v)
			same2(t, "state", sc.after, s)
		})
	})
}

func TestAVerdictDependsOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, true, func(sc scene) {
			keep := stored(t, sc.before)
			s, v := convergence.Converge(sc.config, sc.before, sc.progress, sc.now)
			same2(t, "verdict of a second look at the same", sc.verdict, v)
			same2(t, "state after a second look at the same", sc.after, s)
			same2(t, "state before, which must not be written", keep, sc.before)
		})
	})
}

func same2(t *rapid.T, what string, want, got any) {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
