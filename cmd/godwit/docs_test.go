package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheCommandsForCertificatesWork: those that the pages show, in the order of each page.
func TestTheCommandsForCertificatesWork(t *testing.T) {
	for _, page := range []string{"../../docs/encryption.md", "../../docs/security.md"} {
		text := read(t, page)
		t.Run(page, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ran := 0
			for line := range strings.Lines(text) {
				line, _, _ = strings.Cut(line, "#")
				args := strings.Fields(line)
				if len(args) < 3 || args[0] != "godwit" || args[1] != "pki" {
					continue
				}
				ran++
				if status := run(t.Context(), args[1:]); status != 0 {
					t.Errorf("%s: exit status %d", line, status)
				}
			}
			if ran < 5 {
				t.Errorf("%d commands were run", ran)
			}
		})
	}
}

// TestThePageOnEmbeddingShowsTheExamples: what a test runs is what the page shows.
func TestThePageOnEmbeddingShowsTheExamples(t *testing.T) {
	page := read(t, "../../docs/embedding.md")
	for name, file := range map[string]string{"ExampleNewLife": "store/newlife_example_test.go",
		"ExamplePlan": "evacuation/example_test.go", "ExampleDecide": "migration/placement/choose_example_test.go",
		"ExampleIndex":    "migration/placement/example_test.go",
		"ExampleProblems": "inventory/embed_example_test.go", "ExampleAsk": "inventory/embed_example_test.go"} {
		_, body, _ := strings.Cut(read(t, "../../"+file), "func "+name+"() {\n")
		body, _, is := strings.Cut(body, "\t// Output")
		body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
		if !is || !strings.Contains(page, "```go"+body+"```\n") {
			t.Errorf("docs/embedding.md does not show the body of %s:%s", name, body)
		}
	}
}

// TestEveryReasonIsExplained: those that evacuation, placement and the controller give are in the tables that
// operators read. Package placement tests its filters.
func TestEveryReasonIsExplained(t *testing.T) {
	page, found := read(t, "../../docs/failed-migrations.md"), 0
	reason := regexp.MustCompile(`Check:\s*"([^"]+)"|\bone\("([^"]+)"|\n\t\{"([a-z-]+)", "[^"]*", [a-z]+, |Rule += "([^"]+)"`)
	for _, dir := range []string{"evacuation", "migration/placement", "controller", "plan"} {
		files, err := filepath.Glob("../../" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range reason.FindAllStringSubmatch(read(t, file), -1) {
				word := strings.Join(m[1:], "")
				if found++; !strings.Contains(page, "`"+word+"`") {
					t.Errorf("docs/failed-migrations.md does not say what the reason %q of %s means", word, dir)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("%d reasons are found", found)
	}
}
