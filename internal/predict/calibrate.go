package predict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/humanize"
)

const (
	// parts is into how many parts experiments are dealt out.
	parts = 5
	// gain is how much better a change must make the loss to be kept.
	gain = 1e-4
	// downtimeWeight is how much a downtime counts, compared with a total time.
	downtimeWeight = 0.25
	// worst bounds the loss of one measurement: e³ is twenty times too much or too little.
	worst = 3
	// jitter is the downtime below which the machine's own jitter rules.
	jitter = float64(10 * time.Millisecond)
	// fastest is more than any processor copies, in bytes a second.
	fastest = 1e12
)

// steps are by which factors parameters are changed, coarse to fine.
var steps = []float64{2, 1.4, 1.15, 1.05, 1.02}

// A parameter is one number of a model. Zero means without limit, or free: the search then
// begins at start, and zero stays if that is better.
type parameter struct {
	name  string
	get   func(*fake.Model) float64
	set   func(*fake.Model, float64)
	start float64
	most  float64
	unit  unit
}

// A unit says how a number of a model is written.
type unit func(float64) string

func inTime(v float64) string     { return time.Duration(v).String() }
func inSpeed(v float64) string    { return fmt.Sprintf("%.0f MB/s", v/1e6) }
func inBytes(v float64) string    { return hypervisor.Bytes(v).String() }
func inPermille(v float64) string { return fmt.Sprintf("%.0f ‰", v) }

// duration and speed make parameters of these types.
func duration(name string, at func(*fake.Model) *time.Duration) parameter {
	return parameter{name, func(m *fake.Model) float64 { return float64(*at(m)) },
		func(m *fake.Model, v float64) { *at(m) = time.Duration(v) },
		float64(time.Millisecond), float64(time.Minute), inTime}
}

func speed(name string, at func(*fake.Model) *hypervisor.Bandwidth) parameter {
	return parameter{name, func(m *fake.Model) float64 { return float64(*at(m)) },
		func(m *fake.Model, v float64) { *at(m) = hypervisor.Bandwidth(v) },
		2_000_000_000, fastest, inSpeed}
}

// parameters are what is fitted, the most important first.
var parameters = []parameter{
	speed("firstTouch", func(m *fake.Model) *hypervisor.Bandwidth { return &m.FirstTouch }),
	speed("perChannel", func(m *fake.Model) *hypervisor.Bandwidth { return &m.PerChannel }),
	speed("allChannels", func(m *fake.Model) *hypervisor.Bandwidth { return &m.AllChannels }),
	duration("switchOver", func(m *fake.Model) *time.Duration { return &m.SwitchOver }),
	duration("setUp", func(m *fake.Model) *time.Duration { return &m.SetUp }),
	duration("acknowledge", func(m *fake.Model) *time.Duration { return &m.Acknowledge }),
	speed("scanRate", func(m *fake.Model) *hypervisor.Bandwidth { return &m.ScanRate }),
	{"deviceState", func(m *fake.Model) float64 { return float64(m.DeviceState) },
		func(m *fake.Model, v float64) { m.DeviceState = hypervisor.Bytes(v) },
		1 << 16, 1 << 34, inBytes},
	{"compression", func(m *fake.Model) float64 { return float64(m.Compression) },
		func(m *fake.Model, v float64) { m.Compression = int(math.Round(v)) },
		500, 1000, inPermille},
	speed("compressRate", func(m *fake.Model) *hypervisor.Bandwidth { return &m.CompressRate }),
	speed("deltaRate", func(m *fake.Model) *hypervisor.Bandwidth { return &m.DeltaRate }),
}

// A Change is one parameter that the fit changed, in the words of a model file.
type Change struct {
	Parameter string  `json:"parameter"`
	From      float64 `json:"from"` // nanoseconds, bytes, bytes a second or parts per thousand
	To        float64 `json:"to"`
}

// Said writes a value of the changed parameter with its unit.
func (c Change) Said(value float64) string {
	for _, p := range parameters {
		if p.name == c.Parameter && value == 0 && p.most == fastest {
			return "no limit"
		} else if p.name == c.Parameter {
			return p.unit(value)
		}
	}
	return fmt.Sprint(value)
}

// A Result is a fitted model and how good it is.
type Result struct {
	Model   fake.Model `json:"-"`
	Changes []Change   `json:"changes"`
	// Before and After compare the measurements that were fitted to with the model to begin
	// with, and with the fitted one.
	Before Report `json:"before"`
	After  Report `json:"after"`
	// Validated compares each measurement with a model that was fitted without it; nil when
	// there are fewer than two experiments.
	Validated *Report `json:"validated,omitempty"`
	// Held is what was left out at a time for Validated: "host" or "experiment".
	Held string `json:"held,omitempty"`
	// Refused says that the fitted model predicts what was left out worse than the one to begin
	// with, or that nothing could be left out to know: Model is the one to begin with then.
	Refused string `json:"refused,omitempty"`
	// Errors are how far the model was off what was left out, and off what no parameter governs.
	Errors *Errors `json:"-"`
	// Fitted counts the measurements that were fitted to. The others did not complete, or
	// no parameter says what governs them.
	Fitted int `json:"fitted"`
}

