package convergence_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// A monitor is KubeVirt's rule list taken literally: nanoseconds and seconds as
// plain integers, one mutable struct, one word for what was called.
type monitor struct {
	disrupt, postCopy, vfio     bool
	progressTimeout, acceptable int64 // seconds
	lastProgress                int64 // nanoseconds since the start
	watermark                   uint64
	mode, abortStatus           string
}

// tick is one tick of the monitor; the call to the hypervisor succeeds or not.
func (m *monitor) tick(elapsed int64, unbounded bool, remaining uint64, succeeds bool) string {
	if unbounded {
		if m.watermark == 0 || remaining < m.watermark {
			m.lastProgress = elapsed
		}
		m.watermark = remaining
	}
	overdue := m.acceptable != 0 && elapsed/1e9 > m.acceptable
	idle := (elapsed - m.lastProgress) / 1e9
	switch {
	case m.mode == "PostCopy":
	case m.disrupt && overdue && m.mode != "Paused":
		return m.assist(succeeds)
	case m.progressTimeout != 0 && idle > m.progressTimeout:
		return m.cancel(succeeds)
	case overdue:
		return m.cancel(succeeds)
	}
	return ""
}

func (m *monitor) assist(succeeds bool) string {
	called, mode := "suspend", "Paused"
	switch {
	case m.postCopy && !m.vfio:
		called, mode = "post-copy", "PostCopy"
	case m.vfio:
		called = "max-downtime " + time.Duration(min(2*m.acceptable*1000, 2000000)*1e6).String()
	}
	if succeeds {
		m.mode = mode
		if mode == "Paused" {
			m.acceptable *= 2
		}
	}
	return called
}

func (m *monitor) cancel(succeeds bool) string {
	if m.abortStatus == "Aborting" {
		return ""
	}
	if succeeds {
		m.abortStatus = "Aborting"
	}
	return "abort"
}

// called returns the oracle's word for a verdict.
func called(v convergence.Decision) string {
	switch v.Action {
	case convergence.StartPostCopy:
		return "post-copy"
	case convergence.Pause:
		return "suspend"
	case convergence.SetDowntime:
		return "max-downtime " + v.Limit.String()
	case convergence.Abort:
		return "abort"
	}
	return ""
}

func TestLegacyAgreesWithKubeVirtsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.Bool()
		c := convergence.Config{Method: convergence.Legacy,
			Memory:                  hypervisor.Bytes(rapid.IntRange(1, 4).Draw(t, "GB")) * 1e9,
			CompletionTimeoutPerGiB: span(t, "per GiB"), ProgressTimeout: span(t, "progress") / 5,
			AllowPostCopy: flag.Draw(t, "post-copy"), VFIO: flag.Draw(t, "vfio"),
			AllowWorkloadDisruption: flag.Draw(t, "disruption")}
		oracle := monitor{disrupt: c.AllowWorkloadDisruption, postCopy: c.AllowPostCopy,
			vfio: c.VFIO, progressTimeout: int64(c.ProgressTimeout / time.Second),
			acceptable: int64(c.CompletionTimeoutPerGiB/time.Second) * int64(c.Memory/1e9)}
		var s convergence.State
		elapsed := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			statuses := rapid.SampledFrom([]hypervisor.JobStatus{0, 1, 2, 2, 2, 3})
			p := hypervisor.Progress{Started: noon, Iteration: 1,
				Status:    statuses.Draw(t, "status"),
				Remaining: hypervisor.Bytes(max(5, rapid.IntRange(0, 9).Draw(t, "remaining")))}
			succeeds, fails := flag.Draw(t, "succeeds"), flag.Draw(t, "a cancel fails")
			now := noon.Add(time.Duration(elapsed))
			var v convergence.Decision
			s, v = convergence.Converge(c, s, p, now)
			want := oracle.tick(elapsed, p.Status != 0, uint64(p.Remaining), succeeds)
			if got := called(v); got != want {
				t.Fatalf("at %s: KubeVirt calls %q, Legacy %q", time.Duration(elapsed), want, got)
			}
			s = answer(s, v, succeeds, now)
			if fails && s.Aborting {
				s, oracle.abortStatus = s.Refused(tooLate), "Failed"
			}
			elapsed += rapid.Int64Range(-2e9, 8e9).Draw(t, "later")
		}
	})
}

// span draws none or some seconds.
func span(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.Int64Range(0, 30e9).Draw(t, what))
}

// answer tells the state what the hypervisor said to v.
func answer(
	s convergence.State, v convergence.Decision, succeeds bool, now time.Time,
) convergence.State {
	switch {
	case v == goOn:
		return s
	case succeeds:
		return s.Accepted(v, now)
	}
	return s.Refused(v)
}
