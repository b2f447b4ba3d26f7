package audit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/store"
)

// A Field is a field of a record that differs: its path, "State.Target", and both values as
// JSON; "" is none.
type KnownField struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Fields lists where two records differ, by path; nil is no record.
func Fields(a, b store.Record) []KnownField {
	from, to := flat(a), flat(b)
	paths := slices.Sorted(maps.Keys(from))
	for p := range to {
		if _, both := from[p]; !both {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	var list []KnownField
	for _, p := range paths {
		if from[p] != to[p] {
			list = append(list, KnownField{p, from[p], to[p]})
		}
	}
	return list
}

// flat returns the values of a record by path; none for no record.
func flat(r store.Record) map[string]string {
	values := map[string]string{}
	if r == nil {
		return values
	}
	encoded, err := json.Marshal(r.WithVersion(0))
	if err != nil {
		return values
	}
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	var tree map[string]any
	if d.Decode(&tree) == nil {
		flatten("", tree, values)
	}
	return values
}

func flatten(path string, v any, values map[string]string) {
	o, is := v.(map[string]any)
	if !is {
		text, _ := json.Marshal(v) // it was read from JSON
		values[path] = string(text)
		return
	}
	for k, e := range o {
		flatten(strings.TrimPrefix(path+"."+k, "."), e, values)
	}
}
