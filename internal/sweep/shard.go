package sweep

import (
	"fmt"
	"strconv"
	"strings"
)

// A Shard is one machine's part of the worlds: every Count-th, from the Index-th
// on. The zero value is all of them.
type Shard struct {
	Index int `json:"index"` // from 1; 0 is no shard
	Count int `json:"count"`
}

// jobIndex is the variable in which Kubernetes tells the pods of an indexed Job
// which of them they are, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

// maxShards is how many shards a run may have.
const maxShards = 100_000

// ParseShard reads I/N, as 1/8; job/N takes I from [jobIndex] in the environment.
func ParseShard(text string, getenv func(string) string) (Shard, error) {
	index, count, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxShards {
		return Shard{}, fmt.Errorf("%q is no shard: write 1/8 to 8/8, or job/8 in an indexed Job",
			text)
	}
	if index == "job" {
		i, err := strconv.Atoi(getenv(jobIndex))
		if err != nil || i < 0 || i >= n {
			return Shard{}, fmt.Errorf("%s: %s is %q, not a number from 0 to %d: "+
				"give the Job completionMode: Indexed and completions: %d",
				text, jobIndex, getenv(jobIndex), n-1, n)
		}
		return Shard{i + 1, n}, nil
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 1 || i > n {
		return Shard{}, fmt.Errorf("%q is no shard: the first number is 1 to %d", text, n)
	}
	return Shard{i, n}, nil
}

// holds reports whether a world, numbered from 0, is the shard's.
func (s Shard) holds(world int) bool { return s.Count == 0 || world%s.Count == s.Index-1 }

// Worlds lists the shard's worlds out of so many.
func (s Shard) Worlds(all int) []int {
	var worlds []int
	for w := range all {
		if s.holds(w) {
			worlds = append(worlds, w)
		}
	}
	return worlds
}

// String returns the shard as I/N.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }
