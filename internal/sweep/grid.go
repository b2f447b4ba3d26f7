package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Axis is a field of the scenario and the values that it is given in turn. An
// empty value leaves the field as the scenario has it.
type Axis struct {
	Path   string   `json:"path"` // as "limits.perCluster"
	Values []string `json:"values"`
}

// ParseAxis reads PATH=VALUE,VALUE…. A comma in brackets or in quotes is part of its value.
func ParseAxis(text string) (Axis, error) {
	path, values, found := strings.Cut(text, "=")
	if !found || path == "" {
		return Axis{}, fmt.Errorf("%q is no field with values: write limits.perCluster=2,5,10",
			text)
	}
	a := Axis{Path: path, Values: list(values)}
	for i, v := range a.Values {
		if slices.Contains(a.Values[:i], v) {
			return Axis{}, fmt.Errorf("%q has the value %q twice", text, v)
		}
	}
	return a, nil
}

// list splits a list at its commas.
func list(text string) []string {
	var all []string
	quote, depth, from := rune(0), 0, 0
	for at, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		case c == ',' && depth <= 0:
			all, from = append(all, text[from:at]), at+1
		}
	}
	return append(all, text[from:])
}

// A Setting is one value of an axis.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// String returns the setting as it is written on a command line.
func (s Setting) String() string { return s.Path + "=" + s.Value }

// A Grid is all combinations of the values of its axes. Without axes it has one
// combination, the scenario itself.
type Grid []Axis

// maxCombinations is how many combinations a grid may have.
const maxCombinations = 10_000

// Check refuses axes with the same path, and more combinations than allowed.
func (g Grid) Check() error {
	n := 1
	for i, a := range g {
		if slices.ContainsFunc(g[:i], func(b Axis) bool { return b.Path == a.Path }) {
			return fmt.Errorf("%s is given values twice: write them as one list", a.Path)
		}
		if len(a.Values) == 0 {
			return errors.New(a.Path + " has no values")
		}
		if n *= len(a.Values); n > maxCombinations {
			return fmt.Errorf("there are more than %d combinations", maxCombinations)
		}
	}
	return nil
}

// Size returns how many combinations there are.
func (g Grid) Size() int {
	n := 1
	for _, a := range g {
		n *= len(a.Values)
	}
	return n
}

// At returns the settings of a combination, numbered from 0; the last axis
// changes fastest.
func (g Grid) At(combination int) []Setting {
	settings := make([]Setting, len(g))
	for i, a := range slices.Backward(g) {
		settings[i] = Setting{a.Path, a.Values[combination%len(a.Values)]}
		combination /= len(a.Values)
	}
	return settings
}

// Seed returns the seed of a sample: the first has the scenario's own, so that one
// sample is what one simulation is. Further ones are spread by the finalizer of
// SplitMix64 over the numbers below 2^53, which every reader of JSON keeps, and
// differ from each other.
// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
// OOPSLA 2014.
func Seed(own uint64, sample int) uint64 {
	const mask = 1<<53 - 1
	if sample == 0 {
		return own
	}
	x := (own + uint64(sample)*0x9e3779b97f4a7c15) & mask
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 & mask
	x = (x ^ x>>27) * 0x94d049bb133111eb & mask
	return x ^ x>>31
}
