package convergence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(rules []rule) []string {
	var all []string
	for _, r := range rules {
		all = append(all, r.name)
	}
	return all
}

func TestTheOrderOfTheRules(t *testing.T) {
	for _, row := range []struct {
		name  string
		rules []rule
		want  []string
	}{
		{"Legacy is KubeVirt's order, the limit last", legacyRules[:], []string{
			"in post-copy", "over budget: assist", "no progress", "over budget",
			"blackout limit"}},
		{"Watermark asks for the least harm first", watermarkRules[:], []string{
			"in post-copy", "cancel under way", "source has stopped", "no data moves",
			"over budget: post-copy", "over budget", "stopped so that it ends",
			"needs help: use the whole blackout", "needs help: post-copy",
			"needs help: stop the guest", "stalled", "blackout limit"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, names(row.rules)); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}
