package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/cli"
)

// ask runs godwit bench with the given words.
func ask(words ...string) (string, error) {
	var out bytes.Buffer
	c := cli.BenchCommands()[0]
	c.SetArgs(words)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func TestConvergenceComparesAllPoliciesOnAllTerms(t *testing.T) {
	text, err := ask("convergence", "--traces", "storm,growth", "--count", "2", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Terms []struct {
			Name string
			Rows []struct {
				Policy          string
				Runs, Succeeded int
				MeanSeconds     float64
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	if n := len(answer.Terms); n != 4 {
		t.Fatalf("%d tables, want three terms and all together", n)
	}
	for i, terms := range answer.Terms {
		for _, r := range terms.Rows {
			if want := []int{4, 4, 4, 12}[i]; r.Runs != want || r.Succeeded == 0 ||
				r.MeanSeconds <= 0 {
				t.Errorf("%s, %s: %+v, want %d runs", terms.Name, r.Policy, r, want)
			}
		}
		if len(terms.Rows) != 6 {
			t.Errorf("%s: %d policies, want six", terms.Name, len(terms.Rows))
		}
	}
	page, err := ask("convergence", "--traces", "storm", "--count", "1")
	for _, want := range []string{"1 guest of each of: storm (seed 1)", "ALL TERMS", "oVirt",
		"godwit forecast"} {
		if err != nil || !strings.Contains(page, want) {
			t.Errorf("the page lacks %q (%v):\n%s", want, err, page)
		}
	}
}

func TestEvacuationComparesAllWays(t *testing.T) {
	text, err := ask("evacuation", "one host", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Median   map[string]float64
		Outcomes []struct {
			Cluster, Contestant string
			Ratio               float64
			Left                int
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Outcomes) != 6 || len(answer.Median) != 6 {
		t.Errorf("%d outcomes, %d medians, want six", len(answer.Outcomes), len(answer.Median))
	}
	for _, o := range answer.Outcomes {
		if o.Cluster != "one host" || o.Left != 0 || o.Ratio < 1 || o.Ratio > 1.1 ||
			answer.Median[o.Contestant] != o.Ratio {
			t.Errorf("%+v, median %v", o, answer.Median[o.Contestant])
		}
	}
	page, err := ask("evacuation", "one host")
	for _, want := range []string{"TIME / LOWER BOUND", "P99 DOWNTIME", "one host", "adaptive"} {
		if err != nil || !strings.Contains(page, want) {
			t.Errorf("the page lacks %q (%v):\n%s", want, err, page)
		}
	}
}

func TestBadQuestionsAreExplained(t *testing.T) {
	for _, row := range []struct {
		words []string
		want  string
	}{
		{[]string{"convergence", "--traces", "noise"}, "--traces noise: there is no such " +
			"distribution; use steady, bursts, diurnal, phases, growth, storm"},
		{[]string{"convergence", "--count", "0"}, "--count 0: draw 1 to 10000 guests of each " +
			"distribution"},
		{[]string{"evacuation", "moon"}, `there is no cluster "moon" in the set; use one host, ` +
			"rack, even, small, large, databases, caches, slow links, room, faults, " +
			"uneven links, limits"},
	} {
		if _, err := ask(row.words...); err == nil || err.Error() != row.want {
			t.Errorf("%v: %v, want %s", row.words, err, row.want)
		}
	}
}
