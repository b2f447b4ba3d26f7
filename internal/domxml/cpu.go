package domxml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/internal/backend"
)

// The modes of libvirt's <cpu>.
const (
	passthrough = "host-passthrough"
	hostModel   = "host-model"
	maximum     = "maximum"
	custom      = "custom"
)

// A Processor is a CPU model with changes to its features.
type Processor struct {
	Mode     string // one of the modes; "" is the default of the domain's type
	Model    string // of the mode Custom
	Features []Feature
}

// A Feature of a processor is added to its model, or taken from it.
type Feature struct {
	Name string
	Has  bool
}

// parseCPU reads a CPU model as QEMU's command line names it: "qemu64,+x2apic".
// Of modes it knows QEMU's names, "host" and "max", and libvirt's. No name is no
// mode. It fails for all else.
func parseCPU(s string) (Processor, error) {
	if s == "" {
		return Processor{}, nil
	}
	parts := strings.Split(s, ",")
	p := Processor{Mode: parts[0]}
	switch p.Mode {
	case "host":
		p.Mode = passthrough
	case "max":
		p.Mode = maximum
	case passthrough, hostModel, maximum:
	default:
		p.Mode, p.Model = custom, parts[0]
	}
	if !cpuWord(parts[0]) {
		return Processor{}, fmt.Errorf("%s is no CPU model", backend.Quote(parts[0]))
	}
	for _, part := range parts[1:] {
		f, err := parseFeature(part)
		if err != nil {
			return Processor{}, err
		}
		p.Features = append(p.Features, f)
	}
	return p, nil
}

// parseFeature reads "+name", "-name", "name=on" and "name=off".
func parseFeature(s string) (Feature, error) {
	name, value, assigned := strings.Cut(s, "=")
	has := value == "on"
	if !assigned {
		name, has = strings.CutPrefix(s, "+")
		if !has {
			name, assigned = strings.CutPrefix(s, "-")
		}
	} else if value != "on" && value != "off" {
		assigned = false
	}
	if !cpuWord(name) || !has && !assigned {
		return Feature{}, fmt.Errorf("%s is no CPU feature", backend.Quote(s))
	}
	return Feature{name, has}, nil
}

// cpuWord reports whether s can be the name of a CPU model or feature.
func cpuWord(s string) bool { return s != "" && s[0] != '-' && backend.Word(s, "._-") }

// String returns what [parseCPU] reads.
func (p Processor) String() string {
	words := []string{p.Mode}
	if p.Mode == custom {
		words[0] = p.Model
	}
	for _, f := range p.Features {
		words = append(words, map[bool]string{true: "+", false: "-"}[f.Has]+f.Name)
	}
	return strings.Join(words, ",")
}

// or returns p, or the default of a domain's type if p has no mode: the host's own
// CPU where the processor runs the guest, without a feature that is unfit for it.
func (p Processor) or(kind, unfit string) Processor {
	switch {
	case p.Mode != "":
		return p
	case kind != KVM:
		return Processor{Mode: custom, Model: "qemu64"}
	case unfit != "":
		return Processor{Mode: passthrough, Features: []Feature{{Name: unfit}}}
	}
	return Processor{Mode: passthrough}
}

// agrees reports whether p and o are the same CPU.
func (p Processor) agrees(o Processor) bool {
	return p.Mode == o.Mode && p.Model == o.Model &&
		slices.Equal(sorted(p.Features), sorted(o.Features))
}

func sorted(all []Feature) []Feature {
	return slices.SortedStableFunc(slices.Values(all), func(a, b Feature) int {
		return cmp.Compare(a.Name, b.Name)
	})
}
