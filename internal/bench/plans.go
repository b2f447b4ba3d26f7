package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A PlanRow is what the plan of one candidate costs on one set.
type PlanRow struct {
	Set       string `json:"set"`
	Candidate string `json:"contestant"`
	// Solved is how many of Questions the candidate has emptied the hosts of.
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

// The candidates.
const (
	Bound      = "bound"
	FirstFit   = "first-fit"
	KubeVirt   = "KubeVirt's defaults"
	Hbal       = "hbal"
	godwit     = "godwit"
	exhaustive = "every arrangement"
)

// Sizes are how many hosts the clusters of [Ganeti] have that are in the set.
func Sizes() []int { return []int{40, 100, 200, 1000} }

// ComparePlans measures all candidates on the tight clusters, and on clusters of so many hosts.
func ComparePlans(ctx context.Context, hosts ...int) ([]PlanRow, error) {
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

func inSeconds(d time.Duration) *float64 { return rounded(d.Seconds()) }

func inGiB(b hypervisor.Bytes) *float64 { return rounded(float64(b) / float64(hypervisor.GiB)) }
