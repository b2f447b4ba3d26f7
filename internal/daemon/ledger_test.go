package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// TestALedgerForgetsNoHandOverBecauseTheClockJumped: one is kept for a year, and forgotten when files
// of a week are newer by as much.
func TestALedgerForgetsNoHandOverBecauseTheClockJumped(t *testing.T) {
	const day = 24 * time.Hour
	dir := filepath.Join(t.TempDir(), "ledger")
	reopened := func(now time.Time) *daemon.Ledger {
		t.Helper()
		l, err := daemon.OpenLedger(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	keep := func(id string, gone bool, at time.Time) {
		t.Helper()
		h := store.Holding{VM: hypervisor.VMID(id), Record: &store.VM{
			VM: hypervisor.VM{ID: "v", Memory: 1 << 20, CPUs: 1}, Host: "n1", Moves: 1, Boots: 1}}
		if gone {
			h.Left = &store.Departure{To: "n2", Move: "m"}
		}
		if err := reopened(at).Keep(h); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, durable.Name(id))
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	knows := func(l *daemon.Ledger, id string) bool {
		_, is := l.Holding(hypervisor.VMID(id))
		return is
	}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	keep("a-left", true, now.Add(-372*day))
	keep("b-here", false, now.Add(-4000*day))
	keep("c-left-lately", true, now.Add(-360*day))
	future := now.Add(20 * 365 * day)
	if l := reopened(future); !knows(l, "a-left") || !knows(l, "c-left-lately") {
		t.Error("a hand-over is forgotten because the clock is far in the future")
	}
	for i := range 7 {
		keep(fmt.Sprintf("d-%d", i), false, now.Add(-time.Duration(i)*day))
	}
	l := reopened(future)
	if knows(l, "a-left") {
		t.Error("a hand-over is kept for more than a year, with files of a week that are newer")
	}
	if !knows(l, "b-here") || !knows(l, "c-left-lately") || len(l.Holdings()) != 9 {
		t.Errorf("left: %v", l.Holdings())
	}
}

// TestALargestRecordKeepsNoAgentFromBeginning: what a store takes, the ledger keeps and reads; what no store takes is
// refused, and what was kept before stays.
func TestALargestRecordKeepsNoAgentFromBeginning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	l, err := daemon.OpenLedger(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	of := func(n int) store.Holding {
		v := &store.VM{VM: hypervisor.VM{ID: "v"}, Host: "n1", Snapshots: slices.Repeat([]store.Snapshot{{}}, n)}
		return store.Holding{VM: "v", Record: v, Left: &store.Departure{To: "n2", Move: "m"}}
	}
	n := sort.Search(1<<17, func(i int) bool { return store.Fits(of(i+1).Record) != nil })
	if n < 1000 || n == 1<<17 {
		t.Fatalf("%d snapshots fit in a store", n)
	}
	if err := l.Keep(of(n)); err != nil {
		t.Errorf("the largest that a store takes: %v", err)
	}
	if err := l.Keep(of(4 * n)); err == nil {
		t.Error("what is not read again is kept")
	}
	again, err := daemon.OpenLedger(dir, time.Now())
	if err != nil {
		t.Fatalf("the agent does not begin again: %v", err)
	}
	if h, known := again.Holding("v"); !known || len(h.Record.Snapshots) != n {
		t.Errorf("%d snapshots are known, want %d", len(h.Record.Snapshots), n)
	}
}
