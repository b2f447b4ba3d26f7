package predict

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// floor is the downtime below which the machine's own jitter rules: smaller ones compare
// as if they were this long.
const floor = 10 * time.Millisecond

// An Error is how far predictions are off, as shares of what was measured: 0.05 is 5 %.
type Error struct {
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
}

// An Accuracy says how far the predictions of a class of measurements are off.
type Accuracy struct {
	Class string `json:"class"`
	// Count is how many were compared. Lost counts those that completed and whose
	// prediction does not; they are compared with the time at which it was given up.
	Count    int   `json:"count"`
	Lost     int   `json:"lost"`
	Total    Error `json:"total"`
	Downtime Error `json:"downtime"`
	// NoDowntime counts the measurements whose downtime is not known: Downtime is of the others.
	NoDowntime int `json:"downtimeUnknown,omitempty"`
}

// A Report is how well a model predicts measurements.
type Report struct {
	All     Accuracy   `json:"all"`
	Classes []Accuracy `json:"classes"` // by name
	// Endless counts measured migrations that did not complete, and Agreed those among
	// them that do not in the model, within the time after which they were given up.
	Endless int `json:"endless"`
	Agreed  int `json:"agreed"`
}

// Compare predicts every measurement with a model. It fails for a measurement that the fake
// refuses.
func Compare(all []Migration, model fake.Model) (Report, error) {
	var t Tally
	for i := range all {
		p, err := all[i].Predict(model)
		if err != nil {
			return Report{}, err
		}
		t.Add(&all[i], p)
	}
	return t.Report(), nil
}

// A Tally collects how far predictions are off. Its zero value is empty.
type Tally struct {
	all     misses
	classes map[string]*misses
	endless int
	agreed  int
}

// Add compares a measurement with its prediction.
func (t *Tally) Add(m *Migration, p Modeled) {
	if !m.Completed {
		t.endless++
		if !p.Completed || p.Total > m.Total {
			t.agreed++
		}
		return
	}
	if t.classes == nil {
		t.classes = map[string]*misses{}
	}
	class := m.Class()
	if t.classes[class] == nil {
		t.classes[class] = &misses{}
	}
	t.classes[class].add(m, p)
	t.all.add(m, p)
}

// Report returns what was collected.
func (t *Tally) Report() Report {
	r := Report{All: t.all.accuracy("all"), Endless: t.endless, Agreed: t.agreed}
	for _, class := range slices.Sorted(maps.Keys(t.classes)) {
		r.Classes = append(r.Classes, t.classes[class].accuracy(class))
	}
	return r
}

// Noise says how far the runs of an experiment are from one another: each is predicted by the
// median of the others. No model can be much better than that. Experiments with one run are
// left out.
func Noise(all []Migration) Accuracy {
	var l misses
	for m, p := range others(all) {
		l.add(m, p)
	}
	return l.accuracy("noise")
}

// NoiseBy is [Noise] for each class.
func NoiseBy(all []Migration) map[string]Accuracy {
	classes := map[string]*misses{}
	for m, p := range others(all) {
		if classes[m.Class()] == nil {
			classes[m.Class()] = &misses{}
		}
		classes[m.Class()].add(m, p)
	}
	noise := map[string]Accuracy{}
	for class, l := range classes {
		noise[class] = l.accuracy(class)
	}
	return noise
}

// others yields each measurement with the median of the other runs of its experiment.
func others(all []Migration) iter.Seq2[*Migration, Modeled] {
	runs := map[string][]*Migration{}
	for i := range all {
		if m := &all[i]; m.Completed {
			runs[m.experiment()] = append(runs[m.experiment()], m)
		}
	}
	return func(yield func(*Migration, Modeled) bool) {
		for _, same := range runs {
			for i, m := range same {
				others := slices.Delete(slices.Clone(same), i, i+1)
				if len(others) == 0 {
					continue
				}
				if !yield(m, Modeled{Completed: true, Total: middle(others, totalOf),
					Downtime: middle(others, downtimeOf)}) {
					return
				}
			}
		}
	}
}

