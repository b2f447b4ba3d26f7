package sweep

import (
	"errors"
	"fmt"
	"strings"
)

// Merge joins all the shards of a run, in any order: the document is that of the
// run without shards. It refuses shards that do not belong together, that are
// missing, or that are there twice, and names them.
func Merge(parts []*Part) (*Document, error) {
	if len(parts) == 0 {
		return nil, errors.New("there are no shards to merge")
	}
	first := parts[0]
	held := map[int]string{}
	var samples []Sample
	for _, p := range parts {
		if what := difference(first, p); what != "" {
			return nil, fmt.Errorf("%s and %s are not of the same run: the %s", first.Name, p.Name,
				what)
		}
		if twice, is := held[p.Shard.Index]; is {
			return nil, fmt.Errorf("%s and %s are both shard %s", twice, p.Name, p.Shard)
		}
		held[p.Shard.Index] = p.Name
		samples = append(samples, p.Samples...)
	}
	var missing []string
	for i := 1; i <= first.Shard.Count; i++ {
		if _, is := held[i]; !is {
			missing = append(missing, Shard{i, first.Shard.Count}.String())
		}
	}
	if n := len(missing); n > 10 {
		missing = append(missing[:10], fmt.Sprintf("and %d more", n-10))
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("missing: shard %s", strings.Join(missing, ", "))
	}
	return Summarize(first.Run, samples), nil
}

// difference says in what two shards cannot be of one run.
func difference(a, b *Part) string {
	x, y := &a.Run, &b.Run
	for _, f := range []struct {
		what string
		a, b any
	}{
		{"versions of godwit", x.Version, y.Version},
		{"scenarios", x.Scenario, y.Scenario},
		{"contents of the files that they read", x.Digest, y.Digest},
		{"seeds", x.Seed, y.Seed},
		{"numbers of samples", x.Samples, y.Samples},
		{"sweeps", fmt.Sprint(x.Axes), fmt.Sprint(y.Axes)},
		{"numbers of shards", a.Shard.Count, b.Shard.Count},
	} {
		if f.a != f.b {
			return fmt.Sprintf("%s differ, %v and %v", f.what, f.a, f.b)
		}
	}
	return ""
}
