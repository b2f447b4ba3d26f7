package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

func fencing(by, trouble string) *store.Fencing {
	return &store.Fencing{Boot: "b1", By: by, Error: trouble}
}

// sees is a host of which nothing depends, hears one that has sent a heartbeat, and misses one
// with VMs to be rebuilt.
func sees(h *store.Host, boot string, silence time.Duration) controller.HostObservation {
	return controller.HostObservation{Host: h, Boot: boot, Silence: silence}
}

func hears(h *store.Host, boot string, silence time.Duration) controller.HostObservation {
	return controller.HostObservation{Host: h, Boot: boot, Silence: silence, Heartbeat: true}
}

func misses(h *store.Host, boot string, silence time.Duration) controller.HostObservation {
	return controller.HostObservation{Host: h, Boot: boot, Silence: silence, Worth: true}
}

// waits is a host that is heard while others are not.
func waits(h *store.Host) controller.HostObservation {
	return controller.HostObservation{Host: h, Boot: "b1", Waits: "n2 is not heard"}
}

// that returns a host.
func that(how func(*store.Host)) *store.Host {
	h := &store.Host{Host: hypervisor.Host{Name: "n1"}}
	how(h)
	return h
}

var (
	sound = that(func(*store.Host) {})
	lost  = that(func(h *store.Host) { h.NotReady = true })
	asked = that(func(h *store.Host) { h.NotReady, h.Fencing = true, fencing("", "") })
	off   = that(func(h *store.Host) {
		h.NotReady, h.Fenced, h.Fencing = true, true, fencing("ipmi", "")
	})
	lie = that(func(h *store.Host) {
		h.NotReady, h.Fenced, h.Fencing = true, true, fencing("ipmi", "lives")
	})
	word  = that(func(h *store.Host) { h.ConfirmedDownBy = "alice" })
	wrong = that(func(h *store.Host) {
		h.NotReady, h.Fenced, h.ConfirmedDownBy, h.Fencing = true, true, "al", fencing("operator al", "lives")
	})
	taken = that(func(h *store.Host) {
		h.NotReady, h.Fenced, h.Fencing = true, true, fencing("operator al", "")
	})
	foreign    = that(func(h *store.Host) { h.NotReady, h.Fenced = true, true })
	begun      = that(func(h *store.Host) { h.Session = "s1" })
	told       = that(func(h *store.Host) { h.Session, h.Waits = "s1", "n2 is not heard" })
	admitted   = that(func(h *store.Host) { h.Session, h.Admitted = "s1", "s1" })
	again      = that(func(h *store.Host) { h.Session, h.Admitted = "s2", "s1" })
	lieAndWord = that(func(h *store.Host) { *h = *lie; h.ConfirmedDownBy = "alice" })
)

