package convergence

import (
	"math"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Passes shrink no more.
func TestAForecastWithoutASpeedSaysNothingOfWhatFits(t *testing.T) {
	const most = 900 * time.Millisecond
	for _, row := range []struct {
		name     string
		speed    float64
		left     hypervisor.Bytes
		postCopy bool
		want     Decision
	}{
		{"at a speed that is not known", 0, hypervisor.GiB, false,
			Decision{Action: SetDowntime, Limit: usual, Why: Tuning}},
		{"at a speed that is not known post-copy does not begin", 0, hypervisor.GiB, true,
			Decision{Action: SetDowntime, Limit: usual, Why: Tuning}},
		{"what takes for ever does not fit", 1, math.MaxInt64 / 2, false,
			Decision{Action: SetDowntime, Limit: usual, Why: Tuning}},
		{"what takes for ever is left to post-copy", 1, math.MaxInt64 / 2, true,
			Decision{Action: StartPostCopy, Why: Stalled}},
		{"what is left fits", 1e9, 125e6, true,
			Decision{Action: SetDowntime, Limit: 150 * time.Millisecond, Why: Tuning}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := State{Bandwidth: row.speed, Own: []int64{5, int64(row.left), 1000}, Clock: 2 * time.Second}
			s.Limit.Now = first
			got := forecastLook(Config{AllowPostCopy: row.postCopy, MaxDowntime: most}, s,
				hypervisor.Progress{Remaining: row.left})
			if got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}
