package simtest

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// attended runs f in a goroutine of its own, and gives up when a decision does not return:
// nothing can end that goroutine, but it ends by itself should the decision return after all.
// What f has written may be read afterwards. It returns what only this can find: a decision
// that hangs, or that ended the goroutine, and a panic.
func (s *settings) attended(at *stage, f func()) (failed *failure) {
	done := make(chan *failure, 1)
	go func() {
		var caught *failure
		ended := false
		defer func() {
			if r := recover(); r != nil {
				caught = &failure{Name: "panic", At: at.now,
					Detail: fmt.Sprintf("%v\n%s", r, stack())}
			} else if !ended {
				caught = at.interrupted()
			}
			done <- caught
		}()
		f()
		ended = true
	}()
	const looks = 4
	tick := time.NewTicker(max(s.decisionTimeout/looks, time.Millisecond))
	defer tick.Stop()
	last, same := int64(0), 0
	for {
		select {
		case failed = <-done:
			return failed
		case <-tick.C:
		}
		count, asking := at.policyCheck.Pulse()
		if !asking || count != last {
			last, same = count, 0
			continue
		}
		if same++; same < looks {
			continue
		}
		if found := at.policyCheck.Abandon(count); found != nil {
			return &failure{Name: found.Name(), At: at.now, hangs: true,
				Detail: fmt.Sprintf("for %v\n%s", s.decisionTimeout, found.Why())}
		}
	}
}

// interrupted says why the goroutine that played has ended.
func (at *stage) interrupted() *failure {
	if found := at.policyCheck.Interrupted(); found != nil {
		return &failure{Name: found.Name(), At: at.now, Detail: found.Why()}
	}
	return &failure{Name: "an invariant ends the goroutine that asked it", At: at.now,
		Detail: "it returns an error instead of calling FailNow of a test"}
}

// stack returns where a panic came from, without how it was caught.
func stack() string {
	text := string(debug.Stack())
	if _, after, found := strings.Cut(text, "panic("); found {
		text = after
	}
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(len(lines), 20)], "")
}
