package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// outage is what became of a guest that could be paused so that it moved.
type outage struct {
	paused  time.Duration // when; below zero: it was not
	given   bool          // up, while it was paused
	arrived bool
	after   time.Duration // the pause, when it ended
}

// oneMove moves the VM "v" of a scenario, and watches.
func oneMove(t interface{ Fatal(...any) }, text string) outage {
	s, err := config.Parse("scenario", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := outage{paused: -1}
	c := s.Config(s.Seed)
	c.Trace = func(e sim.Entry) {
		switch {
		case strings.HasPrefix(e.What, "convergence: Pause"):
			o.paused = e.At
		case strings.Contains(e.What, "source kept the VM"):
			o.given, o.after = o.paused >= 0, e.At-o.paused
		case e.What == "arrived":
			o.arrived, o.after = true, e.At-o.paused
		}
	}
	w, err := s.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	return o
}

// The situation of kubevirt#11833, with guests and budgets of all sizes: allowWorkloadDisruption
// lets a migration end that does not converge. A VM that is paused arrives, or the outage was
// for nothing; and one that can be sent in the time that is allowed for a pause is paused.
func TestAGuestThatIsPausedArrives(t *testing.T) {
	paused := 0
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.IntRange(2, 96).Draw(t, "GiB")
		hot := rapid.IntRange(1, memory).Draw(t, "hot GiB")
		perGiB := rapid.IntRange(5, 60).Draw(t, "seconds for each GiB")
		patience := rapid.SampledFrom([]int{0, 30, 150}).Draw(t, "progress timeout")
		text := fmt.Sprintf(`
hosts:
- {name: "n[1-2]", memory: 128GiB, cpus: 64, link: %dMbit/s}
vms:
- {name: v, host: n1, memory: %dGiB, cpus: 8, dirty: %dMiB/s, workingSet: %dGiB}
config: {completionTimeoutPerGiB: %ds, progressTimeout: %ds, allowWorkloadDisruption: true}
until: 24h
events:
- 0s migrate v to=n2
`, rapid.IntRange(3, 100).Draw(t, "link")*100, memory, rapid.IntRange(10, 4000).Draw(t, "dirty"),
			hot, perGiB, patience)
		o := oneMove(t, text)
		if o.paused < 0 {
			return
		}
		paused++
		budget := time.Duration(memory*perGiB) * time.Second
		if o.given || !o.arrived || o.paused+o.after > 2*budget+time.Minute {
			t.Fatalf("of a budget of %v: %+v%s", budget, o, text)
		}
	})
	if paused < 10 && !testing.Short() {
		t.Errorf("only %d guests were paused", paused)
	}
}