func totalOf(m *Migration) time.Duration    { return m.Total }
func downtimeOf(m *Migration) time.Duration { return m.Downtime }

// middle returns the median of a time.
func middle(all []*Migration, of func(*Migration) time.Duration) time.Duration {
	list := make([]time.Duration, len(all))
	for i, m := range all {
		list[i] = of(m)
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// experiment names what the runs of an experiment have in common: all that was asked for.
// The moment of post-copy is never met exactly; stats-race is a remark on how the times
// were read.
func (m *Migration) experiment() string {
	asked := *m
	asked.Line, asked.Total, asked.Downtime, asked.Completed, asked.Unthrottled = 0, 0, 0, false, false
	asked.SwitchAfter = asked.SwitchAfter.Round(500 * time.Millisecond)
	asked.Words = slices.DeleteFunc(slices.Clone(m.Words), func(w string) bool {
		return w == "stats-race"
	})
	return fmt.Sprintf("%+v", asked)
}

// Off returns how far a prediction is off, as shares of what was measured.
func (m *Migration) Off(p Modeled) (total, downtime float64) {
	return offBy(p.Total, m.Total, 0), offBy(p.Downtime, m.Downtime, floor)
}

// offBy returns how far got is from want, or from least if that is more.
func offBy(got, want, least time.Duration) float64 {
	return float64((got - want).Abs()) / float64(max(want, least, time.Millisecond))
}

// Class says which mechanism governed the measurement: auto-converge where it slowed the guest, and
// not where it was only allowed. Post-copy counts where it was allowed: the built-in measurements in
// which it was and did not happen are further off than those of plain pre-copy. All of the link counts,
// as in a plan, and not the share of it that a migration had.
func (m *Migration) Class() string {
	tls := slices.ContainsFunc(m.Words, func(w string) bool { return strings.HasPrefix(w, "tls") })
	o := m.Options
	o.AutoConverge = o.AutoConverge && !m.Unthrottled
	if wire := cmp.Or(m.Wire, m.Link); wire > 0 && (o.Bandwidth == 0 || wire < o.Bandwidth) {
		o.Bandwidth = wire
	}
	return Class(o, tls, m.Emulated)
}

// Class says which mechanism governs a transfer with options, whose bandwidth is that of the cap
// or of a slower wire, 0 without either.
func Class(o hypervisor.TransferOptions, tls, emulated bool) string {
	kind := "kvm"
	if emulated {
		kind = "tcg"
	}
	switch {
	case o.AutoConverge:
		return "auto-converge"
	case o.PostCopy:
		return "post-copy"
	case o.Compression:
		return "compression"
	case o.XBZRLE:
		return "xbzrle"
	case tls && o.Channels > fewEncrypted:
		return "tls over more than 2 connections"
	case tls:
		return "tls"
	case o.Bandwidth > 0 && o.Bandwidth <= 300*hypervisor.Bandwidth(hypervisor.MiB):
		return "capped " + kind // by however many connections
	case o.Channels > 0:
		return "multifd"
	}
	return "uncapped " + kind // or with a cap that hardly binds
}

// fewEncrypted is over how many connections encrypted migrations are measured on [Machine]: its two
// processors are slower together than twice one connection. Further ones compare with the model of a
// plan: [fake.Model.Encrypted].
const fewEncrypted = 2

// misses are how far the predictions of a class are off.
type misses struct {
	lost            int
	total, downtime []float64
}

func (l *misses) add(m *Migration, p Modeled) {
	total, downtime := m.Off(p)
	if !p.Completed {
		l.lost++
	}
	l.total = append(l.total, total)
	if !m.NoDowntime {
		l.downtime = append(l.downtime, downtime)
	}
}

func (l *misses) accuracy(class string) Accuracy {
	return Accuracy{Class: class, Count: len(l.total), Lost: l.lost,
		Total: errorOf(l.total), Downtime: errorOf(l.downtime), NoDowntime: len(l.total) - len(l.downtime)}
}

func errorOf(list []float64) Error {
	if len(list) == 0 {
		return Error{}
	}
	slices.Sort(list)
	return Error{Median: list[len(list)*50/100], P90: list[len(list)*90/100]}
}
