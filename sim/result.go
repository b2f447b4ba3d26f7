package sim

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Totals counts migrations by how they ended.
type Totals struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"` // cancelled by somebody
	// MemoryLost counts those of Succeeded whose VM lost its memory on arrival and
	// started anew.
	MemoryLost int `json:"memoryLost,omitempty"`
}

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

// Result is what a run came to.
type Result struct {
	VirtualSeconds    float64          `json:"virtualSeconds"` // until nothing happened any more
	Events            int              `json:"events"`
	Migrations        Totals           `json:"migrations"`
	Evacuations       []Evacuation     `json:"evacuations"`
	Downtime          Downtime         `json:"downtimeMilliseconds"`
	BytesTransferred  hypervisor.Bytes `json:"bytesTransferred"`
	LowerBoundSeconds float64          `json:"lowerBoundSeconds"`
	Violations        []Violation      `json:"invariantViolations"`
}

// Result sums up the world as it is now.
func (w *World) Result() Result {
	r := Result{
		VirtualSeconds: seconds(w.changed.Sub(Epoch)),
		Events:         w.steps,
		Migrations:     w.watch.totals,
		Evacuations:    w.Evacuations(),
		Violations:     append([]Violation{}, w.watch.violations...),
	}
	var blackouts []float64
	for _, m := range w.watch.moved {
		if rec := w.watch.last[m.id]; rec.Source.Released {
			blackouts = append(blackouts, float64(rec.Source.Blackout.Microseconds())/1000)
		}
	}
	for _, m := range w.watch.last {
		r.BytesTransferred += m.Source.Sent
	}
	slices.Sort(blackouts)
	r.Downtime = Downtime{quantile(blackouts, 0.5), quantile(blackouts, 0.99),
		quantile(blackouts, 1)}
	r.LowerBoundSeconds = w.lowerBound()
	return r
}

// Evacuations says of every host that was drained when it was empty, and what
// is left there and why.
func (w *World) Evacuations() []Evacuation {
	left := map[hypervisor.HostName][]Left{}
	for _, vm := range w.VMs() {
		host := w.watch.home[vm]
		if d := w.watch.drained[host]; d == nil || d.over {
			continue
		}
		left[host] = append(left[host], Left{vm, w.boss.Why(vm, w.now)})
	}
	list := []Evacuation{}
	for _, host := range w.watch.drainOrder {
		d := w.watch.drained[host]
		e := Evacuation{Host: host, StartSeconds: seconds(d.since),
			LastSeconds: seconds(d.last), Left: left[host]}
		if e.Left == nil {
			e.Left = []Left{}
		}
		if d.empty >= 0 {
			s := seconds(d.empty)
			e.EmptySeconds = &s
		}
		list = append(list, e)
	}
	return list
}

// lowerBound returns how long the migrations that succeeded must have taken at
// least: every byte that is not zero crosses both links once, and the
// narrowest link for what crosses it decides.
func (w *World) lowerBound() float64 {
	out := map[hypervisor.HostName]hypervisor.Bytes{}
	in := map[hypervisor.HostName]hypervisor.Bytes{}
	for _, m := range w.watch.moved {
		v := w.VM(m.vm)
		if v == nil {
			continue
		}
		b := v.Now().Memory - v.Now().Memory/1000*hypervisor.Bytes(w.zero[m.vm])
		out[m.source] += b
		in[m.target] += b
	}
	longest := time.Duration(0)
	for _, side := range []map[hypervisor.HostName]hypervisor.Bytes{out, in} {
		for host, b := range side {
			if h := w.HostRecord(host); h != nil && h.Host.Link > 0 {
				longest = max(longest, b.At(h.Host.Link))
			}
		}
	}
	return seconds(longest)
}

// Done returns how many migrations have ended, and how many there are.
func (w *World) Done() (done, total int) { return w.watch.done, w.watch.totals.Total }

// VMs implements [invariant.World].
func (w *World) VMs() []hypervisor.VMID {
	return slices.Sorted(maps.Keys(w.watch.home))
}

// seconds rounds to milliseconds, so that equal runs read the same everywhere.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// quantile returns the smallest value that at least a share q of the sorted
// values do not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, min(at, len(sorted)-1))]
}