// Fit fits a model to measurements, starting from base. Where no parameter governs any of them, it
// leaves base as it is, and learns how far that is off. It fails when no measurement completed, or the
// fake refuses one.
func Fit(all []Migration, base fake.Model) (*Result, error) {
	fit := slices.DeleteFunc(slices.Clone(all), func(m Migration) bool { return !m.Completed || m.encoded() })
	given := slices.DeleteFunc(slices.Clone(all), func(m Migration) bool { return !m.Completed || !m.encoded() })
	switch {
	case len(fit)+len(given) == 0:
		return nil, fmt.Errorf("none of %s can be used: none completed", humanize.Count(len(all), "measurement"))
	case len(fit) == 0:
		return judge(given, base)
	}
	r, samples, err := fitTo(fit, base)
	if err != nil {
		return nil, err
	}
	more, err := Samples(given, r.Model)
	if err != nil {
		return nil, err
	}
	r.Errors = Learn(append(samples, more...))
	return r, nil
}

// fitTo fits a model to measurements that its parameters govern, and returns how far it was off each of them
// while it was left out.
func fitTo(fit []Migration, base fake.Model) (*Result, []Sample, error) {
	before, err := Compare(fit, base)
	if err != nil {
		return nil, nil, err
	}
	r := &Result{Model: search(fit, base), Before: before, Fitted: len(fit)}
	if r.After, err = Compare(fit, r.Model); err != nil {
		return nil, nil, err
	}
	for _, p := range parameters {
		if from, to := p.get(&base), p.get(&r.Model); from != to {
			r.Changes = append(r.Changes, Change{Parameter: p.name, From: from, To: to})
		}
	}
	held := validate(fit, base)
	r.Validated, r.Held = held.report, held.by
	samples := held.samples
	if held.report != nil && held.loss > loss(fit, base)+gain {
		r.Refused = fmt.Sprintf("it predicts measurements that it was not fitted to worse than the model to "+
			"begin with: by a factor of %.2f on average, instead of %.2f", math.Exp(held.loss),
			math.Exp(loss(fit, base)))
		r.Model, r.Changes = base, nil
		samples, err = Samples(fit, base)
	}
	return r, samples, err
}

// judge learns how far a model is off measurements that no parameter governs.
func judge(all []Migration, base fake.Model) (*Result, error) {
	report, err := Compare(all, base)
	if err != nil {
		return nil, err
	}
	samples, err := Samples(all, base)
	return &Result{Model: base, Before: report, After: report, Errors: Learn(samples)}, err
}

// heldOut is how well measurements are predicted that a model was not fitted to.
type heldOut struct {
	report  *Report
	by      string
	loss    float64
	samples []Sample
}

// validate predicts each part of the measurements by a model that is fitted to the others: host
// by host if there are several, or else parts of the experiments.
func validate(all []Migration, base fake.Model) heldOut {
	h := heldOut{by: "host"}
	part := map[string]int{}
	of := func(m *Migration) string { return m.Host }
	for i := range all {
		part[all[i].Host] = 0
	}
	most := len(part)
	if most < 2 {
		of, h.by, most = (*Migration).experiment, "experiment", parts
	}
	clear(part)
	for i := range all {
		if _, known := part[of(&all[i])]; !known {
			part[of(&all[i])] = len(part) % min(most, 2*parts)
		}
	}
	if len(part) < 2 {
		return heldOut{}
	}
	var t Tally
	for n := range min(most, 2*parts, len(part)) {
		others := slices.DeleteFunc(slices.Clone(all), func(m Migration) bool {
			return part[of(&m)] == n
		})
		model := search(others, base)
		for i := range all {
			if m := &all[i]; part[of(m)] == n {
				p, _ := m.Predict(model) // it was predicted before
				t.Add(m, p)
				h.loss += m.loss(p) / float64(len(all))
				h.samples = append(h.samples, Sample{Class: m.Class(), Experiment: m.experiment(),
					Predicted: Times{Total: p.Total, Downtime: p.Downtime},
					Measured:  Times{Total: m.Total, Downtime: m.Downtime}, NoDowntime: m.NoDowntime})
			}
		}
	}
	r := t.Report()
	h.report = &r
	return h
}

// search returns the model near base that predicts best.
func search(all []Migration, base fake.Model) fake.Model {
	best := base
	least := loss(all, best)
	try := func(p parameter, value float64) bool {
		next := best
		p.set(&next, min(value, p.most))
		if next == best {
			return false
		}
		l := loss(all, next)
		if l > least-gain {
			return false
		}
		best, least = next, l
		return true
	}
	for _, p := range parameters {
		if p.get(&best) == 0 {
			try(p, p.start)
		}
	}
	for _, step := range steps {
		for better := true; better; {
			better = false
			for _, p := range parameters {
				for _, factor := range []float64{step, 1 / step} {
					for try(p, p.get(&best)*factor) {
						better = true
					}
				}
			}
		}
	}
	return best
}

// loss says how far a model's predictions are off.
func loss(all []Migration, model fake.Model) float64 {
	sum := 0.0
	for i := range all {
		m := &all[i]
		p, err := m.Predict(model)
		if err != nil { // the fake refuses such a model
			return math.Inf(1)
		}
		sum += m.loss(p)
	}
	return sum / float64(len(all))
}

// loss says how far one prediction is off.
func (m *Migration) loss(p Modeled) float64 {
	total := distance(float64(p.Total), float64(m.Total))
	if m.NoDowntime {
		return total
	}
	return total + downtimeWeight*
		distance(max(jitter, float64(p.Downtime)), max(jitter, float64(m.Downtime)))
}

func distance(predicted, measured float64) float64 {
	return min(worst, math.Abs(math.Log(max(1, predicted)/max(1, measured))))
}
