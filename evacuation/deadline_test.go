package evacuation_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// TestForecastOfADrain: worked by hand. 8 GiB have left in 80 s, 16 GiB are left: 160 s. After 3 VMs the spread is the root
// of 0.1² + 0.4²/4, so that the 95 % quantile is exp(1.645·0.2236) = 1.4446 times the median.
func TestForecastOfADrain(t *testing.T) {
	now := time.Unix(1000, 0)
	p := evacuation.Pace{Since: now.Add(-80 * time.Second), Left: 24 * hypervisor.GiB, VMs: 9}
	s := evacuation.DrainSight{Left: 16 * hypervisor.GiB, VMs: 6}
	p50, p95, known := p.Forecast(&s, now)
	if !known || math.Abs(p50.Seconds()-160) > 0.001 || math.Abs(p95.Seconds()/160-1.4446) > 0.0002 {
		t.Errorf("%v, %v, %v", p50, p95, known)
	}
	// Nothing was measured: the link, 1 GiB/s, and the spread of one.
	s.Link, p.Since = hypervisor.Bandwidth(hypervisor.GiB), now
	if p50, p95, known = p.Forecast(&s, now); !known || p50 != 16*time.Second || math.Abs(p95.Seconds()/16-math.Exp(1.64485*math.Hypot(0.4, 0.1))) > 0.001 {
		t.Errorf("%v, %v, %v", p50, p95, known)
	}
	if s.Link = 0; true {
		if _, _, known = p.Forecast(&s, now); known {
			t.Error("it knows what is not known")
		}
	}
}

// TestALateDrainFirstChangesItsOrder: that needs no leave, and disturbs no guest; where it changes something, once.
func TestALateDrainFirstChangesItsOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	d := evacuation.Deadline{By: now.Add(time.Minute), PerSource: 5}
	s := evacuation.DrainSight{Left: 100 * hypervisor.GiB, VMs: 50, Waiting: 40, Reorders: true, Link: 1e9,
		Limits: migration.Limits{PerSource: 2, PerCluster: 9}}
	p, said := d.Watch(evacuation.Pace{}, &s, now)
	if !p.LongestFirst || p.PerSource != 0 || !strings.HasSuffix(said, ": those leave first that take longest") {
		t.Errorf("%q, %+v", said, p)
	}
	if p, said = d.Watch(p, &s, now.Add(2*time.Minute)); p.PerSource != 4 || !strings.HasSuffix(said, ": 4 VMs leave at once") {
		t.Errorf("%q, %+v", said, p)
	}
	s.Reorders = false
	if p, _ = d.Watch(evacuation.Pace{}, &s, now); p.LongestFirst {
		t.Errorf("an order that changes nothing is taken: %+v", p)
	}
}

// TestALateDrainTakesWhatIsAllowed: limits first, each remedy with time to show, then it says what would help, once.
func TestALateDrainTakesWhatIsAllowed(t *testing.T) {
	now := time.Unix(1000, 0)
	d := evacuation.Deadline{By: now.Add(10 * time.Minute), PerSource: 5, PerCluster: 8, AutoConverge: true}
	p := evacuation.Pace{Since: now.Add(-time.Minute), Left: 101 * hypervisor.GiB, VMs: 50}
	var said []string
	for range 60 {
		s := evacuation.DrainSight{Left: p.Left - hypervisor.GiB, VMs: p.VMs, Waiting: 40, Limits: migration.Limits{PerSource: 2, PerCluster: 3}}
		var say string
		if p, say = d.Watch(p, &s, now); say != "" {
			said = append(said, say)
		}
		now = now.Add(evacuation.PaceEvery)
	}
	want := []string{": 4 VMs leave at once", ": 5 VMs leave at once", ": 8 VMs move at once in the cluster", ": guests may be slowed down",
		"; a later time would help, or --allow-post-copy"}
	if len(said) != len(want) {
		t.Fatalf("%d said: %q", len(said), said)
	}
	for i := range want {
		if !strings.HasSuffix(said[i], want[i]) {
			t.Errorf("%q, want …%q", said[i], want[i])
		}
	}
	if !strings.HasPrefix(said[4], "cannot be met: empty at ") || p.PerSource != 5 || p.PerCluster != 8 || !p.AutoConverge || p.PostCopy {
		t.Errorf("%q, %+v", said[4], p)
	}
	s := evacuation.DrainSight{Left: hypervisor.GiB, VMs: 1, Fixed: []hypervisor.VMID{"v"}, Link: 1e9}
	if _, say := d.Watch(evacuation.Pace{}, &s, now); say != "cannot be met: v cannot be migrated" {
		t.Errorf("%q", say)
	}
}
