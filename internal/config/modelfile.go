package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

// A ModelSpec is a model in YAML.
type ModelSpec struct {
	Base         string `yaml:"base,omitempty"` // one of qemu (default), ideal
	SetUp        string `yaml:"setUp,omitempty"`
	SwitchOver   string `yaml:"switchOver,omitempty"`
	Acknowledge  string `yaml:"acknowledge,omitempty"`
	Window       string `yaml:"window,omitempty"`
	DeviceState  string `yaml:"deviceState,omitempty"`
	PageOverhead string `yaml:"pageOverhead,omitempty"` // what a page costs besides itself
	ZeroPage     string `yaml:"zeroPage,omitempty"`     // what a page of zeros costs in all
	ScanRate     string `yaml:"scanRate,omitempty"`
	PerChannel   string `yaml:"perChannel,omitempty"`  // what the processors can copy into one connection; 0 is without limit
	AllChannels  string `yaml:"allChannels,omitempty"` // what the processors can copy into all connections of a transfer together; 0 is without limit
	FirstTouch   string `yaml:"firstTouch,omitempty"`  // the same of pages that the target receives for the first time; 0 is as fast as others
	Compression  int    `yaml:"compression,omitempty"` // what remains of a page that is compressed, in parts per thousand
	CompressRate string `yaml:"compressRate,omitempty"`
	DeltaCache   string `yaml:"deltaCache,omitempty"` // how much of what it sent a hypervisor remembers for XBZRLE; 0 is none
	DeltaPage    string `yaml:"deltaPage,omitempty"`  // what a page that it remembers costs on the wire
	DeltaRate    string `yaml:"deltaRate,omitempty"`  // how fast such pages are compared; 0 is at once
	BootTime     string `yaml:"bootTime,omitempty"`
	ShutdownTime string `yaml:"shutdownTime,omitempty"`
	// Errors are how far the model was off migrations that were measured, by class: what godwit
	// calibrate writes. Without them nothing is known of a model's errors.
	Errors map[string]ModelErrorSpec `yaml:"errors,omitempty"`
}

// A ModelErrorSpec is how far a model is off: how many migrations were measured, and the factors
// measured/predicted below which 10, 50 and 90 % of them were.
type ModelErrorSpec struct {
	Measured int `yaml:"measured"` // how many migrations of the class were measured
	// Downtimes is of how many of them the downtime is known. Default: all.
	Downtimes *int      `yaml:"downtimes,omitempty"`
	Total     []float64 `yaml:"total,flow"`    // by what factor they took longer than predicted: of 10, 50 and 90 % of them at most
	Downtime  []float64 `yaml:"downtime,flow"` // the same of their downtimes
}

// ModelNamed returns the model of a name: qemu, ideal.
func ModelNamed(name string) (fake.Model, bool) {
	switch name {
	case "", "qemu":
		return fake.QEMU(), true
	case "ideal":
		return fake.Model{}, true
	}
	return fake.Model{}, false
}

// Limits on what a model may say; times and amounts are added up.
const (
	modelLongest = 24 * time.Hour
	modelLargest = hypervisor.TiB
	noGain       = 1000
	maxModel     = 1 << 16 // bytes of a file
)

// A modelField is one of a spec, and the number of the model that it says.
type modelField struct {
	name string
	text *string
	time *time.Duration
	size *hypervisor.Bytes
	rate *hypervisor.Bandwidth
}

func modelFields(s *ModelSpec, m *fake.Model) []modelField {
	return []modelField{
		{name: "setUp", text: &s.SetUp, time: &m.SetUp},
		{name: "switchOver", text: &s.SwitchOver, time: &m.SwitchOver},
		{name: "acknowledge", text: &s.Acknowledge, time: &m.Acknowledge},
		{name: "window", text: &s.Window, time: &m.Window},
		{name: "deviceState", text: &s.DeviceState, size: &m.DeviceState},
		{name: "pageOverhead", text: &s.PageOverhead, size: &m.PageOverhead},
		{name: "zeroPage", text: &s.ZeroPage, size: &m.ZeroPage},
		{name: "scanRate", text: &s.ScanRate, rate: &m.ScanRate},
		{name: "perChannel", text: &s.PerChannel, rate: &m.PerChannel},
		{name: "allChannels", text: &s.AllChannels, rate: &m.AllChannels},
		{name: "firstTouch", text: &s.FirstTouch, rate: &m.FirstTouch},
		{name: "compressRate", text: &s.CompressRate, rate: &m.CompressRate},
		{name: "deltaCache", text: &s.DeltaCache, size: &m.DeltaCache},
		{name: "deltaPage", text: &s.DeltaPage, size: &m.DeltaPage},
		{name: "deltaRate", text: &s.DeltaRate, rate: &m.DeltaRate},
		{name: "bootTime", text: &s.BootTime, time: &m.BootTime},
		{name: "shutdownTime", text: &s.ShutdownTime, time: &m.ShutdownTime},
	}
}

// Model returns the model that a spec says. It tells wrong what is wrong: the field, and
// what to do about it.
func (s *ModelSpec) Model(wrong func(field, format string, args ...any)) fake.Model {
	m, known := ModelNamed(s.Base)
	if !known {
		wrong("base", "unknown model %q; use qemu or ideal", s.Base)
	}
	for _, f := range modelFields(s, &m) {
		if *f.text == "" {
			continue
		}
		if err := f.read(); err != nil {
			wrong(f.name, "%v", err)
		}
	}
	if s.Compression < 0 || s.Compression > noGain {
		wrong("compression", "needs parts per thousand, 1 to %d, has %d", noGain, s.Compression)
	} else if s.Compression > 0 {
		m.Compression = s.Compression
	}
	return m
}

