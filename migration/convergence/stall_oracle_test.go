package convergence_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// A detector is KubeVirt's stall detector taken literally: floats, milliseconds,
// a history without bound. It speaks once in each tick, as godwit does.
type detector struct {
	post, disrupt, vfio, anywhere     bool
	maxMs, window, margin, acceptable float64 // window in ms, margin in percent
	decay                             float64
	switchover                        int64 // seconds

	limited, stalled, initiated, outside, aborting bool
	mode                                           string
	ewma, last, outsideMin, best                   float64
	relaxAt, patience                              float64
	deadline                                       int64
	candidates                                     [][2]float64 // ms, bytes
	heap                                           []float64
}

// An input is what one tick sees; the call that it leads to succeeds or not.
type input struct {
	elapsed             int64 // ns
	boundary            bool
	remaining, bps      float64
	paused, ok, stopped bool // stopped: the hypervisor switches over
}

func (d *detector) tick(in input) string {
	if (in.paused || in.stopped) && d.mode == "" {
		d.mode = "Paused"
	}
	if d.aborting {
		return ""
	}
	switch {
	case in.boundary:
		d.last = in.remaining
		if d.iterate(float64(in.elapsed/1e6), in.remaining) {
			if call := d.decide(in); call != "" {
				return call
			}
		}
	case d.mode != "":
		d.last = in.remaining
	case d.ewma == 0:
		d.ewma = in.bps
	default:
		d.ewma = 0.4*in.bps + (1-0.4)*d.ewma
	}
	if call := d.timeouts(in); call != "" {
		return call
	}
	if !d.limited && d.mode != "PostCopy" {
		d.limited = in.ok
		return "max-downtime " + (time.Duration(min(d.maxMs, 300)) * ms).String()
	}
	return ""
}

func (d *detector) iterate(now, remaining float64) bool {
	if d.ewma == 0 || d.initiated {
		return false
	}
	for len(d.candidates) > 0 && now-d.candidates[0][0] >= d.window {
		if out := d.candidates[0][1]; !d.outside || out < d.outsideMin {
			d.outside, d.outsideMin = true, out
		}
		d.candidates = d.candidates[1:]
	}
	n := len(d.candidates)
	if (!d.outside || remaining <= d.outsideMin) && (n == 0 || remaining < d.candidates[n-1][1]) {
		d.candidates = append(d.candidates, [2]float64{now, remaining})
	}
	if d.stalled {
		d.heap = append(d.heap, remaining)
		if now >= d.relaxAt {
			d.best = slices.Min(d.heap)
			i := slices.Index(d.heap, d.best)
			d.heap = slices.Delete(d.heap, i, i+1)
			d.patience = float64(uint64(d.patience * d.decay))
			d.relaxAt = now + d.patience
		}
		return true
	}
	if d.outside && remaining >= float64(uint64(d.outsideMin*(1-d.margin/100))) {
		d.stalled, d.best, d.patience = true, d.outsideMin, d.window
		for _, c := range d.candidates {
			d.best = min(d.best, c[1])
		}
		d.relaxAt = now + d.patience
	}
	return d.stalled
}

func (d *detector) estimate() float64 {
	return float64(uint32(min(d.last/(d.ewma/1000), 1<<32-1)))
}

func (d *detector) decide(in input) string {
	if in.remaining > float64(uint64(d.best*(1+d.margin/100))) && !d.anywhere {
		return ""
	}
	if d.estimate() > (d.acceptable*2-float64(in.elapsed/1e9))*1000 {
		return ""
	}
	switch {
	case d.disrupt && d.post && !d.vfio:
		return d.startPostCopy(in)
	case d.disrupt:
		return d.force(in, 2000000)
	case d.estimate() <= d.maxMs*1.5:
		return d.force(in, d.maxMs)
	}
	d.initiated = in.ok
	return d.abort(in)
}

func (d *detector) force(in input, limit float64) string {
	if in.ok {
		d.initiated, d.deadline = true, in.elapsed/1e9+d.switchover
	}
	return "max-downtime " + (time.Duration(limit) * ms).String()
}

func (d *detector) startPostCopy(in input) string {
	if in.ok {
		d.initiated, d.mode = true, "PostCopy"
	}
	return "post-copy"
}

