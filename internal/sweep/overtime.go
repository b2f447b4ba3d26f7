package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// intervals is how many buckets of time a chart has.
const intervals = 240

// buckets divides time evenly.
type buckets struct {
	from  time.Duration
	width time.Duration
}

func newBuckets(from, to time.Duration) buckets {
	return buckets{from, max(time.Millisecond, (to-from+intervals-1)/intervals)}
}

// end returns when the last bucket ends, which is never before what they were made for.
func (c buckets) end() time.Duration { return c.from + intervals*c.width }

// A series sums up, in each bucket, how much of something there was: the integral over time
// of what [series.add] added, in O(1) for each interval of any length.
type series struct {
	whole [intervals + 1]float64 // changes of what holds for whole buckets
	part  [intervals]float64     // what holds for a part of one
}

// add adds a level of something from a to b.
func (s *series) add(c buckets, a, b time.Duration, level float64) {
	if a, b = max(a, c.from), min(b, c.end()); b <= a {
		return
	}
	first, last := int((a-c.from)/c.width), min(intervals-1, int((b-c.from)/c.width))
	share := func(d time.Duration) float64 { return level * float64(d) / float64(c.width) }
	start := func(i int) time.Duration { return c.from + time.Duration(i)*c.width }
	if first == last {
		s.part[first] += share(b - a)
		return
	}
	s.part[first] += share(start(first+1) - a)
	s.part[last] += share(b - start(last))
	s.whole[first+1] += level
	s.whole[last] -= level
}

// means returns the mean level in each bucket.
func (s *series) means() []float64 {
	out, level := make([]float64, intervals), 0.0
	for i := range out {
		level += s.whole[i]
		out[i] = math.Round((level+s.part[i])*1000) / 1000
	}
	return out
}

// Concurrency is how many migrations there were over time: a mean for each of the buckets,
// which begin at Document.From and are Step milliseconds long.
type Concurrency struct {
	Step    float64   `json:"step"`
	Waiting []float64 `json:"waiting"` // asked for, and no memory moves yet
	Moving  []float64 `json:"moving"`  // memory moves
	Peak    int       `json:"peak"`    // the most that moved at one moment
}

func concurrency(rows []row, c buckets) *Concurrency {
	var waiting, moving series
	type step struct {
		at time.Duration
		by int
	}
	var steps []step
	for i := range rows {
		n := &rows[i]
		begun, over := n.at[migration.Running], n.end(c.end())
		if begun == never {
			waiting.add(c, n.at[migration.Unset], over, 1)
			continue
		}
		waiting.add(c, n.at[migration.Unset], begun, 1)
		moving.add(c, begun, over, 1)
		steps = append(steps, step{begun, +1}, step{over, -1})
	}
	slices.SortFunc(steps, func(a, b step) int { // an end makes room for a beginning
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by))
	})
	now, peak := 0, 0
	for _, s := range steps {
		now += s.by
		peak = max(peak, now)
	}
	return &Concurrency{float64(c.width) / 1e6, waiting.means(), moving.means(), peak}
}

// An Activity is how many migrations moved memory out of a group of hosts over time.
type Activity struct {
	Name   string    `json:"name"`
	Moving []float64 `json:"moving"`
}

// activity sums up neighbours in the order of their names, so that there are few groups.
func activity(rows []row, c buckets) []Activity {
	of := map[hypervisor.HostName]int{}
	var hosts []hypervisor.HostName
	for i := range rows {
		if h := rows[i].source; rows[i].at[migration.Running] != never && of[h] == 0 {
			of[h] = 1
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, natural)
	size := (len(hosts) + maxGroups - 1) / maxGroups
	groups := make([]series, (len(hosts)+size-1)/max(size, 1))
	for i, h := range hosts {
		of[h] = i / size
	}
	for i := range rows {
		if n := &rows[i]; n.at[migration.Running] != never {
			over := n.end(c.end())
			groups[of[n.source]].add(c, n.at[migration.Running], over, 1)
		}
	}
	list := make([]Activity, len(groups))
	for i := range groups {
		first, last := hosts[i*size], hosts[min(len(hosts), (i+1)*size)-1]
		list[i] = Activity{string(first), groups[i].means()}
		if first != last {
			list[i].Name = fmt.Sprintf("%s … %s", first, last)
		}
	}
	return list
}

// natural orders names as people do: n2 before n10.
func natural(a, b hypervisor.HostName) int {
	digits := func(s hypervisor.HostName) int {
		i := len(s)
		for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
			i--
		}
		return i
	}
	i, j := digits(a), digits(b)
	return cmp.Or(cmp.Compare(a[:i], b[:j]), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
