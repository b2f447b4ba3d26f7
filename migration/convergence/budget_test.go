package convergence_test

import (
	"math"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

func TestBudget(t *testing.T) {
	for _, row := range []struct {
		name          string
		memory, disks hypervisor.Bytes
		perGiB, want  time.Duration
	}{
		{"1 GiB is 2 GB", gib, 0, 150 * time.Second, 300 * time.Second},
		{"4 GiB are 5 GB", 4 * gib, 0, 150 * time.Second, 750 * time.Second},
		{"64 GiB are 69 GB", 64 * gib, 0, 150 * time.Second, 10350 * time.Second},
		{"8 MiB are 1 GB", 8 * mib, 0, 150 * time.Second, 150 * time.Second},
		{"a GB exactly is 1 GB", 1e9, 0, 150 * time.Second, 150 * time.Second},
		{"disks are added before rounding", 5e8, 5e8, 150 * time.Second, 150 * time.Second},
		{"parts of a second are dropped", 1e9, 0, 1999 * time.Millisecond, time.Second},
		{"nothing per GiB is no limit", gib, 0, 0, 0},
		{"amounts below zero count as zero", -gib, gib, time.Second, 2 * time.Second},
		{"more than all is for ever", math.MaxInt64, math.MaxInt64, 1e6 * time.Hour,
			hypervisor.Forever},
	} {
		t.Run(row.name, func(t *testing.T) {
			same(t, "budget", row.want, convergence.Budget(row.memory, row.disks, row.perGiB))
		})
	}
}

func TestPredict(t *testing.T) {
	never := convergence.Estimate{Left: hypervisor.Forever}
	for _, row := range []struct {
		name      string
		remaining hypervisor.Bytes
		dirty, bw hypervisor.Bandwidth
		limit     time.Duration
		want      convergence.Estimate
	}{
		{"what fits is the last pass", 1e8, 2 * gb, gb, 100 * ms,
			convergence.Estimate{Converges: true, Left: 100 * ms, Downtime: 100 * ms}},
		{"each pass leaves a tenth", 1e10, gb / 10, gb, 10 * ms,
			convergence.Estimate{Converges: true, Rounds: 3, Left: 11110 * ms, Downtime: 10 * ms}},
		{"as fast as the wire is too fast", 1e10, gb, gb, 10 * ms, never},
		{"no wire, no end", 1, 0, 0, time.Second, never},
		{"nothing left needs no wire", 0, 0, 0, 0, convergence.Estimate{Converges: true}},
		{"a thousand passes are too many", 1e12, gb - 1, gb, ms, never},
		{"amounts below zero are nothing", -5, -5, -5, -5, convergence.Estimate{Converges: true,
			Left: 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := convergence.Predict(row.remaining, row.dirty, row.bw, row.limit)
			same(t, "estimate", row.want, got)
		})
	}
}
