package evacuation

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// A Deadline is when a host that is drained is to be empty, and what may be done when it is late.
type Deadline struct {
	By time.Time `json:",omitzero"`
	// PerSource and PerCluster are how high the limits may be raised for it. Zero: they are not.
	PerSource  int `json:",omitempty"`
	PerCluster int `json:",omitempty"`
	// AutoConverge and PostCopy may be allowed for migrations that begin from then on.
	AutoConverge bool `json:",omitempty"`
	PostCopy     bool `json:",omitempty"`
}

// A Pace is how a drain with a [Deadline] goes, and what was done about it.
type Pace struct {
	// Since is when the watch began, or a remedy was applied; Left, and VMs, are what had not left the host then.
	Since time.Time        `json:",omitzero"`
	Left  hypervisor.Bytes `json:",omitempty"`
	VMs   int              `json:",omitempty"`
	// P50 and P95 are when the host is empty with these probabilities. Zero: it is not known yet.
	P50 time.Time `json:",omitzero"`
	P95 time.Time `json:",omitzero"`
	// LongestFirst says that the VMs whose migrations are expected to take longest leave first, by what was measured
	// of their guests. Default: they leave in the order of the cluster.
	LongestFirst bool `json:",omitempty"`
	// What was raised and allowed; zero is what the cluster has.
	PerSource    int  `json:",omitempty"`
	PerCluster   int  `json:",omitempty"`
	AutoConverge bool `json:",omitempty"`
	PostCopy     bool `json:",omitempty"`
	// Text is why the deadline cannot be met, or may be missed, and what would help. Default: it is met
	// with a probability of 95 %.
	Text string `json:",omitempty"`
}

// A DrainSight is what has been measured of a drain.
type DrainSight struct {
	Left    hypervisor.Bytes // memory and disks of the VMs that have not left, without what was sent of them
	VMs     int              // that have not left
	Waiting int              // VMs whose migration has not begun
	// Reorders says that these leave in another order when those go first that take longest.
	Reorders bool
	Fixed    []hypervisor.VMID
	Link     hypervisor.Bandwidth // of the host; 0 is not known
	Limits   migration.Limits     // as configured
}

// Of the watch of a deadline.
const (
	paceMeasured = 20 * time.Second // so long a rate is measured before it counts
	paceSettles  = time.Minute      // so long a remedy is given before the next one
	// PaceEvery is how often a deadline is looked at.
	PaceEvery = 10 * time.Second
)

// The spread of what is left, as a standard deviation of its logarithm: of one migration whose speed was
// predicted from the link, which shrinks with those that were measured, and of what remains in any case.
// Source: docs/prediction.md (p90 of uncapped migrations is 1.5 to 1.7 times their median).
const (
	spreadOfOne = 0.4
	spreadLeast = 0.1
	z95         = 1.6448536269514722 // the 95 % quantile of the normal distribution
)

// forecast returns how long it takes until a host is empty: its median, and what is not exceeded with 95 %. It is
// false while nothing is known. What is left goes on at the rate that was measured since the watch began,
// or else at that of the link.
func (p *Pace) forecast(s *DrainSight, now time.Time) (p50, p95 time.Duration, known bool) {
	if s.Left <= 0 {
		return 0, 0, true
	}
	rate, moved := float64(s.Link), 0
	if measured := p.rate(s, now); measured > 0 {
		rate, moved = measured, max(0, p.VMs-s.VMs)
	}
	if rate <= 0 {
		return 0, 0, false
	}
	const most = float64(hypervisor.Forever) / 4
	median := min(float64(s.Left)/rate*float64(time.Second), most)
	spread := math.Hypot(spreadLeast, spreadOfOne/math.Sqrt(float64(1+moved)))
	return time.Duration(median), time.Duration(min(median*math.Exp(z95*spread), most)), true
}

// rate returns how many bytes have left in a second since the watch began; 0 is that it was not measured.
func (p *Pace) rate(s *DrainSight, now time.Time) float64 {
	if span := now.Sub(p.Since); span >= paceMeasured && p.Left > s.Left {
		return float64(p.Left-s.Left) / span.Seconds()
	}
	return 0
}