// errors returns how far the model was off; nil when the spec does not say.
func (s *ModelSpec) errors(wrong func(field, format string, args ...any)) *predict.Errors {
	if len(s.Errors) == 0 {
		return nil
	}
	known := map[string]predict.Summary{}
	for _, class := range slices.Sorted(maps.Keys(s.Errors)) {
		e := s.Errors[class]
		if e.Measured < 1 || !factors(e.Total) || !factors(e.Downtime) {
			wrong("errors."+class, "needs measured of 1 or more, and three factors in order, each of "+
				"0.001 to 1000, for total and downtime")
			continue
		}
		downtimes := e.Measured
		if e.Downtimes != nil {
			downtimes = *e.Downtimes
		}
		if downtimes < 0 || downtimes > e.Measured {
			wrong("errors."+class+".downtimes", "needs 0 to measured, %d, has %d", e.Measured, downtimes)
			continue
		}
		known[class] = predict.Summary{Measured: e.Measured, Downtimes: downtimes, Total: [3]float64(e.Total),
			Downtime: [3]float64(e.Downtime)}
	}
	return predict.Known(known)
}

// factors reports whether a list is three factors in order.
func factors(list []float64) bool {
	return len(list) == 3 && list[0] >= 1e-3 && list[0] <= list[1] && list[1] <= list[2] && list[2] <= 1e3
}

func (f *modelField) read() (err error) {
	switch {
	case f.time != nil:
		*f.time, err = inventory.ParseDuration(*f.text)
		if err == nil && *f.time > modelLongest {
			err = fmt.Errorf("%q is more than %v", *f.text, modelLongest)
		}
	case f.size != nil:
		*f.size, err = inventory.ParseBytes(*f.text)
		if err == nil && *f.size > modelLargest {
			err = fmt.Errorf("%q is more than %v", *f.text, modelLargest)
		}
	default:
		*f.rate, err = inventory.ParseBandwidth(*f.text)
	}
	return err
}

// ReadModelFile reads a model from a file, and how far it was off what was measured, nil if the file
// does not say. Its errors are [yamldoc.Problems], unless the file cannot be read.
func ReadModelFile(path string) (fake.Model, *predict.Errors, error) {
	file, err := os.Open(path)
	if err != nil {
		return fake.Model{}, nil, err
	}
	defer file.Close()
	data, err := yamldoc.ReadAll(path, file, maxModel)
	if err != nil {
		return fake.Model{}, nil, err
	}
	return parseModel(path, data)
}

// parseModel reads a model. The name is the file's; errors are [yamldoc.Problems].
func parseModel(name string, data []byte) (fake.Model, *predict.Errors, error) {
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return fake.Model{}, nil, err
	}
	var s ModelSpec
	if err := doc.Decode(&s); err != nil {
		return fake.Model{}, nil, err
	}
	report := yamldoc.Report{File: name}
	wrong := func(field, format string, args ...any) {
		report.Errorf(doc.Line(field), field, format, args...)
	}
	m, e := s.Model(wrong), s.errors(wrong)
	return m, e, report.Err()
}

// WriteModelErrors writes how far a model was off, behind the model.
func WriteModelErrors(w io.Writer, e *predict.Errors) error {
	all := e.Summaries()
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w, "errors: # measured/predicted: p10, p50, p90")
	list := func(f [3]float64) string {
		at := func(x float64) float64 { return min(max(x, 1e-3), 1e3) }
		return fmt.Sprintf("[%.4f, %.4f, %.4f]", at(f[0]), at(f[1]), at(f[2]))
	}
	for _, class := range slices.Sorted(maps.Keys(all)) {
		s := all[class]
		downtimes := ""
		if s.Downtimes != s.Measured {
			downtimes = fmt.Sprintf(" downtimes: %d,", s.Downtimes)
		}
		if _, err := fmt.Fprintf(w, "  %s: {measured: %d,%s total: %s, downtime: %s}\n", class, s.Measured, downtimes,
			list(s.Total), list(s.Downtime)); err != nil {
			return err
		}
	}
	return nil
}

// WriteModel writes a model such that [ReadModelFile] reads the same.
func WriteModel(w io.Writer, m fake.Model) error {
	if _, err := fmt.Fprintln(w, "base: ideal"); err != nil {
		return err
	}
	for _, f := range modelFields(&ModelSpec{}, &m) {
		value := ""
		switch {
		case f.time != nil:
			value = f.time.String()
		case f.size != nil:
			value = fmt.Sprintf("%dB", int64(*f.size))
		default:
			value = fmt.Sprintf("%dB/s", int64(*f.rate))
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", f.name, value); err != nil {
			return err
		}
	}
	if m.Compression == 0 {
		m.Compression = noGain
	}
	_, err := fmt.Fprintf(w, "compression: %d\n", m.Compression)
	return err
}

// A ModelChoice is how a larger file says a model: the name of one, a file beside it, or a spec in
// place.
type ModelChoice struct {
	Word string     // a name or a file; "" is qemu
	Spec *ModelSpec // in place
}

// UnmarshalYAML reads a word or a spec. Fields are no error as a word, only empty.
func (c *ModelChoice) UnmarshalYAML(decode func(any) error) error {
	if err := decode(&c.Word); err == nil && c.Word != "" {
		return nil
	}
	c.Spec = &ModelSpec{}
	return decode(c.Spec)
}
