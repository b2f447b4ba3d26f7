package config

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Distribution is where factors are drawn from: uniform(LOW, HIGH);
// triangular(LOW, MODE, HIGH); lognormal(SIGMA), whose median is 1 and whose
// logarithm has the standard deviation SIGMA; choice(A, B, …), each as likely as
// the others. Spaces will do for commas, which YAML's own lists in one line take
// for theirs. The zero value is always 1.
type Distribution struct {
	draw func(*rand.Rand) float64
	text string
}

// The bounds of every factor that is drawn.
const (
	smallest = 0.001
	largest  = 1000
)

// family is one kind of distribution.
type family struct {
	name, usage string
	least, most int // arguments
	sorted      bool
	draw        func(args []float64, r *rand.Rand) float64
}

var families = []family{
	{"uniform", "uniform(LOW, HIGH)", 2, 2, true, func(a []float64, r *rand.Rand) float64 {
		return a[0] + (a[1]-a[0])*r.Float64()
	}},
	{"triangular", "triangular(LOW, MODE, HIGH)", 3, 3, true, triangular},
	{"lognormal", "lognormal(SIGMA)", 1, 1, false, func(a []float64, r *rand.Rand) float64 {
		return math.Exp(a[0] * r.NormFloat64())
	}},
	{"choice", "choice(A, B, …)", 1, 100, false, func(a []float64, r *rand.Rand) float64 {
		return a[r.IntN(len(a))]
	}},
}

// triangular inverts the distribution function, which is a square on both sides
// of the mode.
func triangular(a []float64, r *rand.Rand) float64 {
	low, mode, high := a[0], a[1], a[2]
	u, all := r.Float64(), high-low
	if u*all < mode-low {
		return low + math.Sqrt(u*all*(mode-low))
	}
	return high - math.Sqrt((1-u)*all*(high-mode))
}

// ParseDistribution reads a distribution. Factors are above 0 and at most 1000, a sigma is at
// most 3.
func ParseDistribution(text string) (Distribution, error) {
	name, rest, open := strings.Cut(strings.TrimSpace(text), "(")
	inside, closed := strings.CutSuffix(rest, ")")
	at := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	if at < 0 || !open || !closed {
		return Distribution{}, fmt.Errorf("%q is no distribution: use %s", text, usages())
	}
	f := families[at]
	args, err := numbers(inside)
	if err != nil {
		return Distribution{}, fmt.Errorf("%s: %w", f.usage, err)
	}
	if len(args) < f.least || len(args) > f.most {
		return Distribution{}, fmt.Errorf("%q has %d numbers: write %s", text, len(args), f.usage)
	}
	if f.sorted && !slices.IsSorted(args) {
		return Distribution{}, fmt.Errorf("%q: the numbers must not fall: write %s", text, f.usage)
	}
	if name == "lognormal" && args[0] > 3 {
		return Distribution{}, fmt.Errorf("%q: SIGMA is at most 3", text)
	}
	return Distribution{text: text, draw: func(r *rand.Rand) float64 {
		return f.draw(args, r)
	}}, nil
}

func usages() string {
	var all []string
	for _, f := range families {
		all = append(all, f.usage)
	}
	return strings.Join(all, ", ")
}

// numbers reads a list of numbers with commas or spaces between them.
func numbers(text string) ([]float64, error) {
	var all []float64
	between := func(r rune) bool { return r == ',' || r == ' ' }
	for _, word := range strings.FieldsFunc(text, between) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(x > 0 && x <= largest) {
			return nil, fmt.Errorf("%q is no number above 0 and at most %d", word, largest)
		}
		all = append(all, x)
	}
	return all, nil
}

// Draw returns a factor, from 0.001 to 1000.
func (d Distribution) Draw(r *rand.Rand) float64 {
	if d.draw == nil {
		return 1
	}
	return math.Round(min(max(d.draw(r), smallest), largest)*1e6) / 1e6
}

// Fixed reports whether every factor is 1, because nothing was asked for.
func (d Distribution) Fixed() bool { return d.draw == nil }

// String returns the distribution as it was written.
func (d Distribution) String() string { return d.text }

// A Stream is what one field draws from.
type Stream uint64

// The streams.
const (
	Dirty Stream = iota + 1
	WorkingSet
	Link
	Faults
)

// Of returns the stream's source of chance in the world of a seed.
func (s Stream) Of(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(s))) }