func (d *detector) abort(in input) string {
	d.aborting = in.ok
	return "abort"
}

func (d *detector) timeouts(in input) string {
	deadline := d.deadline
	if d.mode == "Paused" {
		deadline = int64(d.acceptable)
	}
	elapsed := in.elapsed / 1e9
	if d.acceptable == 0 || elapsed <= deadline || d.mode == "PostCopy" {
		return ""
	}
	if d.ewma != 0 && !d.initiated && d.estimate() <= (d.acceptable*2-float64(elapsed))*1000 {
		if d.post && !d.vfio {
			return d.startPostCopy(in)
		}
		if d.disrupt {
			if in.ok {
				d.acceptable *= 2
			}
			return d.force(in, 2000000)
		}
	}
	return d.abort(in)
}

func TestStallAgreesWithKubeVirtsDetector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.Bool()
		d := detector{post: flag.Draw(t, "post-copy"), disrupt: flag.Draw(t, "disruption"),
			vfio: flag.Draw(t, "vfio"), anywhere: flag.Draw(t, "anywhere"),
			margin:     float64(rapid.SampledFrom([]int{4, 4, 0, 1, 50, 100}).Draw(t, "margin")),
			decay:      rapid.SampledFrom([]float64{0.5, 0.5, 0, 1, 0.125}).Draw(t, "decay"),
			switchover: rapid.SampledFrom([]int64{60, 60, 0, 5}).Draw(t, "switch-over"),
			maxMs:      float64(rapid.IntRange(1, 3000).Draw(t, "max")),
			window:     float64(rapid.IntRange(0, 40).Draw(t, "window")) * 1000,
			acceptable: float64(rapid.IntRange(0, 900).Draw(t, "acceptable"))}
		d.deadline = int64(d.acceptable)
		c := convergence.Config{Method: convergence.Stall, Memory: 1e9,
			CompletionTimeoutPerGiB: time.Duration(d.acceptable) * time.Second,
			MaxDowntime:             time.Duration(d.maxMs) * ms,
			AllowPostCopy:           d.post, AllowWorkloadDisruption: d.disrupt, VFIO: d.vfio}
		sd := convergence.DefaultStallDetector()
		sd.SearchLocalMinima, sd.StallMargin = !d.anywhere, int(d.margin)
		sd.StallProgressTimeout = time.Duration(d.window) * ms
		sd.PatienceWindowDecayFactor = d.decay
		sd.SwitchoverTimeout = time.Duration(d.switchover) * time.Second
		c.StallDetector = &sd
		compareStall(t, c, &d)
	})
}

// compareStall shows the same transfer to both.
func compareStall(t *rapid.T, c convergence.Config, d *detector) {
	var s convergence.State
	p := hypervisor.Progress{Started: noon, Iteration: 0}
	for i, elapsed := 0, int64(0); i < 64; i++ {
		in := input{elapsed: elapsed, boundary: i > 0 && rapid.IntRange(0, 3).Draw(t, "pass") > 0,
			remaining: float64(rapid.Int64Range(1e9, 3e9).Draw(t, "remaining")),
			bps:       float64(rapid.Int64Range(0, 2e9).Draw(t, "bandwidth")),
			paused:    rapid.IntRange(0, 30).Draw(t, "paused") == 30,
			stopped:   rapid.IntRange(0, 30).Draw(t, "switching") == 30,
			ok:        rapid.Bool().Draw(t, "succeeds")}
		p.Status, p.Mode = hypervisor.JobActive, hypervisor.PreCopy
		if in.stopped {
			p.Status = hypervisor.JobSwitching
		}
		if in.paused {
			p.Mode = hypervisor.PausedCopy
		}
		if in.boundary {
			p.Iteration++
		}
		p.Remaining, p.Bandwidth = hypervisor.Bytes(in.remaining), hypervisor.Bandwidth(in.bps)
		now := noon.Add(time.Duration(elapsed))
		var v convergence.Decision
		s, v = convergence.Converge(c, s, p, now)
		if got, want := called(v), d.tick(in); got != want {
			t.Fatalf("look %d: KubeVirt calls %q, Stall %q", i, want, got)
		}
		s = answer(s, v, in.ok, now)
		elapsed += rapid.Int64Range(0, 20e9).Draw(t, "later")
	}
}
