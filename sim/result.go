package sim

import (
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim/bound"
	"github.com/godwit-vm/godwit/sim/tally"
)

// Totals counts migrations by how they ended.
type Totals = tally.Totals

// Evacuation is what became of one host that was drained.
type Evacuation struct {
	Host         hypervisor.HostName `json:"host"`
	StartSeconds float64             `json:"startSeconds"`
	EmptySeconds *float64            `json:"emptySeconds"` // nil: never
	Left         []Left              `json:"left"`
	LastSeconds  float64             `json:"lastLeftSeconds"` // when a VM left it last
}

// Left is a VM that is still on a drained host, and every reason why.
type Left struct {
	VM      hypervisor.VMID    `json:"vm"`
	Reasons []placement.Reason `json:"reasons"`
}

// Downtime is the distribution of blackouts, in milliseconds.
type Downtime struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Trouble is a host that has failed migrations lately, and for how long it is left alone.
type Trouble struct {
	Host hypervisor.HostName `json:"host"`
	Why  string              `json:"why"`
}

// Result is what a run came to.
type Result struct {
	VirtualSeconds   float64          `json:"virtualSeconds"` // until nothing happened any more
	Events           int              `json:"events"`
	Migrations       Totals           `json:"migrations"`
	Evacuations      []Evacuation     `json:"evacuations"`
	Downtime         Downtime         `json:"downtimeMilliseconds"`
	BytesTransferred hypervisor.Bytes `json:"bytesTransferred"`
	// LowerBoundSeconds is missing when nothing has moved.
	LowerBoundSeconds float64 `json:"lowerBoundSeconds,omitzero"`
	// Troubles are the hosts that have failed migrations lately.
	Troubles   []Trouble   `json:"troubledHosts,omitempty"`
	Violations []Violation `json:"invariantViolations"`
}

// Result sums up the world as it is now.
func (w *World) Result() Result {
	r := Result{
		VirtualSeconds:   seconds(w.changed.Sub(Epoch)),
		Events:           w.steps,
		Migrations:       w.watch.Totals,
		Evacuations:      w.Evacuations(),
		BytesTransferred: w.watch.Sent(),
		Violations:       append([]Violation{}, w.watch.violations...),
	}
	var blackouts []float64
	for _, m := range w.watch.Moved {
		if rec := m.Last; rec.Source.Released {
			blackouts = append(blackouts, float64(rec.Source.Blackout.Microseconds())/1000)
		}
	}
	slices.Sort(blackouts)
	r.Downtime = Downtime{bound.Quantile(blackouts, 0.5), bound.Quantile(blackouts, 0.99),
		bound.Quantile(blackouts, 1)}
	r.LowerBoundSeconds = w.lowerBound()
	for _, t := range w.boss.Troubles(w.now) {
		r.Troubles = append(r.Troubles, Trouble{t.Host, t.String(w.now)})
	}
	return r
}

// Evacuations says of every host that was drained when it was empty, and what
// is left there and why.
func (w *World) Evacuations() []Evacuation {
	left := map[hypervisor.HostName][]Left{}
	for _, vm := range w.VMs() {
		host := w.watch.Home(vm)
		if !w.watch.Drains.On(host) {
			continue
		}
		left[host] = append(left[host], Left{vm, w.boss.Why(vm, w.now)})
	}
	list := []Evacuation{}
	for _, d := range w.watch.Drains.All() {
		e := Evacuation{Host: d.Host, StartSeconds: seconds(d.Since),
			LastSeconds: seconds(d.Last), Left: left[d.Host]}
		if e.Left == nil {
			e.Left = []Left{}
		}
		if d.Empty >= 0 {
			s := seconds(d.Empty)
			e.EmptySeconds = &s
		}
		list = append(list, e)
	}
	return list
}

// lowerBound returns how long the migrations that succeeded must have taken at
// least: every byte of memory that is not zero, and all that local disks hold, crosses every
// link on its way once.
func (w *World) lowerBound() float64 {
	var links bound.Links
	for _, m := range w.watch.Moved {
		vm, s := m.Last.Spec.VM, &m.Last.State
		if v := w.VM(vm); v != nil {
			links.Move(w.HostRecord(s.Source), w.HostRecord(s.Target),
				fake.Workload{Zero: w.zero[vm]}.Least(v.Now()))
		}
	}
	return seconds(links.Least())
}

// Done returns how many migrations have ended, and how many there are.
func (w *World) Done() (done, total int) { return w.watch.Done, w.watch.Totals.Total }

// VMs implements [invariant.World].
func (w *World) VMs() []hypervisor.VMID { return slices.Clone(w.watch.VMs()) }

// seconds rounds to milliseconds, so that equal runs read the same everywhere.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
