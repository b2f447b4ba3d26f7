package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

type waiter struct {
	spec migration.Spec
	turn queueEntry
}

func (w *waiter) Asked() *migration.Spec { return &w.spec }
func (w *waiter) Entry() *queueEntry     { return &w.turn }

// While the first in line waits behind because its source sends, those who were taken meanwhile
// are not kept.
func TestWhoIsGoneIsForgotten(t *testing.T) {
	var q queue[*waiter]
	sends := map[hypervisor.HostName]bool{"slow": true}
	link := func(_ *waiter, source hypervisor.HostName) sourceState {
		if sends[source] {
			return sourceBusy
		}
		return sourceIdle
	}
	for i := range 3000 {
		source := hypervisor.HostName(fmt.Sprintf("n%d", i%2))
		if i == 0 {
			source = "slow"
		}
		q.Add(&waiter{spec: migration.Spec{ID: migration.ID(fmt.Sprint(i)),
			Created: time.Unix(int64(i%2*10_000+i), 0)}}, source)
	}
	for i := 1; i < 2900; i++ { // n0 and n1 send in turn
		now := hypervisor.HostName(fmt.Sprintf("n%d", i%2))
		sends["n0"], sends["n1"] = now != "n0", now != "n1"
		q.Freed(now)
		if f := q.Take(link); f == nil || f.turn.waits() || f.spec.ID == "0" {
			t.Fatalf("number %d: took %v", i, f)
		}
		if n := q.behind.Len(); n > 2*len(q.bySource)+fewStale {
			t.Fatalf("%d stand behind after %d", n, i)
		}
	}
	if q.behind.Len() == 0 {
		t.Fatal("no migration waits behind: the test shows nothing")
	}
}