func TestWhatBecomesOfAHost(t *testing.T) {
	const grace, after = 30 * time.Second, time.Minute
	for name, row := range map[string]struct {
		s    controller.HostObservation
		want controller.FailoverDecision
	}{
		"it was heard lately": {
			sees(sound, "", grace-1), controller.Leave},
		"it is silent": {
			sees(sound, "", grace), controller.CallLost},
		"it is lost, and nothing to gain": {
			sees(lost, "", time.Hour), controller.Leave},
		"it is lost, and not for long": {
			misses(lost, "", after-1), controller.Leave},
		"it is lost for long": {
			misses(lost, "", after), controller.Fence},
		"it is being fenced": {
			misses(asked, "b1", after), controller.Fence},
		"it is lost and heard": {
			hears(lost, "", 0), controller.Recover},
		"it is being fenced and heard": {
			hears(asked, "b1", 0), controller.Recover},
		"it started anew by itself": {
			sees(asked, "b2", 0), controller.Welcome},
		"it was fenced": {
			misses(off, "b1", time.Hour), controller.Leave},
		"it was fenced and starts anew": {
			hears(off, "b2", 0), controller.Welcome},
		"it was fenced and has no lease": {
			misses(off, "", time.Hour), controller.Leave},
		"it was fenced and lives": {
			hears(off, "b1", 0), controller.Distrust},
		"it lives, as is known": {
			hears(lie, "b1", 0), controller.Leave},
		"it lived and is silent": {
			misses(lie, "b1", after), controller.Fence},
		"it lived, and an operator confirms that it is down": {
			sees(lieAndWord, "b1", grace), controller.Believe},
		"an operator confirms that it is down": {
			sees(word, "", grace), controller.Believe},
		"the word is hasty": {
			sees(word, "", grace-1), controller.Leave},
		"the word is wrong": {
			hears(word, "", 0), controller.Refuse},
		"the word was wrong": {
			misses(wrong, "b1", time.Hour), controller.Leave},
		"the word is taken back": {
			sees(taken, "b1", time.Hour), controller.Withdraw},
		"it was fenced by hand": {
			misses(foreign, "b1", time.Hour), controller.Leave},
		"it was fenced by hand, it beats": {
			hears(foreign, "b1", 0), controller.Welcome},
		"its agent has begun": {
			sees(begun, "b1", 0), controller.Admit},
		"its agent has begun, and is silent": {
			misses(begun, "b1", after), controller.Admit},
		"its agent has begun, and others were not heard": {
			waits(begun), controller.Delay},
		"its agent has begun, and it was said why it waits": {
			waits(told), controller.Leave},
		"its agent has waited": {
			sees(told, "b1", 0), controller.Admit},
		"its agent was admitted": {
			sees(admitted, "b1", 0), controller.Leave},
		"its agent was admitted, and others are not heard now": {
			waits(admitted), controller.Leave},
		"its agent has begun again": {
			sees(again, "b1", 0), controller.Admit},
	} {
		c := controller.FailoverConfig{}.Complete()
		if got := controller.DecideHost(&c, &row.s); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// TestEveryHostIsJudgedSafely goes through every combination of what can be known.
func TestEveryHostIsJudgedSafely(t *testing.T) {
	c := controller.FailoverConfig{}.Complete()
	silences := []time.Duration{0, c.Grace - 1, c.Grace, c.FenceAfter - 1, c.FenceAfter, time.Hour}
	fencings := []*store.Fencing{nil, fencing("", ""), fencing("", "failed"), fencing("ipmi", ""),
		fencing("ipmi", "lives"), fencing("operator al", ""), fencing("operator al", "lives")}
	seen := map[controller.FailoverDecision]int{}
	for bits := range 1 << 7 {
		bit := func(i int) bool { return bits>>i&1 == 1 }
		for _, silence := range silences {
			for _, f := range fencings {
				for _, boot := range []string{"", "b1", "b2"} {
					h := &store.Host{NotReady: bit(0), Fenced: bit(1), Fencing: f}
					if bit(2) {
						h.ConfirmedDownBy = "alice"
					}
					s := controller.HostObservation{Host: h, Boot: boot, Heartbeat: bit(3), Silence: silence,
						Worth: bit(4)}
					if bit(5) {
						h.Session = "new"
					}
					if bit(6) {
						s.Waits = "a host was not heard"
					}
					v := controller.DecideHost(&c, &s)
					seen[v]++
					if why := unsafe(&c, &s, v); why != "" {
						t.Fatalf("%v of %+v, host %+v, fencing %+v: %s", v, s, h, f, why)
					}
				}
			}
		}
	}
	for v := controller.Leave; v <= controller.Fence; v++ {
		if seen[v] == 0 {
			t.Errorf("nothing leads to %q", fmt.Sprint(v))
		}
	}
}

// unsafe returns what is wrong with a verdict.
func unsafe(c *controller.FailoverConfig, s *controller.HostObservation, v controller.FailoverDecision) string {
	h := s.Host
	clears := v == controller.Welcome || v == controller.Withdraw || v == controller.Recover
	switch {
	case (v == controller.Fence || v == controller.CallLost || v == controller.Believe) &&
		(s.Heartbeat || s.Silence < c.Grace):
		return "it is not silent"
	case v == controller.Fence && (s.Silence < c.FenceAfter || !s.Worth || !h.NotReady):
		return "it is too early, or for nothing"
	case v == controller.Believe && h.ConfirmedDownBy == "":
		return "no operator confirmed it"
	case clears && h.Fenced && h.Fencing != nil && s.Boot == h.Fencing.Boot &&
		v != controller.Withdraw:
		return "the same start of the machine is trusted again"
	case clears && !h.NotReady && !h.Fenced && h.Fencing == nil:
		return "there is nothing to clear"
	case v == controller.Admit && (s.Waits != "" || h.Session == ""):
		return "an agent is admitted too early"
	case v == controller.Leave && h.Fenced && s.Heartbeat && s.Boot == "b1" && h.Fencing != nil &&
		h.Fencing.Error == "":
		return "it beats and counts as off"
	}
	return ""
}

func TestTheImportantAreFirst(t *testing.T) {
	for i, strategy := range []evacuation.Strategy{evacuation.LiveMigrate,
		evacuation.LiveMigrateIfPossible, evacuation.Unset, evacuation.None} {
		v := &store.VM{Strategy: strategy}
		if got := controller.ByStrategy(v); got != 3-i {
			t.Errorf("%q has priority %d, want %d", strategy, got, 3-i)
		}
	}
}
