package inventory

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// A Spec is a model in YAML.
type ModelSpec struct {
	Base         string `yaml:"base,omitempty"` // qemu (default), ideal
	SetUp        string `yaml:"setUp,omitempty"`
	SwitchOver   string `yaml:"switchOver,omitempty"`
	Acknowledge  string `yaml:"acknowledge,omitempty"`
	Window       string `yaml:"window,omitempty"`
	DeviceState  string `yaml:"deviceState,omitempty"`
	PageOverhead string `yaml:"pageOverhead,omitempty"`
	ZeroPage     string `yaml:"zeroPage,omitempty"`
	ScanRate     string `yaml:"scanRate,omitempty"`
	PerChannel   string `yaml:"perChannel,omitempty"`
	AllChannels  string `yaml:"allChannels,omitempty"`
	FirstTouch   string `yaml:"firstTouch,omitempty"`
	Compression  int    `yaml:"compression,omitempty"` // parts per thousand
	CompressRate string `yaml:"compressRate,omitempty"`
	DeltaCache   string `yaml:"deltaCache,omitempty"`
	DeltaPage    string `yaml:"deltaPage,omitempty"`
	DeltaRate    string `yaml:"deltaRate,omitempty"`
	BootTime     string `yaml:"bootTime,omitempty"`
	ShutdownTime string `yaml:"shutdownTime,omitempty"`
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
	longest  = 24 * time.Hour
	largest  = hypervisor.TiB
	noGain   = 1000
	maxModel = 1 << 16 // bytes of a file
)

// A field is one of a spec, and the number of the model that it says.
type field struct {
	name string
	text *string
	time *time.Duration
	size *hypervisor.Bytes
	rate *hypervisor.Bandwidth
}

func fields(s *ModelSpec, m *fake.Model) []field {
	return []field{
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
	for _, f := range fields(s, &m) {
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

func (f *field) read() (err error) {
	switch {
	case f.time != nil:
		*f.time, err = ParseDuration(*f.text)
		if err == nil && *f.time > longest {
			err = fmt.Errorf("%q is more than %v", *f.text, longest)
		}
	case f.size != nil:
		*f.size, err = ParseBytes(*f.text)
		if err == nil && *f.size > largest {
			err = fmt.Errorf("%q is more than %v", *f.text, largest)
		}
	default:
		*f.rate, err = ParseBandwidth(*f.text)
	}
	return err
}

// ReadModelFile reads a model from a file. Its errors are [yamldoc.Problems], unless the file
// cannot be read.
func ReadModelFile(path string) (fake.Model, error) {
	file, err := os.Open(path)
	if err != nil {
		return fake.Model{}, err
	}
	defer file.Close()
	data, err := yamldoc.ReadAll(path, file, maxModel)
	if err != nil {
		return fake.Model{}, err
	}
	return ParseModel(path, data)
}

// ParseModel reads a model. The name is the file's; errors are [yamldoc.Problems].
func ParseModel(name string, data []byte) (fake.Model, error) {
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return fake.Model{}, err
	}
	var s ModelSpec
	if err := doc.Decode(&s); err != nil {
		return fake.Model{}, err
	}
	report := yamldoc.Report{File: name}
	m := s.Model(func(field, format string, args ...any) {
		report.Errorf(doc.Line(field), field, format, args...)
	})
	return m, report.Err()
}

// WriteModel writes a model such that Parse reads the same.
func WriteModel(w io.Writer, m fake.Model) error {
	if _, err := fmt.Fprintln(w, "base: ideal"); err != nil {
		return err
	}
	for _, f := range fields(&ModelSpec{}, &m) {
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

// A Choice is how a larger file says a model: the name of one, a file beside it, or a spec in
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
