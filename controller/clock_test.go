package controller_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
)

// TestAClockThatIsSetFencesNoHostThatLives: NTP sets the clock, or the leader's own machine was
// stopped for a while. Hosts that give their signs are not lost or fenced for it, whichever way the clock
// is set, and how often; one that is silent is, when the clock goes on.
func TestAClockThatIsSetFencesNoHostThatLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(t, controller.FailoverConfig{}, "n1", "n2", "n3")
		s.addVM("a", "n1", gib)
		s.fencer.works("n1")
		s.run(time.Minute)
		jumps := rapid.SliceOfN(rapid.Int64Range(-5*3600, 5*3600), 1, 6).Draw(t, "jumps")
		for _, seconds := range jumps {
			s.now = s.now.Add(time.Duration(seconds) * time.Second)
			if rapid.Bool().Draw(t, "before the next sign") {
				s.look()
			}
			s.run(time.Duration(rapid.IntRange(0, 30).Draw(t, "looks")) * 5 * time.Second)
		}
		for _, h := range []hostName{"n1", "n2", "n3"} {
			if r := s.host(h); r.Fenced || r.Fencing != nil {
				t.Fatalf("%s lives and is fenced: %+v", h, r)
			}
		}
		s.wantSaid("is lost", 0)
		s.wantOn("a", "n1")
		s.silence("n1")
		s.now = s.now.Add(-3 * time.Hour)
		s.run(10 * time.Minute)
		if !s.host("n1").Fenced {
			t.Errorf("a host that is silent is not fenced: %+v", s.host("n1"))
		}
	})
}
