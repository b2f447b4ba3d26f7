package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadme checks that the README shows the example as it is, and the answer
// that it gives.
func TestReadme(t *testing.T) {
	readme := read(t, "../../README.md")
	example := read(t, "../../examples/drain-host.yaml")
	if !strings.Contains(readme, "```yaml\n"+example+"```\n") {
		t.Error("the README does not show examples/drain-host.yaml as it is")
	}
	var out bytes.Buffer
	const path = "../../examples/drain-host.yaml"
	err := simulateFile(context.Background(), &out, path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(readme, "drain one host of five (seed 1)")
	if at < 0 {
		t.Fatal("the README shows no answer")
	}
	shown, _, _ := strings.Cut(readme[at:], "```")
	wall := regexp.MustCompile(`in [0-9.]+ s\n`)
	want, got := wall.ReplaceAllString(shown, ""), wall.ReplaceAllString(out.String(), "")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the README's answer (-README +godwit):\n%s", diff)
	}
}

// TestTheCodeOfTheReadmeIsCompiled: all of it is in files that tests compile, but for the spaces.
func TestTheCodeOfTheReadmeIsCompiled(t *testing.T) {
	var compiled string
	for _, file := range []string{"example_test.go", "examples/policy/mine_test.go"} {
		compiled += strings.Join(strings.Fields(read(t, "../../"+file)), " ")
	}
	readme := read(t, "../../README.md")
	var code []string
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		code = append(code, m[1])
	}
	for _, m := range regexp.MustCompile("`([^`\n]*(?::=|\\{\\}|\\.Step\\()[^`\n]*)`").FindAllStringSubmatch(readme, -1) {
		code = append(code, m[1])
	}
	if len(code) != 3 {
		t.Errorf("%d pieces of code are found: %q", len(code), code)
	}
	for _, c := range code {
		if !strings.Contains(compiled, strings.Join(strings.Fields(c), " ")) {
			t.Errorf("no test compiles the README's %q", c)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
