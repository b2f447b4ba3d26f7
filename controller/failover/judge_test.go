package failover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller/failover"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
)

func fencing(by, trouble string) *record.Fencing {
	return &record.Fencing{Boot: "b1", By: by, Error: trouble}
}

// sees is a host of which nothing depends, hears one that has given a sign, and misses one
// with VMs to be rebuilt.
func sees(h *record.Host, boot string, silence time.Duration) failover.Sight {
	return failover.Sight{Host: h, Boot: boot, Silence: silence}
}

func hears(h *record.Host, boot string, silence time.Duration) failover.Sight {
	return failover.Sight{Host: h, Boot: boot, Silence: silence, Beats: true}
}

func misses(h *record.Host, boot string, silence time.Duration) failover.Sight {
	return failover.Sight{Host: h, Boot: boot, Silence: silence, Worth: true}
}

// waits is a host that is heard while others are not.
func waits(h *record.Host) failover.Sight {
	return failover.Sight{Host: h, Boot: "b1", Waits: "n2 is not heard"}
}

// that returns a host.
func that(how func(*record.Host)) *record.Host {
	h := &record.Host{Host: hypervisor.Host{Name: "n1"}}
	how(h)
	return h
}

var (
	sound = that(func(*record.Host) {})
	lost  = that(func(h *record.Host) { h.Lost = true })
	asked = that(func(h *record.Host) { h.Lost, h.Fencing = true, fencing("", "") })
	off   = that(func(h *record.Host) {
		h.Lost, h.Fenced, h.Fencing = true, true, fencing("ipmi", "")
	})
	lie = that(func(h *record.Host) {
		h.Lost, h.Fenced, h.Fencing = true, true, fencing("ipmi", "lives")
	})
	word  = that(func(h *record.Host) { h.Dead = "alice" })
	wrong = that(func(h *record.Host) {
		h.Lost, h.Fenced, h.Dead, h.Fencing = true, true, "al", fencing("operator al", "lives")
	})
	taken = that(func(h *record.Host) {
		h.Lost, h.Fenced, h.Fencing = true, true, fencing("operator al", "")
	})
	foreign    = that(func(h *record.Host) { h.Lost, h.Fenced = true, true })
	begun      = that(func(h *record.Host) { h.Session = "s1" })
	told       = that(func(h *record.Host) { h.Session, h.Waits = "s1", "n2 is not heard" })
	admitted   = that(func(h *record.Host) { h.Session, h.Admitted = "s1", "s1" })
	again      = that(func(h *record.Host) { h.Session, h.Admitted = "s2", "s1" })
	lieAndWord = that(func(h *record.Host) { *h = *lie; h.Dead = "alice" })
)

