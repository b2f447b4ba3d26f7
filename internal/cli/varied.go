package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
)

// differ sets what differs from world to world, and returns it in words.
func (f *drainFlags) differ(s *config.Scenario, hosts []hypervisor.HostName) ([]string, error) {
	texts := f.vary
	if len(texts) == 0 {
		if words := spoken(&s.Vary); len(words) > 0 {
			return words, nil
		}
		texts = []string{"dirty=" + dirtyByDefault, "link=" + linkByDefault}
		for _, host := range hosts {
			texts = append(texts, "fault="+faultByDefault+" "+string(host)+" for=1m")
		}
	}
	s.Vary = config.Vary{}
	if slices.Equal(texts, []string{"none"}) {
		return []string{"only the seed"}, nil
	}
	for _, text := range texts {
		if err := differs(&s.Vary, text); err != nil {
			return nil, fmt.Errorf("--vary %s: %w", text, err)
		}
	}
	certain := *s // every fault must fit the fleet
	certain.Vary.Faults = slices.Clone(s.Vary.Faults)
	for i := range certain.Vary.Faults {
		certain.Vary.Faults[i].Chance = 1
	}
	if _, err := certain.Draw(s.Seed); err != nil {
		return nil, fmt.Errorf("--vary: %w", err)
	}
	return texts, nil
}

func differs(v *config.Vary, text string) (err error) {
	name, value, _ := strings.Cut(text, "=")
	switch name {
	case "dirty":
		v.Dirty, err = config.ParseDistribution(value)
	case "workingSet":
		v.WorkingSet, err = config.ParseDistribution(value)
	case "link":
		v.Link, err = config.ParseDistribution(value)
	case "fault":
		var f config.Fault
		f, err = config.ParseFault(value, inventory.ParseDuration)
		v.Faults = append(v.Faults, f)
	default:
		err = errors.New("write dirty=, workingSet=, link=, fault= or none")
	}
	return err
}

// spoken returns in words what a scenario varies.
func spoken(v *config.Vary) []string {
	var words []string
	for _, d := range []struct {
		name string
		of   config.Distribution
	}{{"dirty", v.Dirty}, {"workingSet", v.WorkingSet}, {"link", v.Link}} {
		if !d.of.Fixed() {
			words = append(words, d.name+"="+d.of.String())
		}
	}
	for _, f := range v.Faults {
		words = append(words, fmt.Sprintf("fault=%dx %g%% within %v %s", f.Times, 100*f.Chance,
			f.Within, strings.Join(f.Event, " ")))
	}
	return words
}