// saturated reports whether the link of the host carries about what it can: more at once would make each slower.
func (p *Pace) saturated(s *DrainSight, now time.Time) bool {
	const full = 0.8
	return s.Link > 0 && p.rate(s, now) > full*float64(s.Link)
}

// Watch looks at a drain again, and returns how it goes and what is done about it; say is what is to be told
// then, if anything. Remedies are taken in this order, one at a time, and only those that are allowed: another order, which
// needs no leave, higher limits, where the link of the host is not full, auto-converge, post-copy.
func (d *Deadline) Watch(before Pace, s *DrainSight, now time.Time) (next Pace, say string) {
	next = before
	if next.Text = ""; s.VMs == 0 {
		return next, ""
	}
	if next.Since.IsZero() {
		next.Since, next.Left, next.VMs = now, s.Left, s.VMs
	}
	p50, p95, known := next.forecast(s, now)
	if !known {
		next.Text = before.Text
		return next, ""
	}
	next.P50, next.P95, next.Text = now.Add(p50).Round(time.Second), now.Add(p95).Round(time.Second), ""
	if !next.P95.After(d.By) && len(s.Fixed) == 0 {
		return next, ""
	}
	text := fmt.Sprintf("empty at %s, with 95 %% at %s, and by %s it should be", clock(next.P50), clock(next.P95), clock(d.By))
	if now.Sub(next.Since) < paceSettles && before.tried() {
		next.Text = before.Text
		return next, ""
	}
	if what := d.remedy(&next, s, now); what != "" && len(s.Fixed) == 0 {
		next.Since, next.Left, next.VMs = now, s.Left, s.VMs
		return next, "late: " + text + ": " + what
	}
	next.Text = "may be late: " + text + d.help()
	switch {
	case len(s.Fixed) > 0:
		next.Text = fmt.Sprintf("cannot be met: %s cannot be migrated", s.Fixed[0])
	case next.P50.After(d.By):
		next.Text = "cannot be met: " + text + d.help()
	}
	if kind, _, _ := strings.Cut(next.Text, ":"); !strings.HasPrefix(before.Text, kind) {
		return next, next.Text
	}
	return next, ""
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// tried reports whether a remedy was taken.
func (p *Pace) tried() bool {
	return p.LongestFirst || p.PerSource > 0 || p.PerCluster > 0 || p.AutoConverge || p.PostCopy
}

// Raised returns limits as a drain raises them.
func (p *Pace) Raised(l migration.Limits) migration.Limits {
	l.PerSource, l.PerCluster = max(l.PerSource, p.PerSource), max(l.PerCluster, p.PerCluster)
	return l
}

// remedy takes the next remedy, and says which; "" is that there is none.
func (d *Deadline) remedy(p *Pace, s *DrainSight, at time.Time) string {
	if s.Reorders && !p.LongestFirst {
		p.LongestFirst = true
		return "those leave first that take longest"
	}
	now, helps := p.Raised(s.Limits), s.Waiting > 0 && !p.saturated(s, at)
	if next := min(2*max(1, now.PerSource), d.PerSource); helps && next > now.PerSource {
		p.PerSource = next
		if cluster := min(next, d.PerCluster); cluster > now.PerCluster {
			p.PerCluster = cluster
		}
		return fmt.Sprintf("%d VMs leave at once", min(next, p.Raised(s.Limits).PerCluster))
	}
	if next := min(2*max(1, now.PerCluster), d.PerCluster); helps && next > now.PerCluster {
		p.PerCluster = next
		return fmt.Sprintf("%d VMs move at once in the cluster", next)
	}
	switch {
	case d.AutoConverge && !p.AutoConverge:
		p.AutoConverge = true
		return "guests may be slowed down"
	case d.PostCopy && !p.PostCopy:
		p.PostCopy = true
		return "migrations may switch to post-copy"
	}
	return ""
}

// help names what would help and was not allowed.
func (d *Deadline) help() string {
	var all []string
	if d.PerSource == 0 {
		all = append(all, "--max-per-source")
	}
	if !d.AutoConverge {
		all = append(all, "--allow-auto-converge")
	}
	if !d.PostCopy {
		all = append(all, "--allow-post-copy")
	}
	if len(all) == 0 {
		return "; a later time would help"
	}
	return "; a later time would help, or " + strings.Join(all, " or ")
}
