package sim_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/sim"
)

// The situation of kubevirt#2326: auto-converge lets a migration end, at the guest's cost. The
// result says how slow the guest was and how long, as the hypervisor shows it to a caller that
// asks all the time.
func TestAutoConvergesPriceIsInTheResult(t *testing.T) {
	const text = `
hosts: [{name: "n[1-2]", memory: 128GiB, cpus: 64, link: 10Gbit/s}]
vms: [{name: v, host: n1, memory: 32GiB, cpus: 8, dirty: 3GiB/s, workingSet: 8GiB}]
until: 2h
events: [0s migrate v to=n2]
`
	if b := slowed(t, text, nil); b != nil {
		t.Errorf("the guest may not be slowed, and its brownout is %+v", b)
	}
	var most int
	var lasted, before time.Duration
	throttle := 0
	b := slowed(t, text+"config: {allowAutoConverge: true}\n", func(w *sim.World, now time.Duration) {
		if throttle > 0 {
			lasted += now - before
		}
		before, throttle = now, 0
		for _, m := range w.Migrations("default/v") {
			p, err := w.Network().Host("n1").Progress(context.Background(), m.Spec.ID)
			if err == nil && p.Status == hypervisor.JobActive {
				throttle = p.Throttle
			}
		}
		most = max(most, throttle)
	})
	if b == nil || b.Migrations != 1 || b.MaxPercent != most || most == 0 ||
		math.Abs(b.MaxSeconds-lasted.Seconds()) > 2 || b.P50Seconds != b.MaxSeconds ||
		b.MeanPercent <= 0 || b.MeanPercent > float64(most) {
		t.Errorf("the brownout is %+v; the hypervisor took up to %d %% for %v", b, most, lasted)
	}
}

// slowed plays a scenario and returns its brownout; see is told of every event.
func slowed(t *testing.T, text string, see func(*sim.World, time.Duration)) *sim.Brownout {
	t.Helper()
	s, err := config.Parse("scenario", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Config(1)
	if see != nil {
		c.After = func(w *sim.World) bool {
			see(w, w.Now())
			return true
		}
	}
	w, err := s.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(s.Until)
	if at := w.VM("default/v").Host; see != nil && at != "n2" {
		t.Errorf("it is on %s", at)
	}
	return w.Result().Brownout
}
