package yamldoc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// flat is a struct with every kind of field that the project's files have.
type flat struct {
	Name  string            `yaml:"name"`
	Count int               `yaml:"count"`
	Share float64           `yaml:"share"`
	On    *bool             `yaml:"on"`
	Words []string          `yaml:"words"`
	Map   map[string]string `yaml:"map"`
	List  []struct {
		Name string `yaml:"name"`
	} `yaml:"list"`
	Inline `yaml:",inline"`
}

type Inline struct {
	Inner int `yaml:"inner"`
}

func TestDecodeReportsEverything(t *testing.T) {
	text := strings.Join([]string{
		"name: a",
		"count: four",
		"colour: red",
		"shape: round",
		"on: perhaps",
		"words: {a: b}",
		"list:",
		"- {name: x, size: 3}",
		"- name: y",
		"  size: 4",
		"inner: deep",
	}, "\n")
	doc, err := yamldoc.Parse("f.yaml", 1, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v flat
	want := strings.Join([]string{
		`f.yaml:2: count: needs a whole number, has a text`,
		`f.yaml:3: colour: unknown field "colour"`,
		`f.yaml:4: shape: unknown field "shape"`,
		`f.yaml:5: on: needs true or false, has a text`,
		`f.yaml:6: words: needs a list, has fields (name: value)`,
		`f.yaml:8: list[0].size: unknown field "size"`,
		`f.yaml:10: list[1].size: unknown field "size"`,
		`f.yaml:11: inner: needs a whole number, has a text`,
	}, "\n")
	if diff := cmp.Diff(want, fmt.Sprint(doc.Decode(&v))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// whole is a struct with fields that are whole numbers, and others.
type whole struct {
	N     int            `yaml:"n"`
	P     *int           `yaml:"p"`
	U     uint64         `yaml:"u"`
	F     float64        `yaml:"f"`
	Text  string         `yaml:"text"`
	Sizes map[string]int `yaml:"sizes"`
	List  []struct {
		N int64 `yaml:"n"`
	} `yaml:"list"`
}

func TestWholeNumbersAreWhole(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a fraction", "f: 1.5\nn: 0.5", "f.yaml:2: n: needs a whole number, has 0.5"},
		{"less than nothing", "n: -0.5", "f.yaml:1: n: needs a whole number, has -0.5"},
		{"behind a pointer", "p: 2.000001", "f.yaml:1: p: needs a whole number, has 2.000001"},
		{"without a sign", "u: 1.5", "f.yaml:1: u: needs a whole number, has 1.5"},
		{"in a map, and in a list", "sizes: {a: 1, b: 0.1}\nlist:\n- n: 1\n- {n: 1e-1}",
			"f.yaml:1: sizes.b: needs a whole number, has 0.1\n" +
				"f.yaml:4: list[1].n: needs a whole number, has 1e-1"},
		{"in quotes", `n: "0.5"`, "f.yaml:1: n: needs a whole number, has 0.5"},
		{"no number", "n: .nan", "f.yaml:1: n: needs a whole number that is not so far from 0, " +
			"has NaN"},
		{"below all numbers", "n: -.inf", "f.yaml:1: n: needs a whole number, has -.inf"},
		{"above all numbers", "n: 99999999999999999999", "f.yaml:1: n: needs a whole number that " +
			"is not so far from 0, has 99999999999999999999"},
		{"whole ones, however written", "n: 2.0\np: 1e1\nu: \"3\"\nf: 0.5\ntext: 0.5", "<nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f.yaml", 1, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			var v whole
			err = doc.Decode(&v)
			if diff := cmp.Diff(tt.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if err == nil && (v.N != 2 || *v.P != 10 || v.U != 3 || v.F != 0.5 || v.Text != "0.5") {
				t.Errorf("read %+v", v)
			}
		})
	}
}

// TestManyFractionsAreNotReadForEver: a large document is decoded once or twice, and refused.
func TestManyFractionsAreNotReadForEver(t *testing.T) {
	text := "list:\n" + strings.Repeat("- {n: 0.5}\n", 20_000)
	doc, err := yamldoc.Parse("f.yaml", 1, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v whole
	want := "f.yaml:2: list[0].n: needs a whole number, has 0.5"
	if err := doc.Decode(&v); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestNumbersThatAreTextsStayAsTheyAreWritten, and those that are numbers mean what they did.
func TestNumbersThatAreTextsStayAsTheyAreWritten(t *testing.T) {
	doc, err := yamldoc.Parse("f.yaml", 1, []byte("name: 010\n"+
		"map: {v: 1.10, w: 1e3, x: 7, y: .5}\nwords: [2.0, 00]\nshare: 1.50\ncount: 1.0\n"+
		"inner: 0x10\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := flat{Name: "010", Map: map[string]string{"v": "1.10", "w": "1e3", "x": "7", "y": ".5"},
		Words: []string{"2.0", "00"}, Share: 1.5, Count: 1, Inline: Inline{16}}
	var v flat
	err = doc.Decode(&v)
	if diff := cmp.Diff(want, v); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseRefuses(t *testing.T) {
	bomb := "a: &a [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("b%d: &b%d [*a, *a]\n", i, i)
	}
	var stairs strings.Builder
	for i := range 200 {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	tests := []struct{ name, text, want string }{
		{"aliases that expand without end", bomb, "f:1: YAML anchors"},
		{"an anchor alone", "a: 1\nb: &x 2\n", "f:2: YAML anchors"},
		{"a merge key", "a:\n  <<: {b: 1}\n", "f:2: YAML anchors"},
		{"a tag", "a: !!binary aGk=\n", "f:1: YAML anchors"},
		{"a directive", "%YAML 1.2\n---\na: 1\n", "f:1: YAML anchors"},
		{"a NUL byte", "a: 1\nb: \x00\n", "f:2: it contains a NUL byte"},
		{"deep lists in a flow", "a: " + strings.Repeat("[", 1_000_000), "nested more than 100"},
		{"deep lists over lines", strings.Repeat("[\n", 1_000_000), "nested more than 100"},
		{"deep lists between closed ones", strings.Repeat("[[],\n", 1000), "nested more than 100"},
		{"deep lists in a block", strings.Repeat("- ", 1_000_000) + "a", "nested more than 100"},
		{"deep mappings in a block", stairs.String(), "nested more than 100"},
		{"a name twice", "a: 1\na: 2\n", `f:2: mapping key "a" already defined`},
		{"a second document", "a: 1\n---\nb: 2\n", "f:3: there is a second document"},
		{"an open text", "a: \"x\n", "f:1: could not find end character"},
		{"UTF-16", "\xff\xfea\x00:\x00 \x001\x00", "f:1: it is UTF-16: save it as UTF-8"},
		{"too long", strings.Repeat("# more\n", 700_000), "f:1: the document is longer than 4 MiB"},
		{"sixteen megabytes", strings.Repeat("garbage\n", 2_000_000), "longer than 4 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := yamldoc.Parse("f", 1, []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse() = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestAByteOrderMarkIsNoPartOfTheFirstName: editors on Windows begin files with one.
func TestAByteOrderMarkIsNoPartOfTheFirstName(t *testing.T) {
	for _, text := range []string{"\ufeffa: 1\n", "\ufeff{\"a\": 1}"} {
		var v struct {
			A int `json:"a"`
		}
		doc, err := yamldoc.Parse("f", 1, []byte(text))
		if err == nil {
			err = doc.Decode(&v)
		}
		if err != nil || v.A != 1 {
			t.Errorf("%q is read as %+v, %v", text, v, err)
		}
	}
}

func TestLineFindsTheDeepestPart(t *testing.T) {
	text := "a:\n  b:\n  - c: 1\n    d.e: 2\n  - f: 3\nlabels: {x/y: z}\n"
	doc, err := yamldoc.Parse("f", 11, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"": 11, "a": 11, "a.b": 12, "a.b[0]": 13, "a.b[0].c": 13, "a.b[1].f": 15,
		"a.b[1].nothing": 15, "a.b[7]": 12, "labels": 16, "nothing.at.all": 11, "a.b[x": 12,
	} {
		if got := doc.Line(path); got != want {
			t.Errorf("Line(%q) = %d, want %d", path, got, want)
		}
	}
	var none *yamldoc.Document
	if got := none.Line("a"); got != 0 {
		t.Errorf("a nil document has line %d, want 0", got)
	}
}

func TestJSON(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"all kinds of values", "a: 1\nb: -2.5\nc: true\nd: null\ne: x\nf: \"1\"\ng: 0x10\n",
			`{"a":1,"b":-2.5,"c":true,"d":null,"e":"x","f":"1","g":16}`},
		{"a text of several lines", "a: |\n  x\n  y\n", `{"a":"x\ny\n"}`},
		{"nested", "a:\n- b: {c: []}\n- - d\n", `{"a":[{"b":{"c":[]}},["d"]]}`},
		{"keys that are no texts", "1: a\ntrue: b\n", `{"1":"a","true":"b"}`},
		{"JSON itself", `{"a": ["b", {"c": 1.5e3}], "d": "\u00e9\n"}`,
			`{"a":["b",{"c":1500}],"d":"é\n"}`},
		{"only comments", "# nothing\n", "null"},
		{"a value that is missing", "a:\nb: 1\n", `{"a":null,"b":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f", 1, []byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			got, err := doc.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
	doc, err := yamldoc.Parse("f", 5, []byte("a: 1\nb: .inf\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := doc.JSON(); err == nil || !strings.HasPrefix(err.Error(), "f:6: ") {
		t.Errorf("infinity gives %v, want an error in line 6", err)
	}
}

func TestReportCapsAndCounts(t *testing.T) {
	r := yamldoc.Report{File: "f"}
	if r.Err() != nil {
		t.Error("an empty report is an error")
	}
	for i := range 50 {
		r.Errorf(50-i, "x", "wrong")
		r.Warnf(i+1, fmt.Sprintf("field %d", i), "odd")
	}
	err := r.Err()
	problems, is := errors.AsType[yamldoc.Problems](err)
	if !is || len(problems) != yamldoc.MaxProblems+1 || problems[0].Line != 31 {
		t.Errorf("got %d problems, the first in line %d", len(problems), problems[0].Line)
	}
	if !strings.HasSuffix(err.Error(), "\nf: and 30 more problems") {
		t.Errorf("the last problem is %q", problems[len(problems)-1])
	}
	if one, is := errors.AsType[yamldoc.Problem](err); !is || one != problems[0] {
		t.Errorf("a Problem is not found in the error: %v", one)
	}
	want := []yamldoc.Problem{{File: "f", Line: 1, Field: "field 0",
		Message: "odd (and 49 more like it)"}}
	if diff := cmp.Diff(want, r.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	for i := range 150 {
		r.Warnf(0, "", "different %d", i)
	}
	if got := r.Warnings(); len(got) != yamldoc.MaxWarnings+1 {
		t.Errorf("%d warnings are kept", len(got))
	}
}

func TestProblemsAreSafeToPrint(t *testing.T) {
	r := yamldoc.Report{File: "f"}
	r.Errorf(1, "a\x1b[31m", "%q is %s", "x", "\u202ered\x07"+strings.Repeat("y", 1000))
	got := r.Err().Error()
	if strings.ContainsAny(got, "\x1b\x07\u202e") || len(got) > 400 {
		t.Errorf("Error() = %q", got)
	}
}

// TestYAMLAndJSONAgree: what JSON prints of any value reads back as that value.
func TestYAMLAndJSONAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t, 4)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := yamldoc.Parse("f", 1, text)
		if err != nil {
			t.Fatalf("Parse(%s): %v", text, err)
		}
		out, err := doc.JSON()
		if err != nil {
			t.Fatalf("JSON(%s): %v", text, err)
		}
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s became %s: %v", text, out, err)
		}
		if diff := cmp.Diff(any(value), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	})
}

func drawValue(t *rapid.T, depth int) map[string]any {
	value := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[ -~]{0,12}`), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-1000, 1000), func(n int) any { return float64(n) }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	all := make(map[string]any)
	names := rapid.SliceOfN(rapid.StringMatching(`[a-z./]{1,8}`), 0, 4).Draw(t, "names")
	for _, name := range names {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			all[name] = rapid.SliceOfN(value, 0, 3).Draw(t, "list")
		case 1:
			if depth > 0 {
				all[name] = drawValue(t, depth-1)
			}
		default:
			all[name] = value.Draw(t, "value")
		}
	}
	return all
}

// FuzzParse: whatever the text, there is an answer, and problems name the file.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1", "a:\n- b\n- {c: d}\n", "{\"a\": [1, 2]}", "a: |\n  x\n y", "- - -", "? a\n: b",
		"a: &x 1\nb: *x", "list:\n- {name: x, size: 3}", "---\n...\n---\n", "a: 'x''y'\n\t", "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := yamldoc.Parse("f", 1, text)
		if err == nil {
			_, err = doc.JSON()
			var v flat
			err = errors.Join(err, doc.Decode(&v))
			_ = doc.Line("list[0].name")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("error %q does not name the file", err)
		}
	})
}

func TestReadAllStopsAtItsLimit(t *testing.T) {
	_, err := yamldoc.ReadAll("f", endless{}, 1<<20)
	if got := fmt.Sprint(err); got != "f: it is longer than 1 MiB" {
		t.Errorf("ReadAll() = %q", got)
	}
	_, err = yamldoc.ReadAll("f", broken{}, 1<<20)
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("ReadAll() = %v, want the reader's error", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, os.ErrPermission }
