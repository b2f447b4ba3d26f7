package importer_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/importer"
)

// splitter is YAML or JSON.
type splitter func(*bufio.Reader, func(importer.Piece) error) error

// pieces says what a text is taken to: "line: text", with "rest" before what is
// left of a list.
func pieces(take splitter, text string) ([]string, error) {
	var all []string
	err := take(bufio.NewReaderSize(strings.NewReader(text), 16), func(p importer.Piece) error {
		word := ""
		if p.Rest {
			word = "rest "
		}
		all = append(all, fmt.Sprintf("%s%d: %s", word, p.Line, p.Text))
		return nil
	})
	return all, err
}

func TestYAML(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "\n\n", nil},
		{"one object", "a: 1\nb: 2\n", []string{"1: a: 1\nb: 2\n"}},
		{"a list, its dashes at the left", "items:\n- a: 1\n  b: 2\n- a: 3\nkind: List\n",
			[]string{"2:   a: 1\n  b: 2\n", "4:   a: 3\n", "rest 1: items:\nkind: List\n"}},
		{"a list, its dashes indented", "items:\n  - a: 1\n  - a: 2\nkind: List\n",
			[]string{"2:     a: 1\n", "3:     a: 2\n", "rest 1: items:\nkind: List\n"}},
		{"lists inside of items stay", "items:\n- a:\n  - b\n  - c\n",
			[]string{"2:   a:\n  - b\n  - c\n", "rest 1: items:\n"}},
		{"a text that looks like a list", "items:\n- a: |\n    items:\n    - b\n- c: 1\n",
			[]string{"2:   a: |\n    items:\n    - b\n", "5:   c: 1\n", "rest 1: items:\n"}},
		{"items deeper down are no list", "spec:\n  items:\n  - a\n",
			[]string{"1: spec:\n  items:\n  - a\n"}},
		{"items in flow style stay", "items: [{a: 1}]\n", []string{"1: items: [{a: 1}]\n"}},
		{"an empty list", "items:\nkind: List\n", []string{"1: items:\nkind: List\n"}},
		{"several documents", "a: 1\n---\n# two\nb: 2\n...\n---\nitems:\n- c\n",
			[]string{"1: a: 1\n", "3: # two\nb: 2\n", "8:   c\n", "rest 7: items:\n"}},
		{"no end of line at the end", "items:\n- a", []string{"2:   a", "rest 1: items:\n"}},
		{"a line longer than the buffer", "a: " + strings.Repeat("x", 50),
			[]string{"1: a: " + strings.Repeat("x", 50)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := pieces(importer.SplitYAML, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", " \n", nil},
		{"one object", "\n{\"a\": [1, 2]}\n", []string{"2: {\"a\": [1, 2]}"}},
		{"a list", "{\"items\": [\n  {\"a\": 1},\n  {\"b\": [2, 3]}\n], \"kind\": \"List\"}",
			[]string{`2: {"a": 1}`, "3: {\"b\": [2, 3]}\n",
				`rest 1: {"items": [], "kind": "List"}`}},
		{"an empty list", `{"items": [ ]}`, []string{`rest 1: {"items": []}`}},
		{"items deeper down are no list", `{"a":{"items":[1]}}`,
			[]string{`1: {"a":{"items":[1]}}`}},
		{"brackets and quotes in texts", `{"items":["]","\"}",{"a":"\\"}]}`,
			[]string{`1: "]"`, `1: "\"}"`, `1: {"a":"\\"}`, `rest 1: {"items":[]}`}},
		{"a text that begins with items", `{"items2":[1]}`, []string{`1: {"items2":[1]}`}},
		{"several values", `{"a":1} {"b":2}`, []string{`1: {"a":1}`, `1: {"b":2}`}},
		{"indentation goes, spaces in texts stay", "{\n    \"a\":  \"x  y\"}",
			[]string{"1: {\n\"a\": \"x  y\"}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := pieces(importer.SplitJSON, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongInputNamesItsLine(t *testing.T) {
	long := strings.Repeat("x", importer.MaxPiece)
	tests := []struct {
		name string
		take splitter
		text string
		line int
	}{
		{"JSON that ends too early", importer.SplitJSON, "{\n\"a\": 1\n", 3},
		{"a bracket too many", importer.SplitJSON, "{}\n}", 2},
		{"JSON that is nested too deep", importer.SplitJSON, "{\"a\":\n" + strings.Repeat("[", 200), 2},
		{"a JSON item that is too long", importer.SplitJSON, "{\"items\":[\n\"" + long + "\"]}", 2},
		{"a YAML line that is too long", importer.SplitYAML, "a: 1\n" + long + long, 2},
		{"a YAML item that is too long", importer.SplitYAML,
			"items:\n- a\n- b: |\n" + strings.Repeat("    text\n", importer.MaxPiece/9+1), 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pieces(tt.take, tt.text)
			if wrong, is := errors.AsType[importer.Error](err); !is || wrong.Line != tt.line {
				t.Errorf("error %v, want one in line %d", err, tt.line)
			}
		})
	}
}

func TestTheConsumerAndTheReaderMayStop(t *testing.T) {
	for name, take := range map[string]splitter{"YAML": importer.SplitYAML, "JSON": importer.SplitJSON} {
		stop := errors.New("stop")
		text := map[string]string{"YAML": "items:\n- 1\n- 2\n", "JSON": `{"items":[1,2]}`}[name]
		calls := 0
		err := take(bufio.NewReader(strings.NewReader(text)), func(importer.Piece) error {
			calls++
			return stop
		})
		if err != stop || calls != 1 {
			t.Errorf("%s: after %d calls the error is %v", name, calls, err)
		}
		broken := io.MultiReader(strings.NewReader(text[:9]), errReader{stop})
		err = take(bufio.NewReader(broken), func(importer.Piece) error { return nil })
		if err != stop {
			t.Errorf("%s: a reader's error becomes %v", name, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
