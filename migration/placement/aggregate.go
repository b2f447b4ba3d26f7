package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An Aggregate is a group of hosts with metadata. It is shared by its hosts and
// never changed, only replaced. [NewAggregate] makes one.
type Aggregate struct {
	Name string
	// Values are the values of each key of the metadata.
	Values map[string][]Value
	// Tenants are those that may use the hosts; none is all.
	Tenants []string
}

// A Value is one value of a key of the metadata.
type Value struct {
	Text    string
	number  float64
	numeric bool
}

// valueOf reads a value.
func valueOf(text string) Value {
	v := Value{Text: text}
	v.number, v.numeric = number(text)
	return v
}

// MarshalText stores the text alone.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.Text), nil }

// UnmarshalText reads the value again: a number that was one before it was stored is one.
func (v *Value) UnmarshalText(text []byte) error {
	*v = valueOf(string(text))
	return nil
}

// tenantKey is the beginning of the keys that name tenants.
const tenantKey = "filter_tenant_id"

// NewAggregate returns the aggregate of a name with Nova's metadata: several values of a
// key are separated by commas, and every key that begins with filter_tenant_id
// names tenants.
// Source: Nova scheduler/filters/utils.py (aggregate_metadata_get_by_host) and
// aggregate_multitenancy_isolation.py (host_passes).
func NewAggregate(name string, metadata map[string]string) *Aggregate {
	a := &Aggregate{Name: name, Values: make(map[string][]Value, len(metadata))}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		for value := range strings.SplitSeq(metadata[key], ",") {
			value = strings.TrimSpace(value)
			a.Values[key] = append(a.Values[key], valueOf(value))
			if strings.HasPrefix(key, tenantKey) {
				a.Tenants = append(a.Tenants, value)
			}
		}
	}
	return a
}

// A Want is what a flavor asks for of one key.
type Want struct {
	Key  string
	Text string // the operator and its words, as they were given

	op      string
	words   []string
	number  float64 // of the first word
	numeric bool
}

// scope is the prefix of the keys that speak of aggregates.
const scope = "aggregate_instance_extra_specs"

// parseWant reads a flavor's extra specifications, sorted by key. Keys with another
// scope than that of aggregates speak of something else and are left out.
// Source: Nova aggregate_instance_extra_specs.py (host_passes).
func parseWant(specs map[string]string) []Want {
	var all []Want
	for _, spec := range slices.Sorted(maps.Keys(specs)) {
		before, key, scoped := strings.Cut(spec, ":")
		if !scoped {
			key = spec
		} else if before != scope {
			continue
		}
		all = append(all, want(key, specs[spec]))
	}
	return all
}

func want(key, text string) Want {
	w := Want{Key: key, Text: text, words: strings.Fields(text)}
	if len(w.words) == 0 {
		return w
	}
	w.op, w.words = w.words[0], w.words[1:]
	if len(w.words) > 0 {
		w.number, w.numeric = number(w.words[0])
	}
	return w
}

// satisfied reports whether some value of the key, in some of the aggregates,
// matches. A key that no aggregate has is not satisfied.
// Source: Nova aggregate_instance_extra_specs.py (host_passes).
func (w *Want) satisfied(all []*Aggregate) bool {
	for _, a := range all {
		values := a.Values[w.Key]
		for i := range values {
			if w.match(&values[i]) {
				return true
			}
		}
	}
	return false
}

// admits reports whether a tenant may use a host in the aggregates: none of
// them names tenants, or one of them names this one.
// Source: Nova aggregate_multitenancy_isolation.py (host_passes).
func admits(all []*Aggregate, tenant string) bool {
	open := true
	for _, a := range all {
		if slices.Contains(a.Tenants, tenant) {
			return true
		}
		open = open && len(a.Tenants) == 0
	}
	return open
}

// matchAggregate reports whether a value satisfies what is asked for: an operator and
// its words, or, without an operator, the value itself. "=" means at least.
// Source: Nova scheduler/filters/extra_specs_ops.py (match).
func matchAggregate(value, text string) bool {
	w, v := want("", text), valueOf(value)
	return w.match(&v)
}

// Match is [matchAggregate] for what was read before.
func (w *Want) match(v *Value) bool {
	switch w.op {
	case "<or>":
		return oneOf(v.Text, w.words)
	case "<in>":
		return len(w.words) > 0 && strings.Contains(v.Text, w.words[0])
	case "<all-in>":
		return len(w.words) > 0 && containsAll(v.Text, w.words)
	case "=", "==", "!=", ">=", "<=":
		return v.numeric && w.numeric && compareNumbers(w.op, v.number, w.number)
	case "s==", "s!=", "s<", "s<=", "s>", "s>=":
		return len(w.words) > 0 && compareTexts(w.op, v.Text, w.words[0])
	}
	return v.Text == w.Text
}

// oneOf holds when value is one of the alternatives: the first word and every
// second one after it. Between them stands <or>, which is not looked at.
func oneOf(value string, words []string) bool {
	for i := 0; i < len(words); i += 2 {
		if words[i] == value {
			return true
		}
	}
	return false
}

func containsAll(value string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(value, w) {
			return false
		}
	}
	return true
}

func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil
}

func compareNumbers(op string, a, b float64) bool {
	switch op {
	case "==":
		return a == b
	case "!=":
		return a != b
	case "<=":
		return a <= b
	}
	return a >= b // "=" too
}

func compareTexts(op, value, y string) bool {
	switch op {
	case "s==":
		return value == y
	case "s!=":
		return value != y
	case "s<":
		return value < y
	case "s<=":
		return value <= y
	case "s>":
		return value > y
	}
	return value >= y
}
