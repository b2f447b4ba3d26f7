package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// Evacuation is what became of one drain of a host.
type Evacuation struct {
	Host         hypervisor.HostName `json:"host"`
	StartSeconds float64             `json:"startSeconds"`
	EmptySeconds *float64            `json:"emptySeconds"` // nil: never
	Left         []RemainingVM       `json:"left"`
	LastSeconds  *float64            `json:"lastLeftSeconds"` // when a VM left it last; nil: none has
	Withdrawn    bool                `json:"withdrawn,omitempty"`
}

// Drained returns when a host was drained first, and when the last VM had left a drained host of those that
// left; false is that none has. A drain that was withdrawn before a VM had left is none.
func (r *Result) Drained() (first, last float64, left bool) {
	first = math.Inf(1)
	for _, e := range r.Evacuations {
		if e.Withdrawn && e.LastSeconds == nil {
			continue
		}
		first = min(first, e.StartSeconds)
		if e.LastSeconds != nil {
			last, left = max(last, *e.LastSeconds), true
		}
	}
	return first, last, left
}

// RemainingVM is a VM that is still on a drained host, and every reason why.
type RemainingVM struct {
	VM      hypervisor.VMID    `json:"vm"`
	Reasons []placement.Reason `json:"reasons"`
}

// Failure is migrations that failed for the same reason.
type Failure struct {
	Why   string          `json:"why"` // the rule, and the source's own words
	Count int             `json:"count"`
	VM    hypervisor.VMID `json:"vm"`             // of the first of them
	More  bool            `json:"more,omitempty"` // others were of other VMs
}

// Downtime is how long guests stood by their migrations, in milliseconds: from when a guest stopped
// during a transfer until it ran again, wherever and however the migration ended. Of migrations
// that did not succeed only those count that let their guest stand.
type Downtime struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// SuspectHost is a host that has failed migrations lately, and for how long it is left alone.
type SuspectHost struct {
	Host hypervisor.HostName `json:"host"`
	Why  string              `json:"why"`
}

// Outages are all times in which guests that should run did not, by migrations, crashes and
// restarts. A VM should run unless its operator has stopped, paused or deleted it. A reboot or a resize that was
// asked for is no outage.
type Outages struct {
	Count          int     `json:"count"`
	TotalSeconds   float64 `json:"totalSeconds"`
	LongestSeconds float64 `json:"longestSeconds"`
}

// Down is a VM that should run and does not when the run ends. Where the world had come to rest,
// it stays so until the end of the time that was to be simulated.
type Down struct {
	VM           hypervisor.VMID `json:"vm"`
	SinceSeconds float64         `json:"sinceSeconds"`
	Seconds      float64         `json:"seconds"`
}

// A VMOutage is how long a VM that should run did not, all its outages together.
type VMOutage struct {
	VM      hypervisor.VMID `json:"vm"`
	Seconds float64         `json:"seconds"`
	Down    bool            `json:"down,omitempty"` // it does not run when the run ends
}

// Brownout is how guests were slowed down so that their memory could be sent (auto-converge), over
// the migrations in which they were, whatever became of them, also those whose records are gone.
type Brownout struct {
	Migrations int     `json:"migrations"`
	MaxPercent int     `json:"maxPercent"` // the largest share of CPU time that was taken
	P50Seconds float64 `json:"p50Seconds"` // for how long some was
	P99Seconds float64 `json:"p99Seconds"`
	MaxSeconds float64 `json:"maxSeconds"`
	// MeanPercent is the share that was taken, over all these times.
	MeanPercent float64 `json:"meanPercent"`
}

func brownout(all []store.Brownout) *Brownout {
	if len(all) == 0 {
		return nil
	}
	b := &Brownout{Migrations: len(all)}
	var spans []float64
	var lasted, taken time.Duration
	for _, one := range all {
		b.MaxPercent = max(b.MaxPercent, one.Percent)
		spans = append(spans, float64(one.Lasted.Milliseconds())/1000)
		lasted, taken = lasted+one.Lasted, taken+one.Taken
	}
	slices.Sort(spans)
	b.P50Seconds, b.P99Seconds = Quantile(spans, 0.5), Quantile(spans, 0.99)
	b.MaxSeconds = Quantile(spans, 1)
	b.MeanPercent = math.Round(1000*taken.Seconds()/lasted.Seconds()) / 10
	return b
}

// Result is what a run came to.
type Result struct {
	VirtualSeconds float64 `json:"virtualSeconds"` // until nothing happened any more
	Events         int     `json:"events"`
	Migrations     Totals  `json:"migrations"`
	// Failures says why migrations failed, the most frequent reason first.
	Failures    []Failure    `json:"failures,omitempty"`
	Evacuations []Evacuation `json:"evacuations"`
	Down        []Down       `json:"down"` // the first to stop first
	Downtime    Downtime     `json:"downtimeMilliseconds"`
	// DowntimeCount is of how many migrations Downtime is; of none it is all zero.
	DowntimeCount int     `json:"downtimeCount"`
	Outages       Outages `json:"outages"`
	// OutagesByVM has the VMs with outages, in a world that fails over; nil in others.
	OutagesByVM      []VMOutage       `json:"outagesByVM,omitempty"`
	Brownout         *Brownout        `json:"brownout,omitempty"` // nil: no guest was slowed down
	BytesTransferred hypervisor.Bytes `json:"bytesTransferred"`
	// BytesUnknown counts the migrations that sent more than BytesTransferred has of them:
	// their sources did not live to tell.
	BytesUnknown int `json:"bytesUnknown"`
	// LowerBoundSeconds is missing when nothing has moved.
	LowerBoundSeconds float64 `json:"lowerBoundSeconds,omitzero"`
	// Troubles are the hosts that have failed migrations lately.
	Troubles   []SuspectHost `json:"troubledHosts,omitempty"`
	Violations []Violation   `json:"invariantViolations"`
}

