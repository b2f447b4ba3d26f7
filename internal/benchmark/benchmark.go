// Package benchmark measures planners of drains on a set of its own: the same clusters and questions
// for each, from seeds alone, so that others can compare themselves. docs/benchmark.md says what
// is in the set, and has the table.
//
//	set (clusters from seeds) ──► contestants ──► rows: what each plan costs
//	                          └─► bounds, and every arrangement where a cluster is small
//
// [Run] answers the rows. What is in them is the same on every machine; how long planning takes is not,
// and is measured by the benchmarks of packages plan and sim.
package benchmark

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Row is what the plan of one contestant costs on one set.
type Row struct {
	Set        string `json:"set"`
	Contestant string `json:"contestant"`
	// Solved is how many of Questions the contestant has emptied the hosts of.
	Solved    int `json:"solved"`
	Questions int `json:"questions"`
	// Moves is how many VMs move, over the questions that were solved.
	Moves int `json:"moves"`
	// MovedGiB is their memory. Fullest is the share of memory in use on the fullest host after the
	// moves. Seconds is how long they take: see docs/benchmark.md. Nil is not known.
	MovedGiB *float64 `json:"movedGiB"`
	Fullest  *float64 `json:"fullest"`
	Seconds  *float64 `json:"seconds"`
	// Recorded says that the plan was made before, and by what.
	Recorded string `json:"recorded,omitempty"`
}

// The contestants.
const (
	Bound      = "bound"
	FirstFit   = "first-fit"
	KubeVirt   = "KubeVirt's defaults"
	Hbal       = "hbal"
	Godwit     = "godwit"
	Exhaustive = "every arrangement"
)

// Sizes are how many hosts the clusters of [Ganeti] have that are in the set.
func Sizes() []int { return []int{40, 100, 200, 1000} }

// Run measures all contestants on the tight clusters, and on clusters of so many hosts.
func Run(ctx context.Context, hosts ...int) ([]Row, error) {
	rows := tightRows()
	for _, hosts := range hosts {
		for _, drained := range []int{1, 4} {
			some, err := ganetiRows(ctx, hosts, drained)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ganetiName(hosts, drained), err)
			}
			rows = append(rows, some...)
		}
	}
	return rows, nil
}

// rounded returns a number that is known, with one digit.
func rounded(x float64) *float64 {
	x = math.Round(10*x) / 10
	return &x
}

// shareOf returns a share that is known, in thousandths.
func shareOf(x float64) *float64 {
	x = math.Round(1000*x) / 1000
	return &x
}

func seconds(d time.Duration) *float64 { return rounded(d.Seconds()) }

func gib(b hypervisor.Bytes) *float64 { return rounded(float64(b) / float64(hypervisor.GiB)) }
