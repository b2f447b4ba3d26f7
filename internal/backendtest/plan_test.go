//go:build linux

package backendtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A victim is what is killed, or cut.
type victim int

const (
	leadingController victim = iota
	otherController
	sourceAgent
	targetAgent
	etcdMember
	sourceQEMU
	targetQEMU
	link
	victims // how many there are
)

var victimNames = [victims]string{"leader", "follower", "source agent", "target agent",
	"etcd member", "source QEMU", "target QEMU", "link"}

func (v victim) String() string { return victimNames[v] }

// A crash is one line of the plan.
type crash struct {
	victim victim
	wait   time.Duration // since the crash before
	pause  time.Duration // until it is started again, or mended
	choice uint32        // which one, where there are several
}

func (m crash) String() string {
	return fmt.Sprintf("%v+%v for %v", m.victim, m.wait.Round(time.Millisecond),
		m.pause.Round(time.Millisecond))
}

// draw makes the plan of a seed: all victims, in an order of their own, so many times.
func draw(seed uint64, times int) []crash {
	r := rand.New(rand.NewPCG(seed, 0x676f64776974))
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(r.Int64N(int64(high-low)))
	}
	var plan []crash
	for range times {
		for _, v := range r.Perm(int(victims)) {
			plan = append(plan, crash{victim: victim(v),
				wait:   between(300*time.Millisecond, 2*time.Second),
				pause:  between(200*time.Millisecond, 3*time.Second),
				choice: r.Uint32()})
		}
	}
	return plan
}

// A tally is what became of the crashes of a round.
type tally struct {
	killed, missed [victims]int
}

// columns prints one number for each victim; what was missed, because nothing of the
// kind was there, follows it.
func (c *tally) columns() string {
	var b strings.Builder
	for v := range victims {
		text := fmt.Sprint(c.killed[v])
		if c.missed[v] > 0 {
			text += fmt.Sprintf("(%d)", c.missed[v])
		}
		fmt.Fprintf(&b, "%13s", text)
	}
	return b.String()
}
