package census

import (
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
)

// An Item is a property or a scenario.
type Item struct {
	Kind  string // "simulated world", "property"
	Name  string // what it says of itself
	Where string // file:line
	// shingles are the hashes of the runs of tokens, in order, each once.
	shingles []uint64
}

// String says what the item is, and where.
func (i Item) String() string { return fmt.Sprintf("%s: %s %q", i.Where, i.Kind, i.Name) }

// A Pair is two items and how alike they are, from 0 to 1.
type Pair struct {
	A, B     Item
	Likeness float64
}

// String names both.
func (p Pair) String() string {
	return fmt.Sprintf("%.2f alike:\n  %s\n  %s", p.Likeness, p.A, p.B)
}

// Alike returns the pairs whose likeness is at least so much, the nearest first.
func Alike(items []Item, least float64) []Pair {
	var found []Pair
	sorted := slices.SortedFunc(slices.Values(items), func(a, b Item) int {
		return len(a.shingles) - len(b.shingles)
	})
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if float64(len(a.shingles)) < least*float64(len(b.shingles)) {
				break // whoever is longer yet has too much of its own
			}
			if l := likeness(a.shingles, b.shingles); l >= least {
				found = append(found, Pair{a, b, l})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Pair) int {
		switch {
		case a.Likeness > b.Likeness:
			return -1
		case a.Likeness < b.Likeness:
			return 1
		}
		return strings.Compare(a.A.Where, b.A.Where)
	})
	return found
}

// likeness is Jaccard's index of two ordered sets.
func likeness(a, b []uint64) float64 {
	both, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// run is how many tokens a shingle has.
const run = 4

var seed = maphash.MakeSeed()

// shingles returns the runs of tokens of a sequence, hashed; a shorter one is one run.
func shingles(tokens []string) []uint64 {
	var all []uint64
	for i := range max(1, len(tokens)-run+1) {
		text := strings.Join(tokens[i:min(i+run, len(tokens))], "\x00")
		all = append(all, maphash.String(seed, text))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var (
	word = regexp.MustCompile(`[A-Za-z][\w-]*|[0-9][\w.:/%]*|[^\s\w]`)
	// vmAt and named find the names of VMs and hosts.
	vmAt  = regexp.MustCompile(`([A-Za-z][\w-]*)@`)
	named = regexp.MustCompile(`name: "?([A-Za-z][\w-]*)`)
)

// words returns the tokens of a text; names and numbers are all alike.
func words(text string) []string {
	names := map[string]bool{}
	for _, form := range []*regexp.Regexp{named, vmAt} {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			names[strings.Trim(m[1], "-")] = true
		}
	}
	tokens := word.FindAllString(text, -1)
	for i, t := range tokens {
		switch {
		case t[0] >= '0' && t[0] <= '9':
			tokens[i] = "#"
		case names[strings.Trim(t, "-")] || strings.ContainsAny(t, "0123456789"):
			tokens[i] = "name"
		}
	}
	return tokens
}
