package heap

import (
	"runtime/debug"
	"sync"
)

// A Loan lets garbage gather as [Spend] does, but only for a while: when the last who took it
// has returned it, all is as it was. It gives nothing to a process that has chosen for itself
// how much garbage there may be, by GOGC or by [debug.SetGCPercent], and never less than Go
// does. Its zero value is ready; several goroutines may take it at once.
type Loan struct {
	mu      sync.Mutex
	holders int
	percent int // that was set; 0 is none
}

// Take lets garbage gather, as far as it and what lives fit into room bytes.
func (l *Loan) Take(room int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders++; l.holders == 1 && chosen() == usual {
		l.lend(room)
	}
}

// Renew measures anew what lives. Whoever holds a loan for long does so now and then.
func (l *Loan) Renew(room int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.percent > 0 && chosen() == l.percent {
		l.lend(room)
	}
}

// Return gives the loan back, once for each time that it was taken.
func (l *Loan) Return() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders--; l.holders > 0 || l.percent == 0 {
		return
	}
	if chosen() == l.percent {
		debug.SetGCPercent(usual)
	}
	l.percent = 0
}

func (l *Loan) lend(room int64) {
	l.percent = max(usual, percent(live(), room))
	debug.SetGCPercent(l.percent)
}

// chosen returns how much garbage may gather now, in percent of what lives.
func chosen() int {
	percent, _ := figure("/gc/gogc:percent") // 0 is that nobody can tell
	return int(min(percent, 1<<30))
}