func TestWhatBecomesOfAHost(t *testing.T) {
	const grace, after = 30 * time.Second, time.Minute
	for name, row := range map[string]struct {
		s    failover.Sight
		want failover.Verdict
	}{
		"it was heard lately": {
			sees(sound, "", grace-1), failover.Leave},
		"it is silent": {
			sees(sound, "", grace), failover.CallLost},
		"it is lost, and nothing to gain": {
			sees(lost, "", time.Hour), failover.Leave},
		"it is lost, and not for long": {
			misses(lost, "", after-1), failover.Leave},
		"it is lost for long": {
			misses(lost, "", after), failover.Fence},
		"it is being fenced": {
			misses(asked, "b1", after), failover.Fence},
		"it is lost and heard": {
			hears(lost, "", 0), failover.Recover},
		"it is being fenced and heard": {
			hears(asked, "b1", 0), failover.Recover},
		"it started anew by itself": {
			sees(asked, "b2", 0), failover.Welcome},
		"it was fenced": {
			misses(off, "b1", time.Hour), failover.Leave},
		"it was fenced and starts anew": {
			hears(off, "b2", 0), failover.Welcome},
		"it was fenced and has no lease": {
			misses(off, "", time.Hour), failover.Leave},
		"it was fenced and lives": {
			hears(off, "b1", 0), failover.Distrust},
		"it lives, as is known": {
			hears(lie, "b1", 0), failover.Leave},
		"it lived and is silent": {
			misses(lie, "b1", after), failover.Fence},
		"it lived, and somebody gives word": {
			sees(lieAndWord, "b1", grace), failover.Believe},
		"somebody gives word": {
			sees(word, "", grace), failover.Believe},
		"the word is hasty": {
			sees(word, "", grace-1), failover.Leave},
		"the word is wrong": {
			hears(word, "", 0), failover.Refuse},
		"the word was wrong": {
			misses(wrong, "b1", time.Hour), failover.Leave},
		"the word is taken back": {
			sees(taken, "b1", time.Hour), failover.Withdraw},
		"somebody else fenced it": {
			misses(foreign, "b1", time.Hour), failover.Leave},
		"somebody else fenced it, it beats": {
			hears(foreign, "b1", 0), failover.Welcome},
		"its agent has begun": {
			sees(begun, "b1", 0), failover.Admit},
		"its agent has begun, and is silent": {
			misses(begun, "b1", after), failover.Admit},
		"its agent has begun, and others were not heard": {
			waits(begun), failover.Delay},
		"its agent has begun, and it was said why it waits": {
			waits(told), failover.Leave},
		"its agent has waited": {
			sees(told, "b1", 0), failover.Admit},
		"its agent was admitted": {
			sees(admitted, "b1", 0), failover.Leave},
		"its agent was admitted, and others are not heard now": {
			waits(admitted), failover.Leave},
		"its agent has begun again": {
			sees(again, "b1", 0), failover.Admit},
	} {
		c := failover.Config{}.Complete()
		if got := failover.Judge(&c, &row.s); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// TestEveryHostIsJudgedSafely goes through every combination of what can be known.
func TestEveryHostIsJudgedSafely(t *testing.T) {
	c := failover.Config{}.Complete()
	silences := []time.Duration{0, c.Grace - 1, c.Grace, c.FenceAfter - 1, c.FenceAfter, time.Hour}
	fencings := []*record.Fencing{nil, fencing("", ""), fencing("", "failed"), fencing("ipmi", ""),
		fencing("ipmi", "lives"), fencing("operator al", ""), fencing("operator al", "lives")}
	seen := map[failover.Verdict]int{}
	for bits := range 1 << 7 {
		bit := func(i int) bool { return bits>>i&1 == 1 }
		for _, silence := range silences {
			for _, f := range fencings {
				for _, boot := range []string{"", "b1", "b2"} {
					h := &record.Host{Lost: bit(0), Fenced: bit(1), Fencing: f}
					if bit(2) {
						h.Dead = "alice"
					}
					s := failover.Sight{Host: h, Boot: boot, Beats: bit(3), Silence: silence,
						Worth: bit(4)}
					if bit(5) {
						h.Session = "new"
					}
					if bit(6) {
						s.Waits = "somebody was not heard"
					}
					v := failover.Judge(&c, &s)
					seen[v]++
					if why := unsafe(&c, &s, v); why != "" {
						t.Fatalf("%v of %+v, host %+v, fencing %+v: %s", v, s, h, f, why)
					}
				}
			}
		}
	}
	for v := failover.Leave; v <= failover.Fence; v++ {
		if seen[v] == 0 {
			t.Errorf("nothing leads to %q", fmt.Sprint(v))
		}
	}
	if got := failover.Verdict(99).String(); got != "invalid" {
		t.Errorf("a verdict that there is not is %q", got)
	}
}

// unsafe returns what is wrong with a verdict.
func unsafe(c *failover.Config, s *failover.Sight, v failover.Verdict) string {
	h := s.Host
	clears := v == failover.Welcome || v == failover.Withdraw || v == failover.Recover
	switch {
	case (v == failover.Fence || v == failover.CallLost || v == failover.Believe) &&
		(s.Beats || s.Silence < c.Grace):
		return "it is not silent"
	case v == failover.Fence && (s.Silence < c.FenceAfter || !s.Worth || !h.Lost):
		return "it is too early, or for nothing"
	case v == failover.Believe && h.Dead == "":
		return "nobody gave their word"
	case clears && h.Fenced && h.Fencing != nil && s.Boot == h.Fencing.Boot &&
		v != failover.Withdraw:
		return "the same start of the machine is trusted again"
	case clears && !h.Lost && !h.Fenced && h.Fencing == nil:
		return "there is nothing to clear"
	case v == failover.Admit && (s.Waits != "" || h.Session == ""):
		return "an agent is admitted too early"
	case v == failover.Leave && h.Fenced && s.Beats && s.Boot == "b1" && h.Fencing != nil &&
		h.Fencing.Error == "":
		return "it beats and counts as off"
	}
	return ""
}

func TestTheImportantAreFirst(t *testing.T) {
	for i, strategy := range []evacuation.Strategy{evacuation.LiveMigrate,
		evacuation.LiveMigrateIfPossible, evacuation.Unset, evacuation.None} {
		v := &record.VM{Strategy: strategy}
		if got := failover.ByStrategy(v); got != 3-i {
			t.Errorf("%q has priority %d, want %d", strategy, got, 3-i)
		}
	}
}