// Result sums up the world as it is now.
func (w *World) Result() Result {
	r := Result{
		VirtualSeconds: seconds(w.changed.Sub(Epoch)),
		Events:         w.steps,
		Migrations:     w.watch.Totals,
		Evacuations:    w.Evacuations(),
		Brownout:       brownout(w.watch.brownoutsOf()),
		Violations:     append([]Violation{}, w.watch.violations...),
	}
	r.BytesTransferred, r.BytesUnknown = w.watch.Sent()
	r.Down, r.Outages = w.standing(), w.outages()
	if w.config.Beside != nil {
		for _, o := range w.watch.OutagesByVM(w.ends()) {
			r.OutagesByVM = append(r.OutagesByVM, VMOutage{o.VM, seconds(o.Stood), o.Down})
		}
	}
	r.Downtime, r.DowntimeCount = w.downtimes()
	r.LowerBoundSeconds = w.lowerBound()
	for _, f := range w.watch.failuresOf() {
		r.Failures = append(r.Failures, Failure(f))
	}
	for _, t := range w.boss.HealthProblems(w.now) {
		r.Troubles = append(r.Troubles, SuspectHost{t.Host, t.String(w.now)})
	}
	return r
}

// ends returns until when the world is as it is now, at least.
func (w *World) ends() time.Duration { return max(w.rests, w.Now()) }

// standing lists the VMs that should run and do not, the first to stop first.
func (w *World) standing() []Down {
	list := []Down{}
	for _, d := range w.watch.Down() {
		list = append(list, Down{d.VM, seconds(d.Since), seconds(w.ends() - d.Since)})
	}
	return list
}

func (w *World) outages() Outages {
	o := w.watch.Outages(w.ends())
	return Outages{o.Count, seconds(o.Total), seconds(o.Longest)}
}

func (w *World) downtimes() (d Downtime, migrations int) {
	stood := w.watch.Downtimes(w.ends())
	ms := make([]float64, len(stood))
	for i, d := range stood {
		ms[i] = float64(d.Microseconds()) / 1000
	}
	slices.Sort(ms)
	d = Downtime{Quantile(ms, 0.5), Quantile(ms, 0.99), Quantile(ms, 1)}
	return d, len(ms)
}

// Downtime returns how long a VM's guest stood by a migration, until now or until the end of a
// world at rest. It is false of a migration whose record is gone.
func (w *World) Downtime(vm hypervisor.VMID, id migration.ID) (time.Duration, bool) {
	return w.watch.Downtime(vm, id, w.ends())
}

// Stood returns how long a VM's guest has stood in all that should have run, until now or until the
// end of a world at rest.
func (w *World) Stood(vm hypervisor.VMID) time.Duration { return w.watch.Stood(vm, w.ends()) }

// Evacuations says of every drain, in the order in which they began, when its host was empty, and what
// is left there and why.
func (w *World) Evacuations() []Evacuation {
	left := map[hypervisor.HostName][]RemainingVM{}
	for _, vm := range w.VMs() {
		host := w.watch.Stands(vm)
		if !w.watch.Drains.On(host) {
			continue
		}
		left[host] = append(left[host], RemainingVM{vm, w.boss.Why(vm, w.now)})
	}
	list := []Evacuation{}
	for _, d := range w.watch.Drains.All() {
		e := Evacuation{Host: d.Host, StartSeconds: seconds(d.Since), EmptySeconds: known(d.Empty),
			LastSeconds: known(d.Last), Left: []RemainingVM{}, Withdrawn: d.Over}
		if all := left[d.Host]; !d.Over && all != nil {
			e.Left = all
		}
		list = append(list, e)
	}
	return list
}

// known returns the seconds of a time; nil of one before the beginning, which is never.
func known(at time.Duration) *float64 {
	if at < 0 {
		return nil
	}
	return new(seconds(at))
}

// Why says what keeps a VM where it is, as the controller explains it.
func (w *World) Why(vm hypervisor.VMID) []placement.Reason { return w.boss.Why(vm, w.now) }

// lowerBound returns how long the migrations that succeeded must have taken at
// least: every byte of memory that is not zero, and all that local disks hold, crosses every
// link on its way once.
func (w *World) lowerBound() float64 {
	links := lowerBound{network: w.network.Shared()}
	for _, m := range w.watch.Moved {
		s := &m.Last.State
		if v := w.VM(m.Last.Spec.VM); v != nil {
			links.Move(w.HostRecord(s.Source), w.HostRecord(s.Target), w.least(m.Last, v.Now()))
		}
	}
	return seconds(links.Least())
}

// least returns what a migration of a VM sends at least: not more than it has sent, since the VM may
// have changed.
func (w *World) least(m *store.Migration, vm hypervisor.VM) hypervisor.Bytes {
	disks := vm.LocalSize()
	memory := fake.Workload{Zero: w.zero[vm.ID]}.Least(vm) - disks
	if m.Options != nil && m.Options.Compression.On() {
		remains := hypervisor.Bytes(cmp.Or(w.config.Model.Compression, 1000))
		memory = memory/1000*remains + memory%1000*remains/1000
	}
	if m.Source.Measured {
		return min(memory+disks, m.Source.Sent)
	}
	return memory + disks
}

// Done returns how many migrations have ended, and how many there are.
func (w *World) Done() (done, total int) { return w.watch.Done, w.watch.Totals.Total }

// VMs implements [InvariantWorld].
func (w *World) VMs() []hypervisor.VMID { return slices.Clone(w.watch.VMs()) }

// seconds rounds to milliseconds, so that equal runs read the same everywhere.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
