package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// maxWord is how long a word may be, and maxCount how large a number.
const (
	maxWord  = 253
	maxCount = 1_000_000
	// maxWords bounds the CPUs that a file names: each costs a word of memory, and a
	// core one for each 64 CPUs up to its last one.
	maxWords = 8 << 20
)

// A Reader turns what one file says into facts and constraints. It must come from
// [newAttributeReader].
type attributeReader struct {
	wrong      func(field, format string, args ...any)
	aggregates map[string]*placement.Aggregate
	groups     map[string]placement.GroupRule
	spent      int                             // of maxWords
	racks      map[string]hypervisor.Bandwidth // their up-links; 0 is not said
	listed     bool                            // the racks are all there are
}

// newAttributeReader returns a reader of hosts and VMs that refer to shared. It tells wrong
// what is wrong: the field, such as "hosts[3].zone", and what to do about it.
func newAttributeReader(shared Shared, wrong func(field, format string, args ...any)) *attributeReader {
	r := &attributeReader{wrong: wrong, aggregates: map[string]*placement.Aggregate{},
		groups: map[string]placement.GroupRule{}, racks: map[string]hypervisor.Bandwidth{}}
	for _, name := range slices.Sorted(maps.Keys(shared.Aggregates)) {
		r.word("aggregates", name)
		for _, key := range slices.Sorted(maps.Keys(shared.Aggregates[name])) {
			r.text(fmt.Sprintf("aggregates.%s.%s", name, key), shared.Aggregates[name][key])
		}
		r.aggregates[name] = placement.NewAggregate(name, shared.Aggregates[name])
	}
	for _, name := range slices.Sorted(maps.Keys(shared.Groups)) {
		r.groups[name] = r.group("groups."+name, name, shared.Groups[name])
	}
	r.listed = len(shared.Racks) > 0
	for _, name := range slices.Sorted(maps.Keys(shared.Racks)) {
		r.word("racks", name)
		r.racks[name] = r.bandwidth("racks."+name+".uplink", shared.Racks[name].Uplink)
	}
	return r
}

// uplink returns the up-link of the rack of a host: the rack's own, or the first that one
// of its hosts says. All say the same.
func (r *attributeReader) uplink(at, rack, said string) hypervisor.Bandwidth {
	own := r.bandwidth(at+".uplink", said)
	if rack == "" {
		return own
	}
	known, found := r.racks[rack]
	switch {
	case r.listed && !found:
		r.wrong(at+".rack", "there is no rack %q under racks: list it there", rack)
	case own == 0:
		return known
	case known == 0:
		r.racks[rack] = own
	case known != own:
		r.wrong(at+".uplink", "rack %s has another up-link already: say it once", rack)
	}
	return own
}

func (r *attributeReader) group(at, name string, g Group) placement.GroupRule {
	r.word("groups", name)
	r.label(at+".domain", g.Domain)
	switch g.Policy {
	case placement.Affinity, placement.AntiAffinity, placement.SoftAffinity,
		placement.SoftAntiAffinity:
	default:
		r.wrong(at+".policy", "unknown policy %q; use affinity, anti-affinity, soft-affinity "+
			"or soft-anti-affinity", g.Policy)
	}
	if g.Max != 0 && g.Policy != placement.AntiAffinity {
		r.wrong(at+".max", "only anti-affinity has a limit")
	}
	return placement.GroupRule{Group: name, Policy: g.Policy, Max: r.count(at+".max", g.Max),
		Domain: g.Domain}
}

// bytes reads an amount; "" is 0.
func (r *attributeReader) bytes(at, text string) hypervisor.Bytes {
	if text == "" {
		return 0
	}
	n, err := ParseBytes(text)
	if err != nil {
		r.wrong(at, "%v", err)
	}
	return n
}

// bandwidth reads a speed of more than 0; "" is 0.
func (r *attributeReader) bandwidth(at, text string) hypervisor.Bandwidth {
	if text == "" {
		return 0
	}
	n, err := ParseBandwidth(text)
	if err == nil && n == 0 {
		err = fmt.Errorf("needs more than 0")
	}
	if err != nil {
		r.wrong(at, "%v", err)
	}
	return n
}

// count reads a number that is not negative.
func (r *attributeReader) count(at string, n int) int {
	if n < 0 || n > maxCount {
		r.wrong(at, "needs 0 to %d, has %d", maxCount, n)
		return 0
	}
	return n
}

// word reads a name that must be there.
func (r *attributeReader) word(at, text string) {
	if text == "" {
		r.wrong(at, "a name is missing")
	}
	r.label(at, text)
}

// label reads a name that may be missing.
func (r *attributeReader) label(at, text string) {
	if strings.ContainsFunc(text, unicode.IsSpace) {
		r.wrong(at, "%q has a space in it", text)
	}
	r.text(at, text)
}

// text reads what will be printed on terminals.
func (r *attributeReader) text(at, text string) {
	if len(text) > maxWord || strings.ContainsFunc(text, unprintable) {
		r.wrong(at, "%.100q is no text of at most %d printable characters", text, maxWord)
	}
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }

// words reads names, each once, in their order.
func (r *attributeReader) words(at string, all Words) []string {
	for i, word := range all {
		r.word(fmt.Sprintf("%s[%d]", at, i), word)
		if slices.Contains(all[:i], word) && len(all) < 1000 {
			r.wrong(fmt.Sprintf("%s[%d]", at, i), "%q is there twice", word)
		}
	}
	return all
}

// named looks names up, and says which there are when one is unknown.
func named[T any](r *attributeReader, at, what string, names Words, known map[string]T) []T {
	var all []T
	for i, name := range r.words(at, names) {
		found, ok := known[name]
		if !ok {
			more := fmt.Sprintf("one of %d others", len(known))
			if len(known) <= 10 {
				more = cmp.Or(strings.Join(slices.Sorted(maps.Keys(known)), ", "), "none")
			}
			r.wrong(fmt.Sprintf("%s[%d]", at, i), "there is no %s %q; there is %s", what, name,
				more)
			continue
		}
		all = append(all, found)
	}
	return all
}

// software reads "QEMU", or "QEMU 7.2.22".
func (r *attributeReader) software(at, text string) placement.Hypervisor {
	if text == "" {
		return placement.Hypervisor{}
	}
	parts := strings.Fields(text)
	r.text(at, text)
	version, ok := 0, len(parts) == 1
	if len(parts) == 2 {
		version, ok = parseVersion(parts[1])
	}
	if !ok {
		r.wrong(at, "%.100q is no hypervisor; write QEMU, or QEMU 7.2.22 with its version", text)
		return placement.Hypervisor{}
	}
	return placement.Hypervisor{Kind: parts[0], Version: version}
}

// parseVersion reads up to three numbers below 1000 with points between them, as
// major*1000000 + minor*1000 + release.
func parseVersion(text string) (int, bool) {
	parts := strings.Split(text, ".")
	version := 0
	for i := range 3 {
		n := uint64(0)
		if i < len(parts) {
			var err error
			if n, err = strconv.ParseUint(parts[i], 10, 64); err != nil || n > 999 {
				return 0, false
			}
		}
		version = version*1000 + int(n)
	}
	return version, len(parts) <= 3
}
