package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

const sweepable = `
name: a
limits: {perCluster: 5}
hosts:
- {name: n1, link: 1Gbit/s}
- name: n2
empty:
on: true
`

func TestSet(t *testing.T) {
	const rest = `,"empty":null,"on":true}`
	const hosts = `"hosts":[{"name":"n1","link":"1Gbit/s"},{"name":"n2"}]`
	tests := []struct{ name, path, value, want string }{
		{"a field at the top", "name", "b",
			`{"name":"b","limits":{"perCluster":5},` + hosts + rest},
		{"a field in a mapping", "limits.perCluster", "9",
			`{"name":"a","limits":{"perCluster":9},` + hosts + rest},
		{"a field that is missing in a mapping", "limits.perSource", "2",
			`{"name":"a","limits":{"perCluster":5,"perSource":2},` + hosts + rest},
		{"a field of one entry", "hosts[1].name", "n3", `{"name":"a","limits":{"perCluster":5},` +
			`"hosts":[{"name":"n1","link":"1Gbit/s"},{"name":"n3"}]` + rest},
		{"a field of every entry, there or not", "hosts[*].link", "2Gbit/s",
			`{"name":"a","limits":{"perCluster":5},` +
				`"hosts":[{"name":"n1","link":"2Gbit/s"},{"name":"n2","link":"2Gbit/s"}]` + rest},
		{"fields below nothing", "empty.x.y", "z", `{"name":"a","limits":{"perCluster":5},` +
			hosts + `,"empty":{"x":{"y":"z"}},"on":true}`},
		{"a new field with a text that looks like a number", "more", `"7"`,
			`{"name":"a","limits":{"perCluster":5},` + hosts +
				`,"empty":null,"on":true,"more":"7"}`},
		{"true or false", "on", "false", `{"name":"a","limits":{"perCluster":5},` + hosts +
			`,"empty":null,"on":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := parsed(t, sweepable)
			if err := doc.Set(tt.path, tt.value); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, asJSON(t, doc)); diff != "" {
				t.Errorf("after Set(%q, %q) (-want +got):\n%s", tt.path, tt.value, diff)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	tests := []struct{ name, path, value, want string }{
		{"no path", "", "1", `"" is no path`},
		{"a path with an empty part", "a..b", "1", "is no path"},
		{"a path that is YAML itself", "a: {b", "1", "is no path"},
		{"an index that is none", "hosts[x].link", "1", "has an index that is no number"},
		{"an index that is not closed", "hosts[1", "1", "has an index that is no number"},
		{"something behind an index", "hosts[1]x", "1", "has an index that is no number"},
		{"an entry that is not there", "hosts[2].link", "1",
			"there is no entry [2]: the list has 2"},
		{"an index of no list", "name[0]", "1", "there is no list for [0]"},
		{"an index of what is missing", "racks[0].name", "1", "there is no list for [0]"},
		{"a field of a text", "name.x", "1", `there is a value where "x" would be a field`},
		{"a list", "name", "[1, 2]", "is no single text or number"},
		{"fields", "name", "a: b", ""},
		{"a new field with fields", "new", "{a: b}", "is no single text or number"},
		{"an alias", "name", "*x", "anchors"},
		{"several lines", "name", "a\nb: c", "the value has several lines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := parsed(t, sweepable).Set(tt.path, tt.value)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Set(%q, %q) = %v, want %q in it", tt.path, tt.value, err, tt.want)
			}
		})
	}
	empty := parsed(t, "# nothing\n")
	if err := empty.Set("a.b", "1"); err != nil || asJSON(t, empty) != `{"a":{"b":1}}` {
		t.Errorf("an empty document becomes %s, %v", asJSON(t, empty), err)
	}
}

// TestSetAndWrittenAreTheSame: to set a field is to have written it.
func TestSetAndWrittenAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-z0-9.]{1,8}|"[ -!#-Z]{0,8}"|-?[0-9]{1,9}|true`).
			Draw(t, "value")
		names := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,4}`), 1, 4).Draw(t, "path")
		var want strings.Builder
		want.WriteString("old: 1")
		for depth, name := range names {
			if depth == 0 {
				name = "new" + name
				names[0] = name
			}
			fmt.Fprintf(&want, "\n%s%s:", strings.Repeat(" ", depth), name)
		}
		doc := parsed(t, "old: 1")
		if err := doc.Set(strings.Join(names, "."), value); err != nil {
			t.Fatal(err)
		}
		written := parsed(t, want.String()+" "+value)
		if diff := cmp.Diff(asJSON(t, written), asJSON(t, doc)); diff != "" {
			t.Errorf("written and set differ (-written +set):\n%s", diff)
		}
	})
}

// FuzzSet: whatever the path and the value, there is an answer.
func FuzzSet(f *testing.F) {
	f.Add("limits.perCluster", "5")
	f.Add("hosts[*].link", "a: b")
	f.Add("hosts[9][*]", "\"")
	f.Fuzz(func(t *testing.T, path, value string) {
		doc := parsed(t, sweepable)
		if doc.Set(path, value) == nil {
			_, _ = doc.JSON()
		}
	})
}

func parsed(t interface {
	Helper()
	Fatal(...any)
}, text string) *yamldoc.Document {
	t.Helper()
	doc, err := yamldoc.Parse("f", 1, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func asJSON(t interface {
	Helper()
	Fatal(...any)
}, doc *yamldoc.Document) string {
	t.Helper()
	text, err := doc.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
