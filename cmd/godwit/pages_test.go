package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// ranWhole are the pages whose blocks dist_test.go runs as they are.
var ranWhole = []string{"install.md", "first-cluster.md", "upgrade.md"}

// ranInGo are the flags that a test in Go gives, and its file.
var ranInGo = map[string]string{
	"godwit controller --page":       "monitor_test.go",
	"godwit etcd rights --apply":     "../../internal/daemon/storeserver_test.go",
	"godwit etcd rights --etcd-ca":   "../../internal/daemon/storeserver_test.go",
	"godwit etcd rights --etcd-cert": "../../internal/daemon/storeserver_test.go",
	"godwit etcd rights --etcd-key":  "../../internal/daemon/storeserver_test.go",
}

// A usage is a command, and the flags that it is given.
type usage struct {
	command string
	flags   []string
}

// usageOf reads a line of a shell; a line that does not call godwit is none.
func usageOf(root *cobra.Command, line string) (usage, bool) {
	line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
	_, call, is := strings.Cut(" "+line, " godwit ")
	if !is {
		return usage{}, false
	}
	words := strings.Fields(strings.ReplaceAll(call, "…", ""))
	u, names := usage{}, []string{}
	for _, w := range words {
		switch name, _, _ := strings.Cut(w, "="); {
		case strings.HasPrefix(w, "-"):
			u.flags = append(u.flags, strings.Trim(name, `'"`))
		case len(u.flags) == 0:
			names = append(names, w)
		}
	}
	c, _, err := root.Find(names)
	if err != nil || !c.Runnable() {
		return usage{command: "unknown: " + call}, true
	}
	u.command = c.CommandPath()
	return u, true
}

// TestEveryCommandOfTheDocumentationIsRun by a script, with other names and values: each command, and each
// of its flags.
func TestEveryCommandOfTheDocumentationIsRun(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	root, ran := rootCommand(), map[string][]string{}
	for _, s := range append(scripts, "docs_test.go") {
		for line := range strings.Lines(strings.ReplaceAll(read(t, s), `\`+"\n", " ")) {
			if u, is := usageOf(root, line); is && !strings.HasPrefix(line, "exits 2 ") {
				ran[u.command] = append(append(ran[u.command], "itself"), u.flags...)
			}
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		if slices.Contains(ranWhole, filepath.Base(page)) {
			continue
		}
		for _, line := range commandsOf(read(t, page)) {
			shown, _ := usageOf(root, line)
			for _, f := range append(shown.flags, "itself") {
				by, is := ranInGo[shown.command+" "+f]
				if is && strings.Contains(read(t, by), `"`+f+`"`) {
					continue
				}
				if !slices.Contains(ran[shown.command], f) {
					t.Errorf("no script runs %q of %s: %s, %s", line, filepath.Base(page), shown.command, f)
				}
			}
		}
	}
}

// commandsOf returns the commands that a page shows, in fences and in blocks that are indented.
func commandsOf(page string) (all []string) {
	fence := false
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "godwit ") && (fence || strings.HasPrefix(line, "    ")) {
			all = append(all, text)
		}
	}
	return all
}
